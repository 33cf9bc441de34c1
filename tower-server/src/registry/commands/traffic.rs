//! Change weights, and nothing else: a new version, activated like any other.

use std::collections::BTreeMap;

use tower_common::audience::AudienceSpec;
use tower_proto::v1::{self, activation_started::Kind};

use super::{
    Context, Decision, known,
    start::{Plan, Start, is_everywhere, release_for},
    upload::{prepared, version_for},
    usable,
};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::Service,
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
    /// For whom, and in which steps.
    pub plan: Plan,
}

/// The release whose weights are changed: the one that this audience has, or is being brought.
///
/// # Errors
/// If there is none, or hosts of the audience have several.
pub fn base<'a>(
    name: &str,
    service: &'a Service,
    audience: &AudienceSpec,
) -> Result<&'a v1::ReleaseMade, Refusal> {
    let object = format!("service {name}");
    let is_meant = |held: Option<&v1::Audience>| {
        AudienceSpec::of(&held.cloned().unwrap_or_default()).is_ok_and(|held| held == *audience)
    };
    let passing = service.running().or(service.temporary()).and_then(|record| record.started.as_ref());
    let passing = passing.filter(|started| is_meant(started.audience.as_ref()));
    let mut rules = service.firm.rules.iter();
    let release = match rules.find(|rule| is_meant(rule.audience.as_ref())) {
        Some(rule) => &rule.release,
        None if passing.is_none() && audience.terms.is_empty() && !service.firm.rules.is_empty() => {
            let message = "audiences have versions of their own, and whose weights are meant is not clear";
            return Err(Refusal::new(RefusalKind::Blocked, "several-versions", object, message)
                .field("audience")
                .next("name an audience, or activate one version for everyone first"));
        }
        None => &service.firm.default_release,
    };
    service.release(passing.map_or(release, |started| &started.release)).ok_or_else(|| {
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
    base(name, service, &command.plan.audience)?;
    let (number, new_version) = version_for(name, Some(service), prepared(name, context)?)?;
    if new_version.is_none() {
        usable(name, service, number)?;
    }
    let (made, new_release) = release_for(name, Some(service), number, context)?;
    let there = service.running().is_none() && service.temporary().is_none() && command.plan.ttl_ms.is_none();
    if there && command.plan.audience.terms.is_empty() && is_everywhere(service, &made.release) {
        return Ok(Decision {
            note: format!("the weights are so already, with {name}@{number}"),
            version: Some(number),
            ..Decision::default()
        });
    }
    let start = Start {
        name,
        kind: Kind::Traffic,
        release: &made.release,
        version: number,
        plan: &command.plan,
        events: new_version.into_iter().chain(new_release).collect(),
    };
    start.decide(state, context)
}
