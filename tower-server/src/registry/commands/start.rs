//! What all activations have in common: their plan, and how they take the place of the one before.

use tower_common::audience::{AudienceError, AudienceSpec};
use tower_proto::v1::{self, activation_ended::Outcome, activation_started::Kind, event::Event};

use super::{Context, Decision, assigned, event};
use crate::registry::{
    fold::activations::{MAX_RULES, MAX_STEPS},
    refusal::{Refusal, RefusalKind},
    service::{Activation, Service, releases_of},
    state::State,
    steps,
};

/// A step stands for no longer than a day.
const MAX_PAUSE_MS: u32 = 24 * 60 * 60 * 1000;

/// What is taken back by itself is so within a year.
const MAX_TTL_MS: u64 = 366 * 24 * 60 * 60 * 1000;

/// Who gets a release, and in which steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Who.
    pub audience: AudienceSpec,
    /// In which steps; none is the default: one host, then a tenth, then all.
    pub steps: Option<Vec<PlannedStep>>,
    /// In one step. Needs a reason.
    pub at_once: bool,
    /// After how many milliseconds it is taken back by itself.
    pub ttl_ms: Option<u64>,
}

/// A step to hosts of the audience.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedStep {
    /// Who of the audience.
    pub audience: AudienceSpec,
    /// How long the step before it has to stand; none is the default.
    pub pause_ms: Option<u32>,
}

/// An activation that is about to start.
pub(super) struct Start<'a> {
    pub name: &'a str,
    pub kind: Kind,
    /// Within `events`, or made before.
    pub release: &'a str,
    pub version: u64,
    pub plan: &'a Plan,
    /// The version and release that it needs, if they are new.
    pub events: Vec<v1::Event>,
}

impl Start<'_> {
    /// The events that start it, and end what is in progress.
    pub(super) fn decide(self, state: &State, context: &Context) -> Result<Decision, Refusal> {
        let id = activation_id(state, self.name);
        let service = state.service(self.name);
        let firm = service.map(|service| service.firm.clone()).unwrap_or_default();
        let audience = self.audience(&self.plan.audience, &id, &firm, context)?;
        let for_a_time = service.and_then(|service| service.stands_for_a_time());
        if let Some(passing) = for_a_time {
            self.takes_the_place_of(passing, &audience)?;
        }
        let expires_ms = match self.plan.ttl_ms {
            None => 0,
            Some(ttl) if (1..=MAX_TTL_MS).contains(&ttl) => context.now_ms + ttl,
            Some(_) => return Err(self.invalid("ttl", "a time to live is up to a year, and not nothing")),
        };
        let started = v1::ActivationStarted {
            activation: id.clone(),
            release: self.release.to_owned(),
            version: self.version,
            steps: self.steps(&audience, &id, context)?,
            audience: Some(audience),
            before: Some(firm),
            expires_ms,
            kind: self.kind.into(),
            over: service.and_then(|service| service.for_a_time()),
        };
        for step in 0..started.steps.len() {
            let rules = steps::assignment_at(&started, step).rules.len();
            if rules > MAX_RULES {
                let message = format!("the service would have {rules} audiences, more than {MAX_RULES}");
                return Err(self.invalid("audience", &message).next("activate a version for everyone first"));
            }
        }
        let assignment = steps::assignment_at(&started, 0);
        let superseded = service.and_then(|service| superseded(self.name, service, &id));
        let mut events = self.events;
        events.extend(superseded);
        events.push(event(self.name, Event::ActivationStarted(started)));
        events.push(assigned(self.name, assignment));
        let note = for_a_time.map(|passing| {
            format!("takes the place of {}, which was for a time only, as each host is reached", passing.id())
        });
        let note = note.unwrap_or_default();
        Ok(Decision { events, version: Some(self.version), activation: Some(id), note })
    }

    /// What is in force for a time would end for hosts that get nothing in its place.
    fn takes_the_place_of(
        &self,
        passing: &v1::ActivationRecord,
        audience: &v1::Audience,
    ) -> Result<(), Refusal> {
        let whose = passing.started.as_ref().and_then(|started| started.audience.as_ref());
        if audience.terms.is_empty() || whose == Some(audience) {
            return Ok(());
        }
        let by =
            passing.stamp.as_ref().and_then(|stamp| stamp.actor.as_ref()).map_or("", |actor| &actor.name);
        let id = passing.id();
        let message =
            format!("{id} by {by} is in force for a time, and hosts outside of this audience would lose it");
        Err(Refusal::new(RefusalKind::Blocked, "for-a-time", format!("service {}", self.name), message)
            .field("audience")
            .next("activate for everyone or for the same audience, or roll it back first"))
    }

    /// The audience that is meant. One that has a release of its own already is the same hosts again.
    fn audience(
        &self,
        spec: &AudienceSpec,
        id: &str,
        firm: &v1::Assignment,
        context: &Context,
    ) -> Result<v1::Audience, Refusal> {
        let resolved = |salt: &str| {
            resolve(spec, salt, context).map_err(|error| self.invalid("audience", &error.to_string()))
        };
        for held in firm.rules.iter().filter_map(|rule| rule.audience.as_ref()) {
            if resolved(steps::salt_of(held))? == *held {
                return Ok(held.clone());
            }
        }
        resolved(id)
    }

    fn steps(
        &self,
        audience: &v1::Audience,
        id: &str,
        context: &Context,
    ) -> Result<Vec<v1::activation_started::Step>, Refusal> {
        if self.plan.at_once {
            context.needs_reason(&format!("service {}", self.name), "going to all hosts at once")?;
            return Ok(vec![steps::all()]);
        }
        let Some(planned) = &self.plan.steps else {
            let Some(host) = &context.prepared.first_host else {
                let message =
                    "no connected host of the audience has an Envoy, so there is none to begin with";
                let object = format!("service {}", self.name);
                return Err(Refusal::new(RefusalKind::Blocked, "no-hosts", object, message)
                    .field("audience")
                    .next(
                        "wait until one is connected, or activate at once, with a reason, for those to come",
                    ));
            };
            return Ok(steps::careful(audience, host, id));
        };
        let mut plan = Vec::with_capacity(planned.len() + 1);
        for (place, step) in planned.iter().enumerate() {
            let audience = resolve(&step.audience, id, context)
                .map_err(|error| self.invalid(&format!("steps[{place}].audience"), &error.to_string()))?;
            let title = if step.audience.terms.is_empty() { "all".into() } else { step.audience.to_string() };
            let pause_ms = step.pause_ms.unwrap_or(if place == 0 { 0 } else { steps::PAUSE_MS });
            if pause_ms > MAX_PAUSE_MS {
                return Err(self.invalid(&format!("steps[{place}].pause"), "a pause is at most a day"));
            }
            plan.push(v1::activation_started::Step { audience: Some(audience), title, pause_ms });
        }
        if !plan.last().is_some_and(steps::is_all) {
            let pause_ms = if plan.is_empty() { 0 } else { steps::PAUSE_MS };
            plan.push(v1::activation_started::Step { pause_ms, ..steps::all() });
        }
        if plan.len() > MAX_STEPS {
            return Err(self.invalid("steps", &format!("there are at most {MAX_STEPS} steps")));
        }
        if plan[..plan.len() - 1].iter().any(steps::is_all) {
            return Err(self.invalid("steps", "a step before the last one is for all hosts already"));
        }
        Ok(plan)
    }

    fn invalid(&self, field: &str, message: &str) -> Refusal {
        let object = format!("service {}", self.name);
        Refusal::new(RefusalKind::Invalid, "plan", object, message).field(field)
    }
}

/// An audience, with the tiers that the version's document has.
pub(super) fn resolve(
    spec: &AudienceSpec,
    salt: &str,
    context: &Context,
) -> Result<v1::Audience, AudienceError> {
    spec.resolve(salt, |tier| context.prepared.tiers.get(tier).cloned())
}

/// The id that an activation will have if its entry is the next one.
pub fn activation_id(state: &State, service: &str) -> String {
    format!("{service}-{}", state.index() + 1)
}

/// Ends what is in progress, in favour of something else.
pub(super) fn superseded(name: &str, service: &Service, by: &str) -> Option<v1::Event> {
    let running = service.running()?;
    let ended = v1::ActivationEnded {
        activation: running.id().to_owned(),
        outcome: Outcome::Superseded.into(),
        rejection: None,
        detail: format!("by {by}"),
    };
    Some(event(name, Event::ActivationEnded(ended)))
}

/// The prepared release, of this version, and the event that makes it if it has to be made. With the event
/// it is remembered as the newest.
pub(super) fn release_for(
    name: &str,
    service: Option<&Service>,
    version: u64,
    context: &Context,
) -> Result<(v1::ReleaseMade, Option<v1::Event>), Refusal> {
    let Some(prepared) = &context.prepared.release else {
        let object = format!("service {name}");
        return Err(Refusal::new(RefusalKind::Invalid, "not-compiled", object, "there is no release of it"));
    };
    let made = v1::ReleaseMade { version, ..prepared.clone() };
    let held = service.and_then(|service| service.release(&made.release));
    let new = (held != Some(&made)).then(|| event(name, Event::ReleaseMade(made.clone())));
    Ok((made, new))
}

/// Whether a release is all that anybody has, or is about to have.
pub(super) fn is_everywhere(service: &Service, release: &str) -> bool {
    service.assignment.rules.is_empty() && service.assignment.default_release == release
}

/// Whether an assignment is what a service has without a document.
pub(super) fn is_empty(assignment: &v1::Assignment) -> bool {
    releases_of(assignment).next().is_none()
}
