//! What a source knows, and what it has published of it. Plain logic: no IO, no actor, no clock. Whoever
//! reads the source hands in [`Input`]s; what goes out are transactions that hold true differences only.
//!
//! A reading is either complete, a [`Load`], or a list of [`Change`]s to the one before. Only a complete
//! one replaces what was known, and only if it is a continuation of it.

mod endpoint;
mod endpoints;
mod names;
mod problems;
mod registrations;
mod services;
mod weights;

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tower_common::store::Transaction;
use tower_proto::v1;

pub use self::problems::Problem;
use self::registrations::Registrations;
pub(super) use self::registrations::{Entry, MAX_MEMBERS, Place, check_service_name};

/// What is told to a source's model.
#[derive(Debug)]
pub(super) enum Input {
    /// The source cannot be read at present. What is known stays.
    OutOfTouch {
        /// Why, for people.
        reason: String,
    },
    /// The source was read in full.
    Loaded(Load),
    /// Some of it was read again.
    Changed {
        /// What was found.
        changes: Vec<Change>,
        /// The highest position seen while reading.
        index: u64,
        /// How many events made it read.
        events: u64,
    },
    /// A host name was looked up.
    Resolved {
        /// The name.
        name: Arc<str>,
        /// Its addresses, or why there are none.
        addresses: Result<Vec<IpAddr>, String>,
    },
}

/// A complete reading.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Which history the positions count in. None if what is to be read does not exist.
    pub(super) incarnation: Option<String>,
    /// The highest position seen while reading.
    pub(super) index: u64,
    /// Where services are registered.
    pub(super) places: Vec<Place>,
    /// What is registered.
    pub(super) entries: Vec<Entry>,
    /// What could not be used. All that is known at these paths and below stays.
    pub(super) kept: Vec<Problem>,
    /// What people should know of it all the same.
    pub(super) warning: Option<String>,
}

/// A difference to the reading before.
#[derive(Debug)]
pub(super) enum Change {
    /// A place is there.
    Place(Place),
    /// An entry is there.
    Entry(Entry),
    /// Something could not be used; what is known at this path stays.
    Kept(Problem),
    /// Nothing is at this path any more.
    Gone {
        /// The path.
        path: Arc<str>,
        /// A position at which it was certainly gone.
        index: u64,
    },
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Events that the source sent.
    pub events: u64,
    /// Complete readings.
    pub reloads: u64,
    /// Complete readings after the source had been out of touch.
    pub reconnects: u64,
    /// Members or files that turned out to be unusable.
    pub malformed: u64,
    /// Oddities in members that were used all the same.
    pub remarks: u64,
}

/// A source's model.
#[derive(Debug)]
pub(super) struct Model {
    id: Arc<str>,
    optional: bool,
    lost_after: Duration,
    registrations: Registrations,
    /// Whether there has been a complete reading, and every name in it has been looked up once.
    complete: bool,
    out_of_touch: Option<OutOfTouch>,
    /// Why the last complete reading was not used.
    refused: Option<String>,
    warning: Option<String>,
    position: Option<Position>,
    published: Option<v1::SourceStatus>,
    counters: Counters,
}

/// How far the source has been read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Position {
    /// Which history the index counts in.
    pub incarnation: String,
    /// Everything up to it is known.
    pub index: u64,
}

#[derive(Debug)]
struct OutOfTouch {
    since: Instant,
    reason: String,
}

/// Whether a complete reading may replace what is known.
enum Verdict {
    Continues(Position),
    Refused(String),
}

impl Model {
    /// A model that knows nothing. A source out of touch for `lost_after` is lost.
    pub(super) fn new(scope: &str, id: Arc<str>, optional: bool, lost_after: Duration) -> Self {
        Self {
            registrations: Registrations::new(scope, id.clone()),
            id,
            optional,
            lost_after,
            complete: false,
            out_of_touch: None,
            refused: None,
            warning: None,
            position: None,
            published: None,
            counters: Counters::default(),
        }
    }

    /// Takes in what was read.
    pub(super) fn handle(&mut self, input: Input, now: Instant) {
        match input {
            Input::OutOfTouch { reason } => match &mut self.out_of_touch {
                Some(out) => out.reason = reason,
                None => self.out_of_touch = Some(OutOfTouch { since: now, reason }),
            },
            Input::Loaded(load) => self.load(load),
            Input::Changed { changes, index, events } => {
                self.counters.events += events;
                // Without a reading to build on, or when the last one was of another history, only the
                // next complete one counts.
                if let Some(position) = self.position.as_mut().filter(|_| self.refused.is_none()) {
                    position.index = position.index.max(index);
                    for change in changes {
                        self.apply(change);
                    }
                }
            }
            Input::Resolved { name, addresses } => {
                let index = self.position.as_ref().map_or(0, |position| position.index);
                self.registrations.resolve(&name, addresses, index);
            }
        }
        self.complete |= self.position.is_some() && !self.registrations.names().any_unanswered();
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Place(place) => self.registrations.put_place(place),
            Change::Entry(entry) => {
                self.counters.remarks += entry.remarks;
                self.registrations.put_entry(entry);
            }
            Change::Kept(problem) => {
                self.counters.malformed += u64::from(self.registrations.keep(problem));
            }
            Change::Gone { path, index } => self.registrations.remove(&path, index),
        }
    }

    fn load(&mut self, load: Load) {
        self.counters.reloads += 1;
        if self.out_of_touch.take().is_some() && self.position.is_some() {
            self.counters.reconnects += 1;
        }
        match self.judge(&load) {
            Verdict::Continues(position) => {
                self.counters.remarks += load.entries.iter().map(|entry| entry.remarks).sum::<u64>();
                self.position = Some(position);
                self.refused = None;
                self.warning = load.warning;
                self.counters.malformed +=
                    self.registrations.replace(load.places, load.entries, load.kept, load.index);
            }
            Verdict::Refused(reason) => self.refused = Some(reason),
        }
    }

    /// A complete reading of another history, or of nothing at all, is no continuation: it would take
    /// away what is known, when a folder was deleted by mistake, or an ensemble restored from a backup.
    fn judge(&self, load: &Load) -> Verdict {
        let new = Position { incarnation: load.incarnation.clone().unwrap_or_default(), index: load.index };
        let Some(held) = &self.position else { return Verdict::Continues(new) };
        if load.incarnation.is_some() && new.incarnation == held.incarnation {
            return Verdict::Continues(Position { index: held.index.max(new.index), ..new });
        }
        let nothing_to_lose = self.registrations.is_empty();
        match &load.incarnation {
            Some(_) if nothing_to_lose => Verdict::Continues(new),
            Some(found) => Verdict::Refused(format!(
                "incarnation {found:?} was found where {:?} was read before; what is known stays; restart Tower to adopt it",
                held.incarnation
            )),
            // The position stays, so that nothing that was said before counts for less.
            None if nothing_to_lose => Verdict::Continues(held.clone()),
            None => Verdict::Refused(
                load.warning.clone().unwrap_or_else(|| "what was read before is gone".to_owned()),
            ),
        }
    }

    /// What has changed since the last call, if anything has. That the position moved and nothing else is
    /// only worth a transaction if `position_alone`.
    pub(super) fn take_transaction(&mut self, now: Instant, position_alone: bool) -> Option<Transaction> {
        let (upserts, removals) = self.registrations.take_differences();
        let status = self.status(now);
        if upserts.is_empty() && removals.is_empty() {
            let same = self.published.as_ref().is_some_and(|published| {
                *published == status || (!position_alone && differs_in_index_alone(published, &status))
            });
            if same {
                return None;
            }
        }
        self.published = Some(status.clone());
        Some(Transaction { upserts, removals, sources: vec![status] })
    }

    fn status(&self, now: Instant) -> v1::SourceStatus {
        let position = self.position.as_ref().filter(|_| self.complete);
        v1::SourceStatus {
            source: self.id.to_string(),
            state: self.state(now).0.into(),
            position: position.map(|position| v1::Position {
                source: self.id.to_string(),
                incarnation: position.incarnation.clone(),
                index: position.index,
            }),
            optional: self.optional,
        }
    }

    /// The state, and for people the reason.
    pub(super) fn state(&self, now: Instant) -> (v1::SourceState, Option<&str>) {
        let out = self.out_of_touch.as_ref();
        let reason = out.map(|out| out.reason.as_str()).or(self.refused.as_deref());
        let state = match out {
            _ if !self.complete => v1::SourceState::Loading,
            Some(out) if now.saturating_duration_since(out.since) >= self.lost_after => v1::SourceState::Lost,
            Some(_) => v1::SourceState::Stale,
            None if self.refused.is_some() => v1::SourceState::Stale,
            None => v1::SourceState::Live,
        };
        (state, reason.or(self.warning.as_deref()))
    }

    /// How far the source has been read.
    pub(super) fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// How many services and endpoints there are.
    pub(super) fn sizes(&self) -> (usize, usize) {
        self.registrations.sizes()
    }

    /// What is wrong, by path.
    pub(super) fn problems(&self) -> impl ExactSizeIterator<Item = Problem> {
        self.registrations.problems().iter()
    }

    /// Totals since the start.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// Host names that have appeared since the last call, and were never looked up.
    pub(super) fn take_new_names(&mut self) -> BTreeSet<Arc<str>> {
        self.registrations.take_new_names()
    }

    /// All host names.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.registrations.names().iter()
    }
}

fn differs_in_index_alone(one: &v1::SourceStatus, other: &v1::SourceStatus) -> bool {
    let without_index = |status: &v1::SourceStatus| {
        let mut status = status.clone();
        if let Some(position) = &mut status.position {
            position.index = 0;
        }
        status
    };
    without_index(one) == without_index(other)
}

#[cfg(test)]
mod tests;
