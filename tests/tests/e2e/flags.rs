//! A wrong flag ends the program at once, with exit code 2, and names itself.

use anyhow::Result;
use tower_tests::daemon;

/// Flags, and the words that the message must have.
async fn check(program: &str, flags: &[&str], words: &[&str]) -> Result<()> {
    let output = daemon::run(program, flags).await?;
    let message = String::from_utf8_lossy(&output.stderr);
    let what = format!("{program} {flags:?}: {message}");
    assert_eq!(output.status.code(), Some(2), "{what}");
    for word in words {
        assert!(message.contains(word), "no {word:?}: {what}");
    }
    // Data on standard output, everything else on standard error.
    assert!(output.stdout.is_empty(), "{what}");
    Ok(())
}

#[tokio::test]
async fn tower_server() -> Result<()> {
    let check = async |flag: &str, words: &[&str]| check("tower-server", &[flag], words).await;
    check("--discovery=nonsense", &["--discovery", "nonsense"]).await?;
    check("--discovery=ftp://127.0.0.1/x", &["--discovery", "ftp"]).await?;
    check("--discovery=zk://127.0.0.1:2181/d/{service}?format=morse", &["--discovery", "format", "morse"])
        .await?;
    check("--discovery=zk://127.0.0.1:2181/d?format=kingpin", &["--discovery", "{service}"]).await?;
    check("--grpc-listen=nowhere", &["--grpc-listen"]).await?;
    check("--http-listen=127.0.0.1:70000", &["--http-listen"]).await?;
    check("--no-such-flag", &["--no-such-flag"]).await
}

#[tokio::test]
async fn a_list_of_services_that_says_nothing() -> Result<()> {
    for value in ["--serve=", "--serve=web,,ads", "--serve=all,web", "--serve=none,web"] {
        let flags = ["--discovery=zk://127.0.0.1:2181/d/{service}", value];
        check("tower-server", &flags, &["--serve"]).await?;
        check("tower-server", &[&["check-config"], &flags[..]].concat(), &["error: --serve"]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_event_log() -> Result<()> {
    let check = async |flag: &str, words: &[&str]| {
        check("tower-server", &["--discovery=file:///tmp/endpoints", flag], words).await
    };
    check("--event-log=sled", &["--event-log", "sled", "embedded"]).await?;
    check("--event-log=zk://127.0.0.1:2181", &["--event-log", "path"]).await?;
    check("--event-log=zk://127.0.0.1:2181/t?password=x", &["--event-log", "password_file"]).await
}

#[tokio::test]
async fn beacon_agent() -> Result<()> {
    let check = async |flags: &[&str], words: &[&str]| check("beacon-agent", flags, words).await;
    check(&["--tower=nowhere"], &["--tower", "nowhere"]).await?;
    check(&["--tower=127.0.0.1:5870", "--label=lonely"], &["--label", "lonely"]).await?;
    check(&["--tower=127.0.0.1:5870", "--xds-listen=nowhere"], &["--xds-listen"]).await?;
    check(&["--no-such-flag"], &["--no-such-flag"]).await?;
    check(&["bootstrap", "--mode=quantum"], &["--mode", "quantum"]).await
}
