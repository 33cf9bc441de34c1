//! Say that a version may be used: who has looked at it, for all to see.

use tower_proto::v1::{VersionApproved, event::Event};

use super::{Context, Decision, event, known, usable};
use crate::registry::{permission::Action, refusal::Refusal, state::State};

/// Say that a version may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approve {
    /// The service.
    pub service: String,
    /// The version's number.
    pub version: u64,
}

pub(super) fn handle(state: &State, command: &Approve, context: &Context) -> Result<Decision, Refusal> {
    let (name, number) = (&command.service, command.version);
    context.may(state, Action::Approve, Some(name))?;
    let service = known(state, name)?;
    service.expect(name, context.if_match)?;
    let version = usable(name, service, number)?;
    let decision = match &version.approved {
        Some(stamp) => {
            let by = stamp.actor.clone().unwrap_or_default().name;
            Decision::nothing(format!("{name}@{number} was approved by {by}"))
        }
        None => Decision::of(vec![event(name, Event::VersionApproved(VersionApproved { number }))]),
    };
    Ok(Decision { version: Some(number), ..decision })
}
