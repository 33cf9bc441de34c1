//! Child processes that cannot outlive this one.
//!
//! `Drop` is not enough for that: statics are never dropped, and neither is anything when a process
//! aborts or is killed. So a small shell stands between us and each child, and ends it when the pipe
//! that we hold open is closed, which the kernel does for us in any case.

use std::{
    fs::File,
    io::Write,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{log::Log, poll, programs};

const SCRIPT: &str = include_str!("leash.sh");

/// What to run, and where its output goes.
#[derive(Debug)]
pub struct Start<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Where its standard output and standard error are appended.
    pub output: File,
    /// A folder to remove when the program has ended, for what no `Drop` will clean up.
    pub litter: Option<&'a Path>,
}

/// A running child process, killed when this is dropped or when our process ends.
#[derive(Debug)]
pub struct Leash {
    shell: Child,
    line: Option<ChildStdin>,
}

impl Leash {
    /// Starts the program. That it cannot be run shows only later, as exit status 126 or 127.
    pub fn start(start: Start<'_>) -> Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", SCRIPT, "leash"])
            .arg(start.litter.unwrap_or(Path::new("")))
            .arg(start.program)
            .args(start.arguments)
            .stdin(Stdio::piped())
            .stdout(start.output.try_clone().context("cannot share the log file")?)
            .stderr(start.output)
            // Ctrl-C at a terminal goes to the whole foreground group. Only we are to hear it, and
            // end the children in the order that we choose.
            .process_group(0);
        for name in programs::variables_to_hide() {
            shell.env_remove(name);
        }
        let mut shell = shell.spawn().with_context(|| format!("cannot start {}", start.program.display()))?;
        let line = shell.stdin.take();
        Ok(Self { shell, line })
    }

    /// Sends SIGTERM to the program.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal("TERM")
    }

    /// Sends a signal to the program, by its name without `SIG`.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        match &mut self.line {
            Some(line) => writeln!(line, "{name}").context("the process has already ended"),
            None => bail!("the process has already been killed"),
        }
    }

    /// Kills the program with SIGKILL, and returns when it is gone.
    ///
    /// This blocks, for the few milliseconds that the kernel needs, so that `Drop` can promise the
    /// same: after it, ports and files are free.
    pub fn kill(&mut self) {
        drop(self.line.take());
        // It fails only for a child that was waited for before, which is what is wanted.
        let _ = self.shell.wait();
    }

    /// How the program ended, if it has. A signal is reported the shell's way, as 128 + its number.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.shell.try_wait().context("cannot wait for the process")
    }

    /// Tries again until `attempt` succeeds, or gives up: when `deadline` has passed, and at once when the
    /// program has ended, because waiting for the dead is a waste. An error shows the end of the `log`.
    pub async fn until<T>(
        &mut self,
        log: &Log,
        deadline: Duration,
        what: &str,
        mut attempt: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let outcome =
            poll::until(deadline, format!("{} {what}", log.name()), async || match self.exited()? {
                Some(status) => Ok(Err(status)),
                None => attempt().await.map(Ok),
            });
        match outcome.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(status)) => bail!("{} has ended, {status}\n{}", log.name(), log.tail()),
            Err(error) => Err(error.context(log.tail())),
        }
    }

    /// Waits until the program has ended.
    pub async fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        poll::until(deadline, "the process ends", async || self.exited()?.context("it is still running"))
            .await
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, litter: Option<&Path>) -> Leash {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let output = tempfile::tempfile().expect("a temporary file");
        let program = Path::new("/bin/sh");
        Leash::start(Start { program, arguments: &arguments, output, litter }).expect("a shell")
    }

    #[tokio::test]
    async fn an_exit_status_comes_through() {
        let status = start("exit 7", None).wait(Duration::from_secs(10)).await;
        assert_eq!(status.expect("it ends").code(), Some(7));
    }

    #[tokio::test]
    async fn a_signal_comes_through() {
        let mut leash = start("trap 'exit 3' TERM; while :; do sleep 0.01; done", None);
        leash.terminate().expect("it runs");
        let code = leash.wait(Duration::from_secs(10)).await.expect("it ends").code();
        // The signal may come before the trap is set.
        assert!(matches!(code, Some(3 | 143)), "{code:?}");
    }

    #[tokio::test]
    async fn a_dropped_process_is_gone_and_its_litter_too() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let litter = folder.path().join("litter");
        std::fs::create_dir(&litter).expect("a folder");
        let pid = folder.path().join("pid");
        let script = format!("echo $$ > {}; exec sleep 1000", pid.display());
        let leash = start(&script, Some(&litter));
        let pid = poll::until(Duration::from_secs(10), "it has started", async || {
            let text = std::fs::read_to_string(&pid)?;
            text.trim().parse::<u32>().context("not yet written")
        })
        .await
        .expect("it starts");
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        drop(leash);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert!(!litter.exists());
    }
}
