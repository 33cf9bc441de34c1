//! `pcloud`, as a person or a script runs it.

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use crate::{Tower, programs};

/// A command that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// A person at a command line, with a home of their own.
#[derive(Debug)]
pub struct Pcloud {
    tower: String,
    token: Option<String>,
    home: TempDir,
}

/// What became of a command.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it told beside.
    pub stderr: String,
}

impl Pcloud {
    /// Whoever has the token that Tower made when it started first.
    pub fn admin(tower: &Tower) -> Result<Self> {
        let token = tower.admin_token().context("Tower has made no token")?;
        Self::with(tower, Some(token))
    }

    /// Whoever has this token, or none.
    pub fn with(tower: &Tower, token: Option<String>) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("pcloud-").tempdir()?;
        Ok(Self { tower: format!("http://{}", tower.http()), token, home })
    }

    /// Their home, in which files can be put: commands run there.
    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// Runs a command, and returns what became of it.
    pub async fn run(&self, arguments: &[&str]) -> Result<Ran> {
        self.run_with(arguments, "").await
    }

    /// The same, with something on standard input.
    pub async fn run_with(&self, arguments: &[&str], input: &str) -> Result<Ran> {
        let mut command = Command::new(programs::ours("pcloud")?);
        for variable in programs::variables_to_hide() {
            command.env_remove(variable);
        }
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env_remove("XDG_CONFIG_HOME")
            .env("PCLOUD_TOWER", &self.tower)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(token) = &self.token {
            command.env("PCLOUD_TOKEN", token);
        }
        let mut child = command.spawn().context("cannot run pcloud")?;
        let mut stdin = child.stdin.take().context("no standard input")?;
        // A command that does not read its input may be gone by now.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = timeout(DEADLINE, child.wait_with_output()).await;
        let output = output.with_context(|| format!("pcloud {arguments:?} does not end"))??;
        Ok(Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
        })
    }

    /// Runs a command that has to succeed, and returns what it printed.
    pub async fn ok(&self, arguments: &[&str]) -> Result<String> {
        self.fails(0, arguments).await.map(|ran| ran.stdout)
    }

    /// Runs a command that has to end with this exit code.
    pub async fn fails(&self, code: i32, arguments: &[&str]) -> Result<Ran> {
        let ran = self.run(arguments).await?;
        ensure!(ran.code == code, "pcloud {arguments:?}: expected exit code {code}, and got {ran:?}");
        Ok(ran)
    }

    /// Writes a file into their home.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::write(self.home.path().join(name), text).with_context(|| name.to_owned())
    }
}
