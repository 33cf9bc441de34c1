//! A process that writes into a log and can be killed: this very program, asked to run [`child`] alone. It
//! tells on standard output what was acknowledged.

use std::{
    io::Write,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};
use tower_proto::v1;
use tower_server::event_log::{AppendError, EventLog, Options, Probe};

use super::places::{Place, body, entry, with_body};

const WORK: &str = "LOG_CHILD_WORK";
const TARGET: &str = "LOG_CHILD_TARGET";
const FOLDER: &str = "LOG_CHILD_FOLDER";

/// What a child does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work<'a> {
    /// [`script`], and is killed at this write, counted from 0.
    Script { killed_at: usize },
    /// Appends commands `NAME-FROM` up to `NAME-TO`, the last one left out, whatever others append.
    Commands { name: &'a str, from: u64, to: u64 },
}

/// A line that a child has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// This command has this index.
    Appended(String, u64),
    /// This is the newest checkpoint.
    Saved(u64),
}

/// A running child, killed when this is dropped.
pub(super) struct Running {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(super) fn start(place: &Place, work: Work<'_>) -> Result<Self> {
        let (target, folder) = place.arguments();
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--exact", "event_log::child::child", "--ignored", "--nocapture"])
            .env(WORK, work.to_text())
            .env(TARGET, target)
            .env(FOLDER, folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let lines = BufReader::new(process.stdout.take().context("no standard output")?).lines();
        Ok(Self { process, lines })
    }

    /// The next that it says; none when it has ended.
    pub(super) async fn next(&mut self) -> Result<Option<Said>> {
        while let Some(line) = self.lines.next_line().await? {
            if let Some(said) = Said::from_text(&line) {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }

    /// Kills it, and tells what it has said meanwhile.
    pub(super) async fn kill(mut self) -> Result<Vec<Said>> {
        self.process.start_kill()?;
        Ok(self.end().await?.0)
    }

    /// What it says until it ends, and how it does.
    pub(super) async fn end(&mut self) -> Result<(Vec<Said>, ExitStatus)> {
        let mut all = Vec::new();
        while let Some(said) = self.next().await? {
            all.push(said);
        }
        Ok((all, self.process.wait().await?))
    }
}

impl Work<'_> {
    fn to_text(self) -> String {
        match self {
            Self::Script { killed_at } => format!("script {killed_at}"),
            Self::Commands { name, from, to } => format!("commands {name} {from} {to}"),
        }
    }
}

impl Said {
    fn from_text(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["appended", id, index] => Some(Self::Appended(id.to_owned(), index.parse().ok()?)),
            ["saved", index] => Some(Self::Saved(index.parse().ok()?)),
            _ => None,
        }
    }

    fn say(&self) -> Result<()> {
        let line = match self {
            Self::Appended(id, index) => format!("\nappended {id} {index}\n"),
            Self::Saved(index) => format!("\nsaved {index}\n"),
        };
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes())?;
        Ok(out.flush()?)
    }
}

/// The entries of the script, and their bodies: small ones and large ones.
pub(super) fn script() -> Vec<(v1::LogEntry, Vec<Bytes>)> {
    let (small, large) = (body(1, 100), body(2, 1_200_000));
    let mut long = entry("long");
    long.reason = "x".repeat(100_000);
    vec![
        (with_body("small", &small), vec![small]),
        (with_body("large", &large), vec![large]),
        (long, Vec::new()),
        (entry("plain"), Vec::new()),
        (entry("last"), Vec::new()),
    ]
}

/// What is folded up to an entry.
pub(super) fn state(index: u64) -> Bytes {
    body(1000 + index, 700_000)
}

/// Appends what of the script is not in the log yet, with checkpoints after some, and tells.
pub(super) async fn follow(log: &EventLog, tell: impl Fn(Said) -> Result<()>) -> Result<()> {
    for (at, (entry, bodies)) in (0..).zip(script()) {
        let id = entry.command_id.clone();
        // What an earlier run has appended is found by its id.
        let index = log.append(at, entry, &bodies).await?;
        tell(Said::Appended(id, index))?;
        if [1, 3, 5].contains(&index) {
            log.save_checkpoint(index, state(index)).await?;
            tell(Said::Saved(index))?;
        }
    }
    Ok(())
}

#[ignore = "it is what other tests start, as a process of its own"]
#[tokio::test]
async fn child() -> Result<()> {
    let variable = |name: &str| std::env::var(name).with_context(|| format!("no {name}"));
    let (work, target, folder) = (variable(WORK)?, variable(TARGET)?, PathBuf::from(variable(FOLDER)?));
    let words: Vec<&str> = work.split(' ').collect();
    let open = async |probe| {
        let options = Options { run: format!("child-{}", std::process::id()), probe };
        EventLog::open(&target.parse()?, &folder, options).await.context("the log opens")
    };
    match words[..] {
        ["script", killed_at] => {
            let killed_at: usize = killed_at.parse()?;
            let writes = AtomicUsize::new(0);
            let probe = Probe::new(move |_| {
                if writes.fetch_add(1, Ordering::Relaxed) == killed_at {
                    die();
                }
            });
            follow(&open(probe).await?, |said| said.say()).await
        }
        ["commands", name, from, to] => {
            let log = open(Probe::default()).await?;
            for number in from.parse()?..to.parse::<u64>()? {
                insist(&log, &format!("{name}-{number}")).await?;
            }
            Ok(())
        }
        _ => anyhow::bail!("unknown work: {work}"),
    }
}

/// Appends a command, however often others are first, and says so.
async fn insist(log: &EventLog, id: &str) -> Result<()> {
    let mut at = *log.head().borrow();
    let index = loop {
        match log.append(at, entry(id), &[]).await {
            Ok(index) => break index,
            Err(AppendError::Conflict { head }) => at = head,
            // The server is away: it will be back.
            Err(AppendError::Unavailable(_) | AppendError::Unknown(_)) => at = *log.head().borrow(),
            Err(error) => return Err(error.into()),
        }
    };
    Said::Appended(id.to_owned(), index).say()
}

/// Ends this process as a power cut would, with nothing run any more.
fn die() -> ! {
    let _ = std::process::Command::new("/bin/sh").args(["-c", "kill -9 $PPID"]).status();
    loop {
        std::thread::park();
    }
}
