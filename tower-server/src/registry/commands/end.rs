//! Say how an activation has ended. Unless what it assigned stands, what was before is assigned again.

use tower_proto::v1::{ActivationEnded, activation_ended::Outcome, event::Event};

use super::{Context, Decision, assigned, event, step::in_progress};
use crate::registry::{
    fold::activations::stands,
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::Activation,
    state::State,
};

/// Say how an activation has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// The service.
    pub service: String,
    /// Which, how, and why.
    pub ended: ActivationEnded,
}

pub(super) fn handle(state: &State, command: &End, context: &Context) -> Result<Decision, Refusal> {
    let (name, ended) = (&command.service, &command.ended);
    context.may(state, Action::Report, Some(name))?;
    let service = state.service(name).map(|service| &**service);
    let object = format!("activation {}", ended.activation);
    let expired = ended.outcome() == Outcome::Expired;
    // What has succeeded for a time expires later.
    let temporary = service.and_then(|service| service.temporary());
    let record = match temporary.filter(|record| expired && record.id() == ended.activation) {
        Some(record) => record,
        None => in_progress(service, &ended.activation)?,
    };
    if expired && !record.temporary {
        let message = "it has no time to live";
        return Err(Refusal::new(RefusalKind::Blocked, "not-temporary", object, message));
    }
    match ended.outcome() {
        Outcome::Succeeded if !record.is_at_last_step() => {
            let message = format!("it is at step {}, which is not the last one", record.step + 1);
            return Err(Refusal::new(RefusalKind::Stale, "step", object, message).field("outcome"));
        }
        Outcome::Unspecified | Outcome::Superseded | Outcome::Aborted => {
            let message = "a Tower does not end an activation so";
            return Err(Refusal::new(RefusalKind::Invalid, "outcome", object, message).field("outcome"));
        }
        Outcome::Succeeded | Outcome::Rejected | Outcome::Expired | Outcome::TimedOut => {}
    }
    let mut events = vec![event(name, Event::ActivationEnded(ended.clone()))];
    if !stands(record, ended.outcome())
        && let Some(service) = service
    {
        let back = if record.is_running() { service.fallback() } else { &service.firm };
        events.push(assigned(name, back.clone()));
    }
    Ok(Decision { activation: Some(ended.activation.clone()), ..Decision::of(events) })
}
