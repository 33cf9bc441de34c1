//! Take an activation back. This works whatever it is doing, and needs nothing but the right to.

use tower_proto::v1::{ActivationEnded, activation_ended::Outcome, event::Event};

use super::{Context, Decision, assigned, event};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::Activation,
    state::State,
};

/// Take an activation back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The service.
    pub service: String,
    /// Which; whatever is in progress, if none is named.
    pub activation: Option<String>,
}

pub(super) fn handle(state: &State, command: &Abort, context: &Context) -> Result<Decision, Refusal> {
    let name = &command.service;
    context.may(state, Action::Abort, Some(name))?;
    let service = state.service(name);
    let named = command.activation.as_deref();
    if let Some(id) = named {
        let Some(record) = service.and_then(|service| service.activation(id)) else {
            let object = format!("activation {id}");
            return Err(Refusal::new(RefusalKind::NotFound, "no-such-activation", object, "there is none"));
        };
        if let Some(ended) = &record.ended {
            let mut nothing = Decision::nothing(format!("{id} has ended: {}", outcome(ended)));
            nothing.activation = Some(id.to_owned());
            return Ok(nothing);
        }
    }
    let Some((service, running)) = service.and_then(|service| Some((service, service.running()?))) else {
        return Ok(Decision::nothing(format!("nothing of service {name} is in progress")));
    };
    let id = running.id().to_owned();
    let ended = ActivationEnded {
        activation: id.clone(),
        outcome: Outcome::Aborted.into(),
        rejection: None,
        detail: context.reason.clone(),
    };
    let events = vec![event(name, Event::ActivationEnded(ended)), assigned(name, service.fallback().clone())];
    Ok(Decision { activation: Some(id), ..Decision::of(events) })
}

/// How an activation has ended, in a word.
pub(super) fn outcome(ended: &ActivationEnded) -> String {
    ended.outcome().as_str_name().trim_start_matches("OUTCOME_").to_lowercase().replace('_', " ")
}
