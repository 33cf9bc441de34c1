//! Thousands of Beacons in one thread.
//!
//! Each has a connection of its own, says and hears what a real Beacon does, and checks it. What they hold is
//! shared as long as it is the same, so that a Beacon costs a few hundred bytes and a few microseconds for
//! each delivery, and the cores are left to Tower.
//!
//! - [`http2`], [`messages`], [`connection`]: bytes, frames, gRPC's messages, sockets
//! - [`contents`]: what is received, decoded once
//! - [`state`]: what is held, kept once
//! - [`beacon`]: one Beacon's protocol
//! - [`marks`]: when a change came to whom
//! - [`board`], `run`: counters, and the thread

pub mod beacon;
pub mod board;
pub mod connection;
pub mod contents;
pub mod http2;
pub mod marks;
pub mod messages;
mod run;
pub mod state;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{self, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use mio::{Poll, Waker};
use tower_common::clock;

use self::{board::Board, connection::Target, marks::Marks, run::Command};

/// The name of the thread, by which its CPU time is found.
pub const THREAD: &str = "swarm";

/// Between two looks at the board.
const LOOK: Duration = Duration::from_millis(2);

/// The swarm. Its thread ends when this is dropped.
#[derive(Debug)]
pub struct Swarm {
    /// How many Beacons there are.
    pub count: usize,
    /// Changes that are waited for.
    pub marks: Marks,
    /// What has been counted.
    pub board: Arc<Board>,
    commands: Option<Sender<Command>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Swarm {
    /// So many Beacons that hold nothing, and are not connected.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(count: usize) -> Result<Self> {
        let (commands, receiver) = mpsc::channel();
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), run::WAKER)?;
        let (marks, board) = (Marks::default(), Arc::new(Board::default()));
        let (of_loop, for_loop) = (marks.clone(), board.clone());
        let run = move || {
            let run = run::Loop::new(count, poll, receiver, of_loop, for_loop.clone()).run();
            if let Err(error) = run {
                for_loop.tell(&for_loop.faults, format!("the swarm has ended: {error}"));
            }
        };
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(run);
        let thread = Some(thread.context("the swarm has no thread")?);
        Ok(Self { count, marks, board, commands: Some(commands), waker, thread })
    }

    /// All of these connect at once, and connect again when they are cut off.
    pub fn connect(&self, beacons: Range<usize>, target: &Target) -> Result<Instant> {
        let start = clock::monotonic();
        self.command(Command::Connect(beacons, target.clone()))?;
        Ok(start)
    }

    /// These close their connections.
    pub fn disconnect(&self, beacons: Range<usize>) -> Result<()> {
        self.command(Command::Disconnect(beacons))
    }

    /// These stop reading, or read again.
    pub fn pause(&self, beacons: Range<usize>, paused: bool) -> Result<()> {
        self.command(Command::Pause(beacons, paused))
    }

    /// These hold what the first Beacon holds, as if they had it from their disks.
    pub fn restore(&self, beacons: Range<usize>) -> Result<()> {
        self.command(Command::Restore(0, beacons))
    }

    /// What the floor sends counts for this mark, as soon as this returns.
    pub fn floor(&self, mark: usize) -> Result<()> {
        let (answer, obeyed) = mpsc::channel();
        self.command(Command::Floor(mark, answer))?;
        obeyed.recv().context("the swarm has ended")
    }

    /// Waits until exactly so many Beacons have what their Tower has.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn until_equal(&self, count: usize, limit: Duration) -> Result<()> {
        self.until(limit, || {
            let equal = self.board.equal.load(Relaxed);
            (equal == count).then_some(()).ok_or_else(|| format!("{equal} of {count} Beacons are equal"))
        })
        .await
    }

    /// Waits until so many Beacons have a change.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn until_seen(&self, mark: usize, count: usize, limit: Duration) -> Result<()> {
        self.until(limit, || {
            let seen = self.marks.seen(mark);
            (seen >= count).then_some(()).ok_or_else(|| format!("{seen} of {count} Beacons have a change"))
        })
        .await
    }

    async fn until(&self, limit: Duration, look: impl Fn() -> Result<(), String>) -> Result<()> {
        let start = clock::monotonic();
        while let Err(far) = look() {
            let told = self.board.told();
            ensure!(start.elapsed() < limit, "after {limit:?}: {far}; {told:#?}");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until all Beacons hold exactly what their Tower has, by its digest, which is to be so many
    /// resources.
    ///
    /// # Errors
    /// If that takes too long, or one of them ever heard what no Tower may say, such as a position that goes
    /// back.
    pub async fn verify(&self, resources: usize, limit: Duration) -> Result<()> {
        self.until(limit, || {
            let (answer, held) = mpsc::channel();
            let asked = self.command(Command::Audit(answer)).map_err(|error| error.to_string());
            let held = asked.and_then(|()| held.recv().map_err(|_| "the swarm has ended".to_owned()))?;
            match held.as_slice() {
                [all] if all.beacons == self.count && all.resources == resources => Ok(()),
                _ => Err(format!(
                    "{} Beacons do not hold the same {resources} resources: {held:?}",
                    self.count
                )),
            }
        })
        .await?;
        let faults = self.board.faults.load(Relaxed);
        ensure!(faults == 0, "{faults} faults: {:#?}", self.board.told());
        Ok(())
    }

    fn command(&self, command: Command) -> Result<()> {
        let commands = self.commands.as_ref().context("the swarm has ended")?;
        commands.send(command).context("the swarm has ended")?;
        Ok(self.waker.wake()?)
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
