//! What the guard holds, and lets go by an operator's word: so that every Tower and every restart knows.

use tower_proto::v1::{HoldRecorded, HoldReleased, event::Event};

use super::{Context, Decision, event};
use crate::registry::{permission::Action, refusal::Refusal, state::State};

/// Say what the guard holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHold {
    /// The hold, its source and size.
    pub hold: HoldRecorded,
}

/// Let go what the guard holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseHold {
    /// The source.
    pub source: String,
    /// The hold, which another Tower may not have seen yet.
    pub hold: String,
}

pub(super) fn record(state: &State, command: &RecordHold, context: &Context) -> Result<Decision, Refusal> {
    context.may(state, Action::RecordHold, None)?;
    let held = state.mesh().holds.get(&command.hold.hold);
    if held.is_some_and(|held| held.recorded.is_some() && held.endpoints == command.hold.endpoints) {
        return Ok(Decision::nothing("it is recorded"));
    }
    Ok(Decision::of(vec![event("", Event::HoldRecorded(command.hold.clone()))]))
}

pub(super) fn release(state: &State, command: &ReleaseHold, context: &Context) -> Result<Decision, Refusal> {
    context.may(state, Action::ReleaseHold, None)?;
    let held = state.mesh().holds.get(&command.hold);
    if held.is_some_and(|held| held.released.is_some()) {
        return Ok(Decision::nothing(format!("hold {} is released already", command.hold)));
    }
    let released = HoldReleased { source: command.source.clone(), hold: command.hold.clone() };
    Ok(Decision::of(vec![event("", Event::HoldReleased(released))]))
}
