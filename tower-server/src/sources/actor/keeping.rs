//! Keeps what is on disk in step, off the hot path: not too often, one write of each file at a time, in
//! threads that may block. An operator's word is kept before it is acknowledged.

use std::{
    io,
    time::{Duration, Instant},
};

use actix::prelude::*;
use tokio::{
    sync::oneshot,
    task::{JoinError, spawn_blocking},
};

use super::SourceActor;
use crate::sources::{disk::Disk, guard::Now};

/// The least time between two snapshots. What a crash loses is only newness: the source tells it again.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5);

/// The least time between two writes of the holds that nobody waits for.
const HOLDS_EVERY: Duration = Duration::from_secs(1);

/// Whether something is on disk; if not, why.
pub(super) type Kept = Result<(), String>;

/// The files, and what is to be done about them.
pub(super) struct Keeping {
    pub(super) disk: Disk,
    snapshot: File,
    holds: File,
}

/// One file.
#[derive(Default)]
struct File {
    /// Whether the last state is not on disk.
    dirty: bool,
    /// Whether a state is being written.
    busy: bool,
    not_before: Option<Instant>,
    /// Who wants to know when the state of now is on disk.
    waiting: Vec<oneshot::Sender<Kept>>,
}

impl Keeping {
    pub(super) fn new(disk: Disk) -> Self {
        Self { disk, snapshot: File::default(), holds: File::default() }
    }

    /// What is published has changed.
    pub(super) fn snapshot_is_old(&mut self) {
        self.snapshot.dirty = true;
    }

    /// Tells when what is published now is on disk.
    pub(super) fn wait_for_snapshot(&mut self) -> oneshot::Receiver<Kept> {
        self.snapshot.wait()
    }

    /// Tells when what is held now is on disk.
    pub(super) fn wait_for_holds(&mut self) -> oneshot::Receiver<Kept> {
        self.holds.wait()
    }
}

impl File {
    fn wait(&mut self) -> oneshot::Receiver<Kept> {
        let (sender, receiver) = oneshot::channel();
        self.dirty = true;
        self.waiting.push(sender);
        receiver
    }

    /// Whether to write now. Who waits for that is told when it is done.
    fn begin(&mut self, every: Duration, now: Instant) -> Option<Vec<oneshot::Sender<Kept>>> {
        let early = self.waiting.is_empty() && self.not_before.is_some_and(|at| now < at);
        if !self.dirty || self.busy || early {
            return None;
        }
        self.dirty = false;
        self.busy = true;
        self.not_before = Some(now + every);
        Some(std::mem::take(&mut self.waiting))
    }

    fn end(&mut self, what: &'static str, source: &str, kept: &Kept, waiting: Vec<oneshot::Sender<Kept>>) {
        self.busy = false;
        if let Err(failure) = kept {
            self.dirty = true;
            tracing::error!(
                source,
                what,
                failure,
                "the disk does not keep what it should; the last one stays"
            );
        }
        for sender in waiting {
            // Who does not listen any more does not wait.
            let _ = sender.send(kept.clone());
        }
    }
}

impl SourceActor {
    /// Writes what is to be written now.
    pub(super) fn keep(&mut self, ctx: &mut Context<Self>) {
        let now = Now::read();
        self.keep_holds(now, ctx);
        // What is on its way to the store counts as published; what waits behind it does not, and may be all
        // that somebody waits for. A store that is gone too is not waited for.
        if !self.publishing || self.stopping {
            self.keep_snapshot(now, ctx);
        }
    }

    fn keep_holds(&mut self, now: Now, ctx: &mut Context<Self>) {
        self.keeping.holds.dirty |= self.model.guard().is_record_old();
        let Some(waiting) = self.keeping.holds.begin(HOLDS_EVERY, now.at) else { return };
        let (disk, record) = (self.keeping.disk.clone(), self.model.guard().record(now));
        let write = spawn_blocking(move || disk.write_holds(&record)).into_actor(self);
        ctx.spawn(write.map(|written, actor, ctx| {
            actor.keeping.holds.end("holds", &actor.spec.id, &kept(written), waiting);
            // What changed meanwhile, and somebody waits for, is not to wait for the next tick.
            actor.keep(ctx);
        }));
    }

    fn keep_snapshot(&mut self, now: Now, ctx: &mut Context<Self>) {
        // Before the first complete reading there is nothing that is good to keep.
        if self.model.position().is_none() {
            return;
        }
        let Some(waiting) = self.keeping.snapshot.begin(SNAPSHOT_EVERY, now.at) else { return };
        let (disk, saved) = (self.keeping.disk.clone(), self.model.save());
        self.model.guard().snapshot_taken();
        let write = spawn_blocking(move || saved.map_or(Ok(()), |saved| disk.write_snapshot(&saved)));
        ctx.spawn(write.into_actor(self).map(|written, actor, ctx| {
            let kept = kept(written);
            actor.model.guard().snapshot_written(kept.is_ok());
            actor.keeping.snapshot.end("snapshot", &actor.spec.id, &kept, waiting);
            actor.keep(ctx);
        }));
    }
}

fn kept(written: Result<io::Result<()>, JoinError>) -> Kept {
    match written {
        Ok(result) => result.map_err(|error| error.to_string()),
        // What panicked there must not go unnoticed here.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
