//! Give a version to hosts: by default to one first, then to a tenth, then to all of the audience.

use tower_proto::v1::{self, activation_ended::Outcome, activation_started::Kind};

use super::{
    Context, Decision, called, known,
    start::{Plan, Start, is_everywhere, release_for, resolve},
    usable,
};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::{Activation, Service},
    state::State,
    steps::salt_of,
};

/// Give a version to hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activate {
    /// The service.
    pub service: String,
    /// The version's number.
    pub version: u64,
    /// To whom, and in which steps.
    pub plan: Plan,
    /// Also if it was rejected or rolled back before.
    pub again: bool,
}

pub(super) fn handle(state: &State, command: &Activate, context: &Context) -> Result<Decision, Refusal> {
    let (name, number) = (&command.service, command.version);
    let used = state.service(name).is_some_and(|service| service.versions_in_use().contains(&number));
    let action = if used { Action::Rerelease } else { Action::Activate };
    context.may(state, action, Some(name))?;
    let service = known(state, name)?;
    service.expect(name, context.if_match)?;
    usable(name, service, number)?;
    let (made, new) = release_for(name, Some(service), number, context)?;
    if let Some(nothing) = is_there(name, service, command, &made, context) {
        return Ok(nothing);
    }
    if let Some(why) = held(service, number, &made.release).filter(|_| !command.again) {
        return Err(Refusal::new(RefusalKind::Blocked, "held", called(name, number), why)
            .field("version")
            .next("upload a corrected version, or activate it again on purpose"));
    }
    let start = Start {
        name,
        kind: Kind::Activate,
        release: &made.release,
        version: number,
        plan: &command.plan,
        events: Vec::from_iter(new),
    };
    start.decide(state, context)
}

/// Says so if the audience has the release already, or is about to get it.
fn is_there(
    name: &str,
    service: &Service,
    command: &Activate,
    made: &v1::ReleaseMade,
    context: &Context,
) -> Option<Decision> {
    let (number, plan) = (command.version, &command.plan);
    let same = |held: &v1::Audience| {
        resolve(&plan.audience, salt_of(held), context).is_ok_and(|audience| audience == *held)
    };
    if let Some(running) = service.running() {
        let started = running.started.as_ref()?;
        let goes_on = started.release == made.release
            && started.audience.as_ref().is_some_and(same)
            && (started.expires_ms != 0) == plan.ttl_ms.is_some()
            && !plan.at_once;
        return goes_on.then(|| Decision {
            note: format!("{} is bringing {name}@{number} to the same hosts", running.id()),
            version: Some(number),
            activation: Some(running.id().to_owned()),
            ..Decision::default()
        });
    }
    let active = if plan.audience.terms.is_empty() {
        is_everywhere(service, &made.release)
    } else {
        let mut rules = service.assignment.rules.iter();
        rules.any(|rule| rule.release == made.release && rule.audience.as_ref().is_some_and(same))
    };
    let stays = service.temporary().is_none() && plan.ttl_ms.is_none();
    (active && stays).then(|| Decision {
        note: format!("{name}@{number} is active there already"),
        version: Some(number),
        ..Decision::default()
    })
}

/// Why a version is not to be activated without a second thought: it was rejected, or people went back from
/// it, and nothing has proved since that it works.
fn held(service: &Service, version: u64, release: &str) -> Option<String> {
    let records = &service.activations;
    for (place, record) in records.iter().enumerate().rev() {
        let started = record.started.as_ref()?;
        let ended = record.ended.as_ref();
        let outcome = ended.map_or(Outcome::Unspecified, v1::ActivationEnded::outcome);
        if started.version == version {
            match outcome {
                Outcome::Succeeded => return None,
                // With other parts of platform or security it is another release.
                Outcome::Rejected if started.release != release => {}
                Outcome::Rejected => {
                    let rejection = ended.and_then(|ended| ended.rejection.clone()).unwrap_or_default();
                    let (host, error) = (rejection.host, rejection.error);
                    return Some(format!("{} was rejected by an Envoy of {host}: {error}", record.id()));
                }
                Outcome::Unspecified
                | Outcome::Aborted
                | Outcome::Superseded
                | Outcome::Expired
                | Outcome::TimedOut => {}
            }
        }
        if started.kind() == Kind::RollBack {
            let before = started.before.clone().unwrap_or_default();
            let stood = service.version_of(&before.default_release) == Some(version);
            let passing = place.checked_sub(1).and_then(|place| records[place].started.as_ref());
            let superseded = place.checked_sub(1).is_some_and(|place| {
                let ended = records[place].ended.as_ref();
                ended.is_some_and(|ended| ended.outcome() == Outcome::Superseded)
            });
            let passed = superseded && passing.is_some_and(|passing| passing.version == version);
            if (stood || passed) && started.version != version {
                let stamp = record.stamp.clone().unwrap_or_default();
                let by = stamp.actor.unwrap_or_default().name;
                return Some(format!("{by} went back from it: {:?}", stamp.reason));
            }
        }
    }
    None
}
