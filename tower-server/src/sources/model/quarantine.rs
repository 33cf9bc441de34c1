//! A complete reading that is no continuation of what was read before: of another history, of an earlier
//! time, or of nothing at all. A folder was deleted by mistake, an ensemble restored from a backup, a path
//! mistyped. What was known stays until an operator adopts what was found, which is kept up to date here.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use super::{
    Position,
    input::{Change, Load},
    problems::Problem,
    registrations::{Entry, Place},
};

/// Instead of an incarnation, where nothing was found that could have one.
pub(super) const NOTHING: &str = "none";

/// Separates a history from how often an earlier time of it has been adopted.
const AGAIN: char = '+';

/// What was found, and is not believed.
#[derive(Debug)]
pub(super) struct Quarantine {
    reason: String,
    load: Load,
    places: BTreeMap<Arc<str>, Place>,
    entries: BTreeMap<Arc<str>, Entry>,
    kept: BTreeMap<Arc<str>, Problem>,
}

/// A quarantine, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantineReport {
    /// The source.
    pub source: String,
    /// What happened, and what can be done.
    pub reason: String,
    /// What is published, and stays.
    pub published: Position,
    /// Whose contents were found, to be named by whoever adopts them.
    pub incarnation: String,
    /// The position that was found.
    pub index: u64,
    /// How many services adopting it would leave.
    pub services: usize,
    /// How many members or files.
    pub entries: usize,
}

/// Why nothing was adopted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    /// There is nothing to adopt.
    #[error("the source {0:?} is not quarantined")]
    NotQuarantined(String),
    /// Something else was found meanwhile.
    #[error("incarnation {expected:?} is to be adopted, and {found:?} is what was found")]
    Another {
        /// What the operator saw.
        expected: String,
        /// What is there.
        found: String,
    },
}

impl Quarantine {
    pub(super) fn new(reason: String, mut load: Load) -> Self {
        let by_path = |problem: Problem| (problem.path.clone(), problem);
        Self {
            reason,
            places: load.places.drain(..).map(|place| (place.path.clone(), place)).collect(),
            entries: load.entries.drain(..).map(|entry| (entry.path.clone(), entry)).collect(),
            kept: load.kept.drain(..).map(by_path).collect(),
            load,
        }
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    /// The incarnation, or what stands for none.
    pub(super) fn found(&self) -> &str {
        self.load.incarnation.as_deref().unwrap_or(NOTHING)
    }

    /// Follows what was found.
    pub(super) fn apply(&mut self, changes: Vec<Change>, index: u64) {
        self.load.index = self.load.index.max(index);
        for change in changes {
            match change {
                Change::Place(place) => {
                    self.kept.remove(&place.path);
                    self.places.insert(place.path.clone(), place);
                }
                Change::Entry(entry) => {
                    self.kept.remove(&entry.path);
                    self.entries.insert(entry.path.clone(), entry);
                }
                Change::Kept(problem) => {
                    self.kept.insert(problem.path.clone(), problem);
                }
                Change::Gone { path, .. } => {
                    let below = format!("{path}/");
                    let stays = |at: &Arc<str>| *at != path && !at.starts_with(&below);
                    self.places.retain(|at, _| stays(at));
                    self.entries.retain(|at, _| stays(at));
                    self.kept.retain(|at, _| stays(at));
                }
            }
        }
    }

    /// What was found, as a complete reading of now.
    pub(super) fn into_load(self) -> Load {
        Load {
            places: self.places.into_values().collect(),
            entries: self.entries.into_values().collect(),
            kept: self.kept.into_values().collect(),
            ..self.load
        }
    }

    pub(super) fn report(&self, source: &str, published: Position) -> QuarantineReport {
        let services =
            self.places.values().map(|place| &place.service).collect::<std::collections::BTreeSet<_>>();
        QuarantineReport {
            source: source.to_owned(),
            reason: self.reason.clone(),
            published,
            incarnation: self.found().to_owned(),
            index: self.load.index,
            services: services.len(),
            entries: self.entries.len(),
        }
    }
}

/// The position after adopting what was found. An earlier time of the same history, or nothing at all, is
/// told from the history itself by a suffix: who has seen that must not think that it knows better.
pub(super) fn adopted(held: &Position, load: &Load) -> Position {
    let (history, again) = split(&held.incarnation);
    let anew = || format!("{history}{AGAIN}{}", again + 1);
    match &load.incarnation {
        Some(found) if found != history => Position { incarnation: found.clone(), index: load.index },
        Some(_) => Position { incarnation: anew(), index: load.index },
        None => Position { incarnation: anew(), index: held.index },
    }
}

/// Whether a reading of this incarnation is of the history that the position counts in.
pub(super) fn same_history(position: &Position, incarnation: &str) -> bool {
    split(&position.incarnation).0 == incarnation
}

fn split(incarnation: &str) -> (&str, u64) {
    let suffixed = incarnation.rsplit_once(AGAIN);
    suffixed.and_then(|(history, again)| Some((history, again.parse().ok()?))).unwrap_or((incarnation, 0))
}
