//! Go back to no document: the service has its defaults again, on all hosts at once.

use tower_proto::v1;

use super::{
    Context, Decision, assigned, known,
    start::{is_empty, superseded},
};
use crate::registry::{permission::Action, refusal::Refusal, state::State};

/// Go back to no document. Needs a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deactivate {
    /// The service.
    pub service: String,
}

pub(super) fn handle(state: &State, command: &Deactivate, context: &Context) -> Result<Decision, Refusal> {
    let name = &command.service;
    context.may(state, Action::Deactivate, Some(name))?;
    let service = known(state, name)?;
    service.expect(name, context.if_match)?;
    if is_empty(&service.assignment) && service.running().is_none() && service.temporary().is_none() {
        return Ok(Decision::nothing(format!("service {name} has its defaults already")));
    }
    context.needs_reason(&format!("service {name}"), "taking a service's configuration from all hosts")?;
    let mut events = Vec::from_iter(superseded(name, service, "a deactivation"));
    events.push(assigned(name, v1::Assignment::default()));
    Ok(Decision::of(events))
}
