//! What a source tells of itself, for people and for tests.

use std::fmt;

use serde::Serialize;
use tower_proto::v1;

use super::spec::SourceSpec;
pub use super::{
    guard::{Counters as GuardCounters, HoldReport},
    model::{Counters, Position, Problem, QuarantineReport},
};

/// So many problems are listed; the others are only counted.
pub(super) const MAX_LISTED: usize = 100;

/// A source, as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceReport {
    /// Its id.
    pub id: String,
    /// The flag's value.
    pub url: String,
    /// Nothing waits for it.
    pub optional: bool,
    /// Its state.
    pub state: State,
    /// Why it is in this state, or what else should be known about it.
    pub reason: Option<String>,
    /// Since when it has been in this state.
    pub since_unix_ms: u64,
    /// How far it has been read.
    pub position: Option<Position>,
    /// How many services it knows.
    pub services: usize,
    /// How many endpoints it knows.
    pub endpoints: usize,
    /// What cannot be used at present; at most 100.
    pub problems: Vec<Problem>,
    /// How much cannot be used at present.
    pub problem_count: usize,
    /// Totals since the start.
    pub counters: Counters,
    /// What stays published though it is registered no more.
    pub holds: Vec<HoldReport>,
    /// What became of what was held, since the start.
    pub guard: GuardCounters,
    /// What was found, and is not believed.
    pub quarantine: Option<QuarantineReport>,
}

impl SourceReport {
    /// Of a source that does nothing any more.
    pub(super) fn stopped(spec: &SourceSpec) -> Self {
        Self {
            id: spec.id.to_string(),
            url: spec.url.clone(),
            optional: spec.optional,
            state: State::Lost,
            reason: Some("the source has been stopped".to_owned()),
            since_unix_ms: 0,
            position: None,
            services: 0,
            endpoints: 0,
            problems: Vec::new(),
            problem_count: 0,
            counters: Counters::default(),
            holds: Vec::new(),
            guard: GuardCounters::default(),
            quarantine: None,
        }
    }
}

/// The state of a source, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Never read in full.
    Loading,
    /// Read in full, and watched.
    Live,
    /// Read in full before, and out of touch now.
    Stale,
    /// Out of touch for longer than its sessions live.
    Lost,
}

impl State {
    pub(super) const ALL: [Self; 4] = [Self::Loading, Self::Live, Self::Stale, Self::Lost];

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl From<v1::SourceState> for State {
    fn from(state: v1::SourceState) -> Self {
        match state {
            v1::SourceState::Unspecified | v1::SourceState::Loading => Self::Loading,
            v1::SourceState::Live => Self::Live,
            v1::SourceState::Stale => Self::Stale,
            v1::SourceState::Lost => Self::Lost,
        }
    }
}
