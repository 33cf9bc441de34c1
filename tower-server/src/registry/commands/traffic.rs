//! Change weights, and nothing else: a new version, activated like any other.

use std::collections::BTreeMap;

use tower_proto::v1::{self, activation_started::Kind};

use super::{
    Context, Decision, known,
    start::{Start, is_everywhere, release_for},
    upload::{prepared, version_for},
    usable,
};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::{Activation, Service},
    state::State,
};

/// Change weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The service.
    pub service: String,
    /// The weight of each subset that is to have one.
    pub weights: BTreeMap<String, u32>,
    /// Of this route; of all that have weights, if none is named.
    pub route: Option<String>,
    /// After how many milliseconds the weights return by themselves.
    pub ttl_ms: Option<u64>,
    /// In one step. Needs a reason.
    pub at_once: bool,
}

/// The version whose weights are changed: the one that is being brought to everyone, or that everyone has.
///
/// # Errors
/// If there is none, or hosts have several.
pub fn base(name: &str, service: &Service) -> Result<u64, Refusal> {
    let object = format!("service {name}");
    let started = service.running().or(service.temporary()).and_then(|record| record.started.as_ref());
    let everyone = |started: &&v1::ActivationStarted| {
        started.audience.as_ref().is_none_or(|audience| audience.terms.is_empty())
    };
    if let Some(started) = started.filter(everyone) {
        return Ok(started.version);
    }
    if !service.assignment.rules.is_empty() {
        let message = "audiences have versions of their own, and whose weights are meant is not clear";
        return Err(Refusal::new(RefusalKind::Blocked, "several-versions", object, message)
            .next("activate one version for everyone, or upload a version and activate it for an audience"));
    }
    service.version_of(&service.assignment.default_release).ok_or_else(|| {
        Refusal::new(
            RefusalKind::Blocked,
            "not-active",
            object,
            "no version is active, so nothing has weights",
        )
        .next("activate a version first")
    })
}

pub(super) fn handle(state: &State, command: &Traffic, context: &Context) -> Result<Decision, Refusal> {
    let name = &command.service;
    context.may(state, Action::Activate, Some(name))?;
    let service = known(state, name)?;
    service.expect(name, context.if_match)?;
    base(name, service)?;
    let (number, new_version) = version_for(name, Some(service), prepared(name, context)?)?;
    if new_version.is_none() {
        usable(name, service, number)?;
    }
    let (made, new_release) = release_for(name, Some(service), number, context)?;
    let there = service.running().is_none() && service.temporary().is_none() && command.ttl_ms.is_none();
    if there && is_everywhere(service, &made.release) {
        return Ok(Decision {
            note: format!("the weights are so already, with {name}@{number}"),
            version: Some(number),
            ..Decision::default()
        });
    }
    let replaced = service.temporary().map(|record| record.id().to_owned());
    let start = Start {
        name,
        kind: Kind::Traffic,
        release: &made.release,
        version: number,
        audience: v1::Audience::default(),
        steps: None,
        at_once: command.at_once,
        ttl_ms: command.ttl_ms,
        events: new_version.into_iter().chain(new_release).collect(),
    };
    let mut decision = start.decide(state, context)?;
    if let Some(replaced) = replaced {
        decision.note = format!("takes the place of {replaced}, which was for a time only");
    }
    Ok(decision)
}
