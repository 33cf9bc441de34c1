//! Say what one Tower's Beacons made of a step.

use tower_proto::v1::{ActivationReported, event::Event};

use super::{Context, Decision, event, step::in_progress};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    state::State,
};

/// Say what a Tower's Beacons made of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The service.
    pub service: String,
    /// What is reported.
    pub reported: ActivationReported,
}

pub(super) fn handle(state: &State, command: &Report, context: &Context) -> Result<Decision, Refusal> {
    let (name, reported) = (&command.service, &command.reported);
    context.may(state, Action::Report, Some(name))?;
    let record = in_progress(state.service(name).map(|service| &**service), &reported.activation)?;
    let object = format!("activation {}", reported.activation);
    if record.step != reported.step {
        let message = format!("it is at step {}, and not at {}", record.step + 1, reported.step + 1);
        return Err(Refusal::new(RefusalKind::Stale, "step", object, message).field("step"));
    }
    if reported.accepted > reported.hosts {
        let message = format!("{} of {} hosts cannot have accepted", reported.accepted, reported.hosts);
        return Err(Refusal::new(RefusalKind::Invalid, "report", object, message).field("accepted"));
    }
    if record.reports.contains(reported) {
        return Ok(Decision::nothing("that was reported"));
    }
    Ok(Decision::of(vec![event(name, Event::ActivationReported(reported.clone()))]))
}
