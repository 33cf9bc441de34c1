//! What a source knows, and what it has published of it. Plain logic: no IO, no actor, no clock. Whoever
//! reads the source hands in [`Input`]s; what goes out are transactions that hold true differences only.
//!
//! A reading is either complete, a [`Load`], or a list of [`Change`]s to the one before. Only a complete
//! one replaces what was known, and only if it is a continuation of it; otherwise it is quarantined. What
//! is read no more leaves when the guard lets it.

mod endpoint;
mod endpoints;
mod input;
mod judge;
mod names;
mod problems;
mod quarantine;
mod registrations;
mod saved;
mod services;
mod weights;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use tower_common::store::Transaction;
use tower_proto::v1;

pub(crate) use self::registrations::check_service_name;
pub(super) use self::{
    endpoint::EndpointKey,
    input::{Change, Input, Load},
    registrations::{Entry, MAX_MEMBERS, Place},
    saved::{Saved, SavedEndpoint, SavedEntry},
};
use self::{judge::Verdict, quarantine::Quarantine, registrations::Registrations};
pub use self::{
    problems::Problem,
    quarantine::{AdoptError, QuarantineReport},
    registrations::BadServiceName,
};
use super::guard::{Guard, Now, Policy, Record};

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
    guard: Guard,
    /// Whether there has been a complete reading, and every name in it has been looked up once.
    complete: bool,
    /// Whether this process has read it. Before, what is known is what another one has left on disk.
    read: bool,
    out_of_touch: Option<OutOfTouch>,
    /// The last complete reading, if it was not used.
    quarantine: Option<Quarantine>,
    warning: Option<String>,
    position: Option<Position>,
    published: Option<v1::SourceStatus>,
    counters: Counters,
}

/// How far the source has been read.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
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

impl Model {
    /// A model that knows nothing. A source out of touch for `lost_after` is lost.
    pub(super) fn new(
        scope: &str,
        id: Arc<str>,
        optional: bool,
        lost_after: Duration,
        policy: Policy,
    ) -> Self {
        Self {
            registrations: Registrations::new(scope, id.clone()),
            guard: Guard::new(policy),
            id,
            optional,
            lost_after,
            complete: false,
            read: false,
            out_of_touch: None,
            quarantine: None,
            warning: None,
            position: None,
            published: None,
            counters: Counters::default(),
        }
    }

    /// Begins with what another process has left: the last good state, if there is one, and what was held.
    pub(super) fn restore(&mut self, saved: Option<Saved>, record: &Record, now: Now) {
        self.complete = saved.is_some();
        self.position = saved.as_ref().map(|saved| saved.position.clone());
        self.registrations.restore(saved.unwrap_or_default(), &mut self.guard, record, now);
    }

    /// The last good state, if there is one.
    pub(super) fn save(&self) -> Option<Saved> {
        self.position.clone().filter(|_| self.complete).map(|position| self.registrations.save(position))
    }

    /// Takes in what was read.
    pub(super) fn handle(&mut self, input: Input, now: Instant) {
        match input {
            Input::OutOfTouch { reason } => match &mut self.out_of_touch {
                Some(out) => out.reason = reason,
                None => self.out_of_touch = Some(OutOfTouch { since: now, reason }),
            },
            Input::Loaded(load) => self.load(load, now),
            Input::Changed { changes, index, events } => {
                self.counters.events += events;
                // Without a reading to build on only the next complete one counts.
                if let Some(quarantine) = &mut self.quarantine {
                    quarantine.apply(changes, index);
                } else if let Some(position) = &mut self.position {
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

    fn load(&mut self, load: Load, now: Instant) {
        self.counters.reloads += 1;
        self.guard.tidy(now);
        let away = self.out_of_touch.take().is_some();
        if away && self.position.is_some() {
            self.counters.reconnects += 1;
        }
        match self.judge(&load) {
            Verdict::Continues(position) => {
                // While it is quarantined a source is as good as out of touch.
                let quarantined = self.quarantine.take().is_some();
                if away || quarantined {
                    self.guard.reconnected(now);
                }
                self.replace(load, position);
            }
            Verdict::Quarantined(reason) => {
                self.quarantine = Some(Quarantine::new(reason, load));
            }
        }
    }

    fn replace(&mut self, load: Load, position: Position) {
        self.counters.remarks += load.entries.iter().map(|entry| entry.remarks).sum::<u64>();
        self.position = Some(position);
        self.read = true;
        self.warning = load.warning;
        self.counters.malformed +=
            self.registrations.replace(load.places, load.entries, load.kept, load.index);
    }

    /// Believes what was found, if it is what the operator saw. What differs passes without being held.
    pub(super) fn adopt(&mut self, expected: &str) -> Result<Position, AdoptError> {
        let not_quarantined = || AdoptError::NotQuarantined(self.id.to_string());
        let found = self.quarantine.as_ref().map(Quarantine::found).ok_or_else(not_quarantined)?;
        if found != expected {
            return Err(AdoptError::Another { expected: expected.to_owned(), found: found.to_owned() });
        }
        let (Some(quarantine), Some(held)) = (self.quarantine.take(), &self.position) else {
            return Err(not_quarantined());
        };
        let load = quarantine.into_load();
        let position = quarantine::adopted(held, &load);
        self.replace(load, position.clone());
        self.guard.accept();
        Ok(position)
    }

    /// The guard, to be asked and told by people.
    pub(super) fn guard(&mut self) -> &mut Guard {
        &mut self.guard
    }

    /// Whether what was found is not believed.
    pub(super) fn is_quarantined(&self) -> bool {
        self.quarantine.is_some()
    }

    /// What is quarantined.
    pub(super) fn quarantine(&self) -> Option<QuarantineReport> {
        Some(self.quarantine.as_ref()?.report(&self.id, self.position.clone()?))
    }

    /// When something may change by time alone.
    pub(super) fn next_judgement(&self) -> Option<Instant> {
        self.guard.next_judgement().filter(|_| !self.is_frozen())
    }

    /// Whether nothing that is heard, or not heard, of the source says that something is gone.
    fn is_frozen(&self) -> bool {
        self.out_of_touch.is_some() || self.quarantine.is_some() || !self.read
    }

    /// What has changed since the last call, if anything has. That the position moved and nothing else is
    /// only worth a transaction if `position_alone`.
    pub(super) fn take_transaction(&mut self, now: Instant, position_alone: bool) -> Option<Transaction> {
        let frozen = self.is_frozen();
        let (upserts, removals) = self.registrations.take_differences(&mut self.guard, frozen, now);
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
        let quarantine = self.quarantine.as_ref().map(Quarantine::reason);
        let unread = "not read since Tower started; what is known is what was last kept on disk";
        let unread = Some(unread).filter(|_| self.complete && !self.read);
        let reason = out.map(|out| out.reason.as_str()).or(quarantine).or(unread);
        let state = match out {
            _ if !self.complete => v1::SourceState::Loading,
            Some(out) if now.saturating_duration_since(out.since) >= self.lost_after => v1::SourceState::Lost,
            Some(_) => v1::SourceState::Stale,
            None if quarantine.is_some() || !self.read => v1::SourceState::Stale,
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
