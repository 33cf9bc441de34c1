//! Send an activation to its next step.

use tower_proto::v1::{ActivationStepped, event::Event};

use super::{Context, Decision, abort::outcome, assigned, event};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::{Activation, Service},
    state::State,
    steps::assignment_at,
};

/// Send an activation to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The service.
    pub service: String,
    /// Which.
    pub activation: String,
    /// The step, which has to be the next one.
    pub step: u32,
}

pub(super) fn handle(state: &State, command: &Step, context: &Context) -> Result<Decision, Refusal> {
    let name = &command.service;
    context.may(state, Action::Step, Some(name))?;
    let record = in_progress(state.service(name).map(|service| &**service), &command.activation)?;
    let steps = record.started.as_ref().map_or(0, |started| started.steps.len());
    if command.step != record.step + 1 || command.step as usize >= steps {
        let message = format!(
            "it is at step {} of {steps}, and cannot go to step {}",
            record.step + 1,
            command.step + 1
        );
        let object = format!("activation {}", command.activation);
        return Err(Refusal::new(RefusalKind::Stale, "step", object, message).field("step"));
    }
    let started = record.started.clone().unwrap_or_default();
    let stepped = ActivationStepped { activation: command.activation.clone(), step: command.step };
    let events = vec![
        event(name, Event::ActivationStepped(stepped)),
        assigned(name, assignment_at(&started, command.step as usize)),
    ];
    Ok(Decision { activation: Some(command.activation.clone()), ..Decision::of(events) })
}

/// The activation, if it is in progress.
pub(super) fn in_progress<'a>(
    service: Option<&'a Service>,
    id: &str,
) -> Result<&'a tower_proto::v1::ActivationRecord, Refusal> {
    let refuse = |kind, code, message: String| Refusal::new(kind, code, format!("activation {id}"), message);
    let record = service.and_then(|service| service.activation(id));
    let record =
        record.ok_or_else(|| refuse(RefusalKind::NotFound, "no-such-activation", "there is none".into()))?;
    match &record.ended {
        Some(ended) if !record.is_running() => {
            Err(refuse(RefusalKind::Blocked, "ended", format!("it has ended: {}", outcome(ended))))
        }
        _ => Ok(record),
    }
}
