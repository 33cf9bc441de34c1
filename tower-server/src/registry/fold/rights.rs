//! Whether the actor of an entry was allowed to bring about an event, at the time of the entry.

use std::collections::BTreeSet;

use tower_proto::v1::{self, activation_ended::Outcome, event::Event, part_edited::Owner};

use super::{Draft, Misfit};
use crate::registry::{
    permission::{Action, TOWER, has_admin, may},
    service::releases_of,
};

impl Draft<'_> {
    pub(super) fn check_rights(&self, service: &str, event: &Event) -> Result<(), Misfit> {
        let action = match event {
            Event::VersionUploaded(_) => Action::Upload,
            Event::VersionApproved(_) => Action::Approve,
            Event::VersionRetired(_) => Action::Retire,
            Event::ReleaseMade(made) => self.action_for(service, [made.version]),
            Event::ActivationStarted(started) => self.action_for(service, [started.version]),
            Event::Assigned(assigned) => match self.action_for_assignment(service, assigned) {
                Some(action) => action,
                None => return Ok(()),
            },
            Event::ActivationStepped(_) => Action::Step,
            Event::ActivationReported(_) => Action::Report,
            Event::ActivationEnded(ended) => match ended.outcome() {
                Outcome::Aborted | Outcome::Superseded => Action::Abort,
                Outcome::Unspecified
                | Outcome::Succeeded
                | Outcome::Rejected
                | Outcome::Expired
                | Outcome::TimedOut => Action::Report,
            },
            Event::PartEdited(edited) => match edited.owner() {
                Owner::Unspecified => return Err("it has no owner".into()),
                Owner::Platform => Action::EditPlatform,
                Owner::Security => Action::EditSecurity,
            },
            Event::HoldRecorded(_) => Action::RecordHold,
            Event::HoldReleased(_) => Action::ReleaseHold,
            Event::SourceAdopted(_) => Action::Adopt,
            Event::TokenIssued(_) if self.credential() == TOWER => {
                // Tower makes the first token, and another when nobody is left who could make one.
                let needed = !has_admin(self.state, self.entry.time_ms);
                return if needed { Ok(()) } else { Err("Tower may not: there is an admin".into()) };
            }
            Event::TokenRevoked(revoked) if self.credential() == revoked.id => Action::Read,
            Event::TokenIssued(_) | Event::TokenRevoked(_) => Action::ManageTokens,
            Event::FeatureLevelRaised(_) => Action::RaiseLevel,
        };
        self.may(action, service)
    }

    fn may(&self, action: Action, service: &str) -> Result<(), Misfit> {
        let service = Some(service).filter(|service| !service.is_empty());
        may(self.state, self.credential(), action, service, self.entry.time_ms)
            .map_err(|refusal| refusal.to_string())
    }

    fn credential(&self) -> &str {
        self.entry.actor.as_ref().map_or("", |actor| &actor.credential)
    }

    /// Versions that are in use may be released again by those who own other parts of the document.
    fn action_for(&self, service: &str, versions: impl IntoIterator<Item = u64>) -> Action {
        // As it was before the entry: what the entry itself brings into use does not count.
        let used = self.state.service(service).map(|held| held.versions_in_use()).unwrap_or_default();
        let again = versions.into_iter().all(|version| used.contains(&version));
        if again { Action::Rerelease } else { Action::Activate }
    }

    /// What it takes to assign this; nothing, if it follows from an activation that is checked itself.
    fn action_for_assignment(&self, name: &str, assigned: &v1::Assigned) -> Option<Action> {
        let assignment = assigned.assignment.clone().unwrap_or_default();
        let stepped = self.has(name, |event| matches!(event, Event::ActivationStepped(_)));
        let ended = self.has(name, |event| matches!(event, Event::ActivationEnded(_)));
        let Some(service) = self.seen(name) else { return Some(Action::Activate) };
        let mut held: BTreeSet<&str> = releases_of(&service.assignment).collect();
        let back = service.for_a_time().unwrap_or_else(|| service.firm.clone());
        held.extend(releases_of(&back));
        if stepped && let Some(started) = service.running().and_then(|record| record.started.as_ref()) {
            held.insert(&started.release);
        }
        let new: Vec<&str> = releases_of(&assignment).filter(|release| !held.contains(release)).collect();
        if new.is_empty() && (stepped || (ended && assignment == back)) {
            return None;
        }
        if releases_of(&assignment).next().is_none() {
            return Some(Action::Deactivate);
        }
        Some(self.action_for(name, new.into_iter().map(|release| service.version_of(release).unwrap_or(0))))
    }
}
