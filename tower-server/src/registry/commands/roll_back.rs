//! Go back to what stood before, for all hosts at once.

use tower_proto::v1::{self, activation_started::Kind, event::Event};

use super::{
    Context, Decision, assigned, event, known,
    start::{activation_id, release_for, superseded},
    usable,
};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::{Service, releases_of},
    state::State,
    steps,
};

/// Go back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RollBack {
    /// The service.
    pub service: String,
    /// To this version; if none is named, to what stood before.
    pub to: Option<u64>,
}

/// Where a way back leads.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// To an assignment as it was, whose releases are on every host.
    Assignment(v1::Assignment),
    /// To this version, which has to be compiled: with the parts of platform and security that are in force.
    Version(u64),
}

/// Where a way back leads.
///
/// # Errors
/// If there is nothing to go back to, or that is not clear.
pub fn target(name: &str, service: &Service, to: Option<u64>) -> Result<Target, Refusal> {
    let Some(number) = to else {
        let assignment = before(name, service)?;
        let in_force =
            |release| service.release(release).is_some_and(|made| has_parts_in_force(service, made));
        if releases_of(&assignment).all(in_force) {
            return Ok(Target::Assignment(assignment));
        }
        let version = service.version_of(&assignment.default_release).filter(|_| assignment.rules.is_empty());
        return version.map(Target::Version).ok_or_else(|| {
            let message = "parts of platform or security have changed since what stood before";
            Refusal::new(RefusalKind::Blocked, "parts-changed", format!("service {name}"), message)
                .next("name the version to go back to")
        });
    };
    usable(name, service, number)?;
    let made = service.releases.iter().rev().filter_map(|record| record.made.as_ref());
    let mut of_version = made.filter(|made| made.version == number && has_parts_in_force(service, made));
    Ok(of_version.next().map_or(Target::Version(number), |made| {
        Target::Assignment(v1::Assignment { rules: Vec::new(), default_release: made.release.clone() })
    }))
}

fn before(name: &str, service: &Service) -> Result<v1::Assignment, Refusal> {
    if service.running().is_some() || service.temporary().is_some() {
        return Ok(service.firm.clone());
    }
    let last = service.activations.last();
    let last = last.and_then(|record| Some((record, record.started.as_ref()?)));
    if let Some((record, started)) = last.filter(|(_, started)| started.kind() == Kind::RollBack)
        && service.assignment.default_release == started.release
    {
        let stamp = record.stamp.clone().unwrap_or_default();
        let message = format!(
            "{} has gone back to {name}@{} already (\"{}\")",
            stamp.actor.unwrap_or_default().name,
            started.version,
            stamp.index,
        );
        return Err(Refusal::new(RefusalKind::Blocked, "rolled-back", format!("service {name}"), message)
            .field("to")
            .next("name a version to go back further"));
    }
    let retired = |version: u64| service.version(version).is_none_or(|version| version.retired.is_some());
    let usable = |stood: &&v1::Assignment| {
        releases_of(stood).all(|release| service.version_of(release).is_some_and(|version| !retired(version)))
    };
    service.stood.iter().rev().find(usable).cloned().ok_or_else(|| {
        let message = "nothing stood before what is active now";
        Refusal::new(RefusalKind::Blocked, "nothing-before", format!("service {name}"), message)
            .next("name a version, or deactivate the service")
    })
}

/// A way back must not bring back what platform or security have replaced since.
fn has_parts_in_force(service: &Service, made: &v1::ReleaseMade) -> bool {
    let parts = |made: &v1::ReleaseMade| {
        [made.platform, made.platform_for_service, made.security, made.security_for_service]
    };
    let mut in_force = releases_of(&service.firm).filter_map(|release| service.release(release));
    in_force.all(|held| parts(held) == parts(made))
}

pub(super) fn handle(state: &State, command: &RollBack, context: &Context) -> Result<Decision, Refusal> {
    let name = &command.service;
    let service = known(state, name);
    let found = service.as_ref().ok().map(|service| target(name, service, command.to));
    context.may(state, action(service.as_ref().ok().copied(), found.as_ref()), Some(name))?;
    let service = service?;
    service.expect(name, context.if_match)?;
    let (assignment, version, new) = match target(name, service, command.to)? {
        Target::Assignment(assignment) => {
            let version = releases_of(&assignment).find_map(|release| service.version_of(release));
            (assignment, version, None)
        }
        Target::Version(version) => {
            let (made, new) = release_for(name, Some(service), version, context)?;
            let assignment = v1::Assignment { rules: Vec::new(), default_release: made.release };
            (assignment, Some(version), new)
        }
    };
    if assignment == service.assignment && service.running().is_none() && service.temporary().is_none() {
        if new.is_some() || was_other(name, service, command.to, &assignment) {
            let message = "what hosts have differs from it only in parts of platform or security, which a way back \
                           of a service does not take back";
            return Err(Refusal::new(
                RefusalKind::Blocked,
                "parts-in-force",
                format!("service {name}"),
                message,
            )
            .next("have the part set to what it was (`pcloud part`), and activate the version again"));
        }
        return Ok(Decision::nothing(format!("service {name} has what it would go back to")));
    }
    let id = activation_id(state, name);
    let mut events: Vec<_> = new.into_iter().chain(superseded(name, service, &id)).collect();
    let (Some(release), Some(version)) = (releases_of(&assignment).next().map(str::to_owned), version) else {
        events.push(assigned(name, v1::Assignment::default()));
        let note = "nothing stood before the first version: the service has its defaults again".into();
        return Ok(Decision { events, note, ..Decision::default() });
    };
    let started = v1::ActivationStarted {
        activation: id.clone(),
        release,
        version,
        audience: Some(v1::Audience::default()),
        steps: vec![steps::all()],
        before: Some(service.firm.clone()),
        expires_ms: 0,
        kind: Kind::RollBack.into(),
        over: None,
    };
    events.push(event(name, Event::ActivationStarted(started)));
    events.push(assigned(name, assignment));
    Ok(Decision { events, version: Some(version), activation: Some(id), note: String::new() })
}

/// Whether what stood before, without a version being named, is another release of the same version.
fn was_other(name: &str, service: &Service, to: Option<u64>, now: &v1::Assignment) -> bool {
    to.is_none() && before(name, service).is_ok_and(|stood| stood != *now)
}

/// Going back to other parts of the same version is also for those who own the parts.
fn action(service: Option<&Service>, target: Option<&Result<Target, Refusal>>) -> Action {
    let (Some(service), Some(Ok(target))) = (service, target) else { return Action::Activate };
    let versions: Vec<u64> = match target {
        Target::Assignment(assignment) => {
            releases_of(assignment).filter_map(|release| service.version_of(release)).collect()
        }
        Target::Version(version) => vec![*version],
    };
    let used = service.versions_in_use();
    let again = !versions.is_empty() && versions.iter().all(|version| used.contains(version));
    if again { Action::Rerelease } else { Action::Activate }
}
