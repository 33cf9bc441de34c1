//! What was, when: by folding the log again.

use tower_common::audience::{NodeFacts, UnknownTerm, contains};
use tower_proto::v1;

use super::{fold::FoldError, state::State};
use crate::event_log::{EventLog, ReadError};

/// So many entries are read at once.
const BATCH: usize = 1_000;

/// A moment of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After the entry with this index.
    Index(u64),
    /// At this time, in milliseconds since 1970: before the first entry that is later.
    Time(u64),
}

/// Why the past cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An entry does not fold.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// The state as it was then, of a log whose last entry to be looked at is `last`.
///
/// # Errors
/// If the log cannot be read, or does not fold.
pub async fn state_at(log: &EventLog, at: At, last: u64) -> Result<State, ReplayError> {
    let mut state = State::default();
    loop {
        let entries = log.read(state.index() + 1, BATCH).await?;
        let found = entries.len();
        for entry in entries {
            let over = match at {
                At::Index(index) => entry.index > index,
                At::Time(time_ms) => entry.time_ms > time_ms,
            };
            if over || entry.index > last {
                return Ok(state);
            }
            state.apply(&entry)?;
        }
        if found == 0 {
            return Ok(state);
        }
    }
}

/// The release that a host has by an assignment; empty is the release "default".
///
/// # Errors
/// If that depends on a term that this build does not know.
pub fn release_for<'a>(assignment: &'a v1::Assignment, node: &NodeFacts) -> Result<&'a str, UnknownTerm> {
    for rule in &assignment.rules {
        let everyone = v1::Audience::default();
        if contains(rule.audience.as_ref().unwrap_or(&everyone), node)? {
            return Ok(&rule.release);
        }
    }
    Ok(&assignment.default_release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides_and_an_unknown_one_keeps_from_deciding() {
        let rule = |audience: &str, release: &str| v1::assignment::Rule {
            audience: Some(
                audience
                    .parse::<tower_common::audience::AudienceSpec>()
                    .unwrap()
                    .resolve("", |_| None)
                    .unwrap(),
            ),
            release: release.into(),
            activation: String::new(),
        };
        let mut assignment = v1::Assignment {
            rules: vec![rule("zone=a", "one"), rule("zone=a,b", "two")],
            default_release: "three".into(),
        };
        let node = |zone: &str| NodeFacts { id: "h".into(), zone: zone.into(), ..NodeFacts::default() };
        let release =
            |assignment: &v1::Assignment, zone| release_for(assignment, &node(zone)).map(str::to_owned);
        assert_eq!(release(&assignment, "a").unwrap(), "one");
        assert_eq!(release(&assignment, "b").unwrap(), "two");
        assert_eq!(release(&assignment, "c").unwrap(), "three");
        assignment.rules[1].audience = Some(v1::Audience { terms: vec![v1::audience::Term { term: None }] });
        assert_eq!(release(&assignment, "a").unwrap(), "one");
        assert!(release(&assignment, "c").is_err());
    }
}
