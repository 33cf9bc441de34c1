//! Assignments and activations.

use tower_proto::v1::{
    ActivationEnded, ActivationRecord, ActivationReported, ActivationStarted, ActivationStepped, Assigned,
    Assignment, activation_ended::Outcome, activation_started::Kind, event::Event,
};

use super::{Draft, Misfit, push_bounded};
use crate::registry::service::{Activation, Service, releases_of};

/// How many activations of a service are remembered with it.
const ACTIVATIONS: usize = 20;

/// How many assignments are remembered that stood before.
const STOOD: usize = 10;

/// More steps are not folded.
pub const MAX_STEPS: usize = 20;

/// More rules are not folded: every host evaluates them.
pub const MAX_RULES: usize = 64;

impl Draft<'_> {
    pub(super) fn assigned(&mut self, name: &str, event: &Assigned) -> Result<(), Misfit> {
        let assignment = event.assignment.clone().unwrap_or_default();
        let in_progress = self
            .has(name, |event| matches!(event, Event::ActivationStarted(_) | Event::ActivationStepped(_)));
        let ended = self.has(name, |event| matches!(event, Event::ActivationEnded(_)));
        let service = self.service(name)?;
        if assignment.rules.len() > MAX_RULES {
            return Err(format!("it has {} rules, more than {MAX_RULES}", assignment.rules.len()));
        }
        check_releases(service, &assignment)?;
        // What was for a time only is in force again.
        let comes_back = ended && service.for_a_time().as_ref() == Some(&assignment);
        if !in_progress && !comes_back {
            if let Some(running) = service.running() {
                return Err(format!("activation {} is in progress, and is not ended by it", running.id()));
            }
            end_temporary(service, None);
            if assignment != service.firm {
                let before = std::mem::replace(&mut service.firm, assignment.clone());
                stand_aside(service, before);
            }
        }
        service.assignment = assignment;
        Ok(())
    }

    pub(super) fn activation_started(&mut self, name: &str, event: &ActivationStarted) -> Result<(), Misfit> {
        let id = format!("{name}-{}", self.entry.index);
        let stamp = Some(self.stamp.clone());
        let service = self.service(name)?;
        if event.activation != id {
            return Err(format!("its id is {id:?}, and not {:?}", event.activation));
        }
        if let Some(running) = service.running() {
            return Err(format!("activation {} is in progress, and is not ended before it", running.id()));
        }
        if service.activation(&id).is_some() {
            return Err(format!("activation {id:?} has started already"));
        }
        if event.steps.is_empty() || event.steps.len() > MAX_STEPS {
            return Err(format!("it has 1 to {MAX_STEPS} steps, and not {}", event.steps.len()));
        }
        let Some(version) = service.version_of(&event.release) else {
            return Err(format!("release {:?} was never made", event.release));
        };
        if version != event.version {
            return Err(format!(
                "release {:?} is of version {version}, not of {}",
                event.release, event.version
            ));
        }
        if service.version(version).is_none_or(|version| version.retired.is_some()) {
            return Err(format!("version {version} is retired"));
        }
        if event.before.clone().unwrap_or_default() != service.firm {
            return Err("what it would go back to is not what stands".into());
        }
        match (&event.over, service.for_a_time()) {
            (None, _) => end_temporary(service, None),
            (Some(over), Some(in_force)) if *over == in_force => {}
            (Some(_), _) => return Err("what it is to take the place of is not in force".into()),
        }
        let record = ActivationRecord {
            started: Some(event.clone()),
            stamp,
            temporary: event.expires_ms != 0,
            ..Default::default()
        };
        if service.activations.len() >= ACTIVATIONS {
            let oldest = service.activations.iter().position(|record| !record.temporary);
            service.activations.remove(oldest.unwrap_or(0));
        }
        service.activations.push(record);
        Ok(())
    }

    pub(super) fn activation_stepped(&mut self, name: &str, event: &ActivationStepped) -> Result<(), Misfit> {
        let record = running(self.service(name)?, &event.activation)?;
        let steps = record.started.as_ref().map_or(0, |started| started.steps.len());
        if event.step != record.step + 1 || event.step as usize >= steps {
            return Err(format!("it is at step {} of {steps}, and cannot go to {}", record.step, event.step));
        }
        record.step = event.step;
        record.reports.clear();
        Ok(())
    }

    pub(super) fn activation_reported(
        &mut self,
        name: &str,
        event: &ActivationReported,
    ) -> Result<(), Misfit> {
        let record = running(self.service(name)?, &event.activation)?;
        if event.step != record.step {
            return Err(format!("it is at step {}, and not at {}", record.step, event.step));
        }
        if event.accepted > event.hosts {
            return Err(format!("{} of {} hosts have accepted", event.accepted, event.hosts));
        }
        record.reports.retain(|report| report.tower != event.tower);
        record.reports.push(event.clone());
        record.reports.sort_by(|one, other| one.tower.cmp(&other.tower));
        Ok(())
    }

    pub(super) fn activation_ended(&mut self, name: &str, event: &ActivationEnded) -> Result<(), Misfit> {
        let stamp = Some(self.stamp.clone());
        let service = self.service(name)?;
        let for_a_time = service.temporary().map(|record| record.id().to_owned());
        let newest = service.activations.len().saturating_sub(1);
        let place = service.activations.iter().rposition(|record| record.id() == event.activation);
        let in_force = |place: &usize| *place == newest || for_a_time.as_ref() == Some(&event.activation);
        let Some(place) = place.filter(in_force) else {
            return Err(format!("activation {:?} is not in force", event.activation));
        };
        let last = &mut service.activations[place];
        match (event.outcome(), &last.ended) {
            (Outcome::Unspecified, _) => return Err("it has no outcome".into()),
            (Outcome::Expired, _) if !last.temporary => return Err("it has no time to live".into()),
            // What has succeeded expires later.
            (Outcome::Expired, _) | (_, None) => {}
            (_, Some(ended)) => {
                return Err(format!("it has ended before: {}", ended.outcome().as_str_name()));
            }
        }
        if event.outcome() == Outcome::Succeeded && !last.is_at_last_step() {
            return Err(format!("it is at step {}, which is not the last one", last.step));
        }
        last.ended = Some(event.clone());
        last.ended_stamp = stamp;
        let stands = stands(last, event.outcome());
        last.temporary &= stands;
        let (temporary, last) = (last.temporary, last.clone());
        if stands {
            end_temporary(service, Some(place));
        }
        if stands && !temporary {
            let back = last.started.as_ref().is_some_and(|started| started.kind() == Kind::RollBack);
            let before = std::mem::replace(&mut service.firm, service.assignment.clone());
            if back {
                // What was gone back from is nothing to go back to, and what was gone to no longer is.
                let now = service.firm.clone();
                service.stood.retain(|stood| *stood != now);
            } else {
                stand_aside(service, before);
            }
        }
        Ok(())
    }

    /// What must hold of each service after every entry.
    pub(super) fn check_services(&self) -> Result<(), (String, Misfit)> {
        for (name, service) in &self.services {
            let passing = service.running().is_some() || service.temporary().is_some();
            if !passing && service.assignment != service.firm {
                let misfit = "nothing is in progress, and what is assigned is not what stands".into();
                return Err((name.clone(), misfit));
            }
        }
        Ok(())
    }
}

/// Whether what an activation has assigned stays when it ends so.
pub fn stands(record: &ActivationRecord, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Succeeded => true,
        // Nobody has refused it, and one late host must not take it from all others.
        Outcome::TimedOut => record.is_at_last_step(),
        // There is nothing better to go to: each host keeps what it can.
        Outcome::Rejected => record.started.as_ref().is_some_and(|started| started.kind() == Kind::RollBack),
        Outcome::Unspecified | Outcome::Aborted | Outcome::Superseded | Outcome::Expired => false,
    }
}

fn running<'a>(service: &'a mut Service, id: &str) -> Result<&'a mut ActivationRecord, Misfit> {
    let last = service.activations.last_mut().filter(|record| record.id() == id);
    let Some(last) = last else { return Err(format!("activation {id:?} is not the last one")) };
    match &last.ended {
        Some(ended) => Err(format!("it has ended: {}", ended.outcome().as_str_name())),
        None => Ok(last),
    }
}

fn check_releases(service: &Service, assignment: &Assignment) -> Result<(), Misfit> {
    match releases_of(assignment).find(|release| service.release(release).is_none()) {
        Some(release) => Err(format!("release {release:?} was never made")),
        None => Ok(()),
    }
}

fn stand_aside(service: &mut Service, before: Assignment) {
    // Each stands once, where it stood last.
    let now = service.firm.clone();
    service.stood.retain(|stood| *stood != before && *stood != now);
    if before == now {
        return;
    }
    push_bounded(&mut service.stood, before, STOOD);
}

/// Whatever was for a time only is no longer in force, except for this one.
fn end_temporary(service: &mut Service, except: Option<usize>) {
    for (place, record) in service.activations.iter_mut().enumerate() {
        record.temporary &= Some(place) == except;
    }
}
