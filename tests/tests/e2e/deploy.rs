//! What `deploy/` configures is what the programs understand. Its form is checked by
//! `scripts/check-deploy`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tower_tests::{Authority, daemon};

fn deployed(path: &str) -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")?;
    let path: PathBuf = root.join("deploy").join(path);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Checks a configuration whose files and folders are in a temporary one instead of where they will be.
async fn check(program: &str, name: &str, text: &str) -> Result<()> {
    let folder = TempDir::new()?;
    let here = folder.path().display();
    let files = Authority::new("mesh")?.issue(folder.path(), &["host-1"])?;
    for (from, to) in [("cert.pem", "tls.crt"), ("key.pem", "tls.key"), ("ca.pem", "ca.crt")] {
        std::fs::rename(files.path(from), files.path(to))?;
    }
    let text = text
        .replace(&format!("/etc/{name}/tls"), &here.to_string())
        .replace(&format!("/var/lib/{name}"), &format!("{here}/data"));
    let config = folder.path().join("config.toml");
    std::fs::write(&config, &text)?;
    let arguments = ["check-config", "--config", config.to_str().unwrap_or_default()];
    let output = daemon::run(program, &arguments).await?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}\n{text}");
    Ok(())
}

#[tokio::test]
async fn the_sample_configurations_are_right() -> Result<()> {
    check("tower-server", "tower", &deployed("config/tower.toml")?).await?;
    check("beacon-agent", "beacon", &deployed("config/beacon.toml")?).await
}

#[tokio::test]
async fn the_configuration_in_the_manifest_of_tower_is_right() -> Result<()> {
    let manifest = deployed("kubernetes/tower.yaml")?;
    let (_, block) = manifest.split_once("  tower.toml: |\n").context("no tower.toml in it")?;
    let lines = block.lines().map_while(|line| line.strip_prefix("    "));
    check("tower-server", "tower", &lines.collect::<Vec<_>>().join("\n")).await
}

#[tokio::test]
async fn the_variables_in_the_manifest_of_the_beacon_are_those_of_flags() -> Result<()> {
    let help = String::from_utf8(daemon::run("beacon-agent", &["--help"]).await?.stdout)?;
    let manifest = deployed("kubernetes/beacon.yaml")?;
    let names = manifest.split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'));
    let mut count = 0;
    for name in names.filter(|name| name.starts_with("BEACON_")) {
        assert!(help.contains(&format!("[env: {name}=")), "{name} is no variable of {help}");
        count += 1;
    }
    assert!(count >= 5, "{count} variables are found");
    Ok(())
}
