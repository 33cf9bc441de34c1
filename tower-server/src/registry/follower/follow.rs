//! Following the log: entries are folded, what they change is published, and now and then a checkpoint is
//! made.

use std::{sync::Arc, time::Duration};

use tower_common::{clock, store::Transaction};
use tower_proto::v1;
use tracing::{error, info, warn};

use super::{EventLog, Follower, LogState, source};
use crate::{
    event_log::{self, ReadError},
    registry::{publication::Bundles, state::State},
    store_actor::{Describe, Publish},
};

/// So many entries are folded before what they changed is published.
const BATCH: usize = 1_000;

/// What could not be read is tried again after this.
pub(super) const AGAIN: Duration = Duration::from_millis(500);

/// A log that cannot be followed is looked at again after this.
pub(super) const MENDED: Duration = Duration::from_secs(5);

impl Follower {
    /// Begins with what is newest: what is on this Tower's disk, or the log's checkpoint.
    pub(super) async fn begin(&mut self, log: &EventLog) {
        let kept = self.shared.status.borrow().incarnation == log.incarnation();
        let kept = if kept { self.shared.state.read().index() } else { 0 };
        self.checkpoint = 0;
        self.published = false;
        match checkpoint(log).await {
            Some(state) if state.index() >= kept => {
                self.checkpoint = state.index();
                *self.shared.state.write() = Arc::new(state);
            }
            _ if kept > 0 && *log.head().borrow() >= kept => {}
            // What was kept is of another log, or of one that has lost what was in it.
            _ => *self.shared.state.write() = Arc::new(State::default()),
        }
    }

    /// Folds what there is, publishes it, and tells how the log is. Returns whether something is to be tried
    /// again without anything having changed.
    pub(super) async fn follow(&mut self, log: &EventLog) -> bool {
        let mut failed = None;
        // Somebody may have put it right. What was kept says nothing about the entries before it, so then it takes
        // a new start.
        let before = if self.frozen { self.stopped.clone() } else { self.stopped.take() };
        if before.is_some() && !self.published {
            self.begin(log).await;
        }
        while self.stopped.is_none() {
            match self.fold(log).await {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if let Some(reason) = self.stopped.as_ref().filter(|reason| before.as_ref() != Some(reason)) {
            error!(
                reason,
                "the event log cannot be followed any further; what was folded stands, and nothing can be changed"
            );
        }
        if self.stopped.is_some() && !self.published && self.serve_kept(Some(log)).await {
            self.published = true;
            self.frozen = true;
            self.dirty.clear();
        }
        let reason = match (&self.stopped, &failed, &*log.state().borrow()) {
            (Some(reason), ..) => reason.clone(),
            (None, Some(error), _) => error.to_string(),
            (None, None, event_log::State::Live) => String::new(),
            (None, None, event_log::State::Unreachable { why, .. }) => {
                format!("the log is out of reach: {why}")
            }
            (None, None, event_log::State::Refused { why }) => format!("the log is refused: {why}"),
        };
        // A part of the log is no state to begin with, and one that was changed is none either.
        let no_state = failed.is_some() || self.broken;
        let unread = (no_state && !self.published) || self.publish(log).await;
        let read = self.published && !unread;
        self.stand(log, &reason, read);
        self.tell().await;
        self.keep(log).await;
        failed.is_some() || unread || self.stopped.is_some()
    }

    /// Folds the next entries. Returns how many.
    async fn fold(&mut self, log: &EventLog) -> Result<usize, ReadError> {
        self.broken = false;
        let from = self.shared.state.read().index() + 1;
        let entries = match log.read(from, BATCH).await {
            Ok(entries) => entries,
            Err(error @ ReadError::Unavailable(_)) => return Err(error),
            Err(error) => {
                self.stopped = Some(error.to_string());
                self.broken = true;
                return Ok(0);
            }
        };
        for entry in &entries {
            let applied = Arc::make_mut(&mut *self.shared.state.write()).apply(entry);
            match applied {
                Ok(applied) => self.dirty.extend(applied.services),
                Err(refused) => {
                    self.stopped = Some(format!("{refused} ({})", log.path_of(entry.index)));
                    break;
                }
            }
        }
        Ok(entries.len())
    }

    /// Publishes what has changed, all of it in one transaction. Returns whether a part has to wait, because it
    /// cannot be read now.
    async fn publish(&mut self, log: &EventLog) -> bool {
        if !self.published {
            self.dirty.extend(self.publication.services().map(str::to_owned));
            self.dirty.extend(self.shared.state.read().services().map(|(name, _)| name.to_owned()));
        }
        let wanted: Vec<_> = {
            let state = self.shared.state.read();
            self.dirty.iter().flat_map(|name| self.publication.wanted(&state, name)).collect()
        };
        let mut bundles = Bundles::new();
        for wanted in wanted {
            let bundle = match log.body(&wanted.bundle).await {
                Ok(bundle) => Ok(bundle),
                Err(ReadError::Unavailable(_)) => return true,
                Err(error) => Err(error.to_string()),
            };
            bundles.insert(wanted.release, bundle);
        }
        let mut transaction = Transaction::default();
        let dirty = std::mem::take(&mut self.dirty);
        let index = {
            let state = self.shared.state.read();
            for name in &dirty {
                self.publication.update(&state, name, &bundles, &mut transaction);
            }
            state.index()
        };
        let assigned: Vec<String> = assignments(&transaction).map(str::to_owned).collect();
        let first = !self.published;
        if first || !transaction.upserts.is_empty() || !transaction.removals.is_empty() {
            transaction.sources = vec![source(log.incarnation(), index, v1::SourceState::Live)];
            if !self.send(transaction).await {
                return false;
            }
        }
        self.published = true;
        if !assigned.is_empty() {
            let revision = self.revision().await;
            let mut revisions = self.shared.revisions.write();
            revisions.extend(assigned.into_iter().map(|service| (service, revision)));
        }
        self.keeper.note(index);
        self.shared.applied.send_if_modified(|applied| std::mem::replace(applied, index) != index);
        false
    }

    /// Notes how the log is.
    fn stand(&self, log: &EventLog, reason: &str, read: bool) {
        let problems = self.publication.problems();
        let index = *self.shared.applied.borrow();
        self.shared.status.send_if_modified(|status| {
            let state = match (read, reason.is_empty()) {
                (true, true) => LogState::Live,
                (true, false) => LogState::Stale,
                (false, _) => status.state,
            };
            let new = super::Status {
                state,
                reason: reason.to_owned(),
                since_unix_ms: if state == status.state {
                    status.since_unix_ms
                } else {
                    clock::unix_millis()
                },
                incarnation: log.incarnation().to_owned(),
                index,
                problems: problems.clone(),
            };
            if new.state != status.state {
                info!(state = ?new.state, reason, index, "the registry's state changed");
            }
            std::mem::replace(status, new.clone()) != new
        });
    }

    /// Tells Beacons how the log is.
    pub(super) async fn tell(&mut self) {
        let status = self.shared.status.borrow().clone();
        let state = match status.state {
            LogState::Loading => v1::SourceState::Loading,
            LogState::Live => v1::SourceState::Live,
            LogState::Stale => v1::SourceState::Stale,
        };
        let told = source(&status.incarnation, status.index, state);
        let transaction = Transaction { sources: vec![told], ..Transaction::default() };
        self.send(transaction).await;
    }

    /// The store's revision, with all that was published.
    async fn revision(&self) -> u64 {
        self.options.store.send(Describe).await.map_or(u64::MAX, |summary| summary.revision)
    }

    pub(super) async fn send(&self, transaction: Transaction) -> bool {
        let sent = self.options.store.send(Publish(transaction)).await;
        if let Err(error) = &sent {
            error!(%error, "the store is gone");
        }
        sent.is_ok()
    }

    /// Makes a checkpoint when it is time.
    async fn keep(&mut self, log: &EventLog) {
        let bytes = {
            let state = self.shared.state.read();
            if state.index() < self.checkpoint + self.options.checkpoint_every {
                return;
            }
            self.checkpoint = state.index();
            state.to_checkpoint()
        };
        if let Err(error) = log.save_checkpoint(self.checkpoint, bytes.into()).await {
            warn!(index = self.checkpoint, %error, "a checkpoint cannot be kept; the next one is tried later");
        }
    }
}

async fn checkpoint(log: &EventLog) -> Option<State> {
    let again = "the log is folded from its start";
    let found = match log.latest_checkpoint().await {
        Ok(found) => found?,
        Err(error) => {
            warn!(%error, "there is no checkpoint to be had; {again}");
            return None;
        }
    };
    match State::from_checkpoint(&found.state) {
        Ok(state) if state.index() == found.index => Some(state),
        Ok(state) => {
            warn!(says = state.index(), of = found.index, "a checkpoint is of another entry; {again}");
            None
        }
        Err(error) => {
            warn!(%error, "a checkpoint cannot be read; {again}");
            None
        }
    }
}

fn assignments(transaction: &Transaction) -> impl Iterator<Item = &str> {
    let removed = transaction.removals.iter().map(|(key, _)| key);
    let keys = transaction.upserts.iter().map(|resource| resource.key()).chain(removed);
    keys.filter(|key| key.kind == i32::from(v1::Kind::Assignment)).map(|key| &*key.service)
}
