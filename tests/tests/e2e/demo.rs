//! `make demo`, as far as nobody has to watch it.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, Result};
use tokio::{process::Command, time::timeout};

/// It starts five processes, one of them a JVM.
const SHOWN: Duration = Duration::from_secs(120);

async fn check(flags: &[&str]) -> Result<()> {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_demo"));
    demo.args(["--once", "--ports", "ephemeral"]).args(flags);
    demo.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(SHOWN, demo.output()).await.context("the demo does not end")??;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    for line in ["both are served", "the traffic has moved"] {
        assert!(text.contains(line), "no {line:?}\n{text}");
    }
    Ok(())
}

#[tokio::test]
async fn with_files() -> Result<()> {
    check(&[]).await
}

#[tokio::test]
async fn with_zookeeper() -> Result<()> {
    check(&["--zookeeper"]).await
}
