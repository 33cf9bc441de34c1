//! What the programs do besides serving: checking their configuration, and waiting.

use anyhow::Result;
use tempfile::TempDir;
use tower_tests::{Authority, BootstrapOptions, Envoy, Mode, daemon, ports};

use crate::{registrar::Registrar, support::Mesh};

/// Runs a command; its exit code, standard output and standard error.
async fn run(program: &str, arguments: &[&str]) -> Result<(Option<i32>, String, String)> {
    let output = daemon::run(program, arguments).await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((output.status.code(), text(output.stdout), text(output.stderr)))
}

#[tokio::test]
async fn a_right_configuration_is_printed_and_can_be_read_again() -> Result<()> {
    let folder = TempDir::new()?;
    let data = folder.path().join("data");
    let flags = [
        format!("--data-dir={}", data.display()),
        "--tower=localhost:5870".to_owned(),
        "--label=rack=7".to_owned(),
    ];
    let arguments: Vec<&str> =
        std::iter::once("check-config").chain(flags.iter().map(String::as_str)).collect();
    let (code, printed, complaint) = run("beacon-agent", &arguments).await?;
    assert_eq!(code, Some(0), "{complaint}");
    assert!(printed.starts_with("# ok\n") && printed.contains("label = [\"rack=7\"]"), "{printed}");
    assert!(!data.exists(), "a check changes nothing");

    let file = folder.path().join("beacon.toml");
    std::fs::write(&file, &printed)?;
    let again = run("beacon-agent", &["check-config", "--config", file.to_str().unwrap_or_default()]).await?;
    assert_eq!(again, (Some(0), printed, String::new()));
    Ok(())
}

#[tokio::test]
async fn all_that_is_wrong_is_named_at_once() -> Result<()> {
    let folder = TempDir::new()?;
    let files = Authority::new("mesh")?.issue(folder.path(), &["host-1"])?;
    files.write("key.pem", "rubbish")?;
    let mut arguments =
        vec!["check-config".to_owned(), "--discovery=file:///tmp".to_owned(), "--log=a=b=c".to_owned()];
    arguments.extend(["--http-listen=127.0.0.1:5870", "--data-dir=/proc/tower"].map(str::to_owned));
    arguments.extend(files.tower());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, printed, complaint) = run("tower-server", &arguments).await?;
    assert_eq!((code, printed.as_str()), (Some(2), ""));
    for words in ["--http-listen 127.0.0.1:5870 is", "--log a=b=c", "--data-dir /proc/tower", "--tls-key "] {
        assert!(complaint.contains(&format!("error: {words}")), "no {words:?} in {complaint}");
    }

    let files = Authority::new("mesh")?.issue(folder.path(), &["host-1"])?;
    let mut arguments = vec!["check-config".to_owned(), "--tower=localhost:5870".to_owned()];
    arguments.extend(["--node-id=host-2".to_owned(), format!("--data-dir={}", folder.path().display())]);
    arguments.extend(files.beacon());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, _, complaint) = run("beacon-agent", &arguments).await?;
    assert_eq!((code, complaint.trim()), (Some(2), "error: --node-id host-2, and --tls-cert is for host-1"));
    Ok(())
}

#[tokio::test]
async fn waiting_ends_when_the_beacon_and_its_envoy_are_ready() -> Result<()> {
    let registrar = Registrar::in_files()?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let admin = mesh.beacon.admin().to_string();
    let (code, _, complaint) = run("beacon-agent", &["wait", "--timeout=20s", "--admin", &admin]).await?;
    assert_eq!(code, Some(0), "{complaint}");

    let options =
        BootstrapOptions { mode: Mode::Delta, node_id: "waited-for".into(), egress_port: None, socket: None };
    let envoy = Envoy::start("waited-for", &mesh.beacon.bootstrap(&options).await?, None).await?;
    let envoy_admin = envoy.admin().to_string();
    let arguments = ["wait", "--timeout=20s", "--admin", &admin, "--envoy", &envoy_admin];
    let (code, _, complaint) = run("beacon-agent", &arguments).await?;
    assert_eq!(code, Some(0), "{complaint}");

    let nowhere = ports::free_address().to_string();
    let arguments = ["wait", "--timeout=300ms", "--admin", &admin, "--envoy", &nowhere];
    let (code, _, complaint) = run("beacon-agent", &arguments).await?;
    assert_eq!(code, Some(1), "{complaint}");
    assert!(complaint.contains(&format!("the Envoy at {nowhere} was not ready within 0.3 s")), "{complaint}");
    Ok(())
}
