//! Folding the log. An entry is applied whole or not at all: it is folded into a draft, which becomes the
//! state if every event of it fits. What does not fit is refused, whoever has written it, and the state
//! before it stands.

pub mod activations;
mod mesh;
mod rights;
pub mod versions;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tower_proto::v1::{self, event::Event};

use super::{
    service::Service,
    state::{Mesh, State},
};

/// How many entries about a service are remembered with it.
const CHANGES: usize = 20;

/// Longer names are not folded.
const MAX_NAME: usize = 253;

/// What an entry has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The entry.
    pub index: u64,
    /// The services that it is about.
    pub services: BTreeSet<String>,
    /// Whether it is about what belongs to no service.
    pub mesh: bool,
}

/// Why an entry does not fold. The state is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {index} of the log (command {command:?}, by {actor:?}) does not fold: {event}{reason}")]
pub struct FoldError {
    /// The entry.
    pub index: u64,
    /// Its command.
    pub command: String,
    /// Who is said to have written it.
    pub actor: String,
    /// The event, if it is one of them, such as `ActivationStepped of service web: `.
    pub event: String,
    /// What is wrong.
    pub reason: String,
    /// A newer Tower may fold it.
    pub unknown: bool,
}

/// Why an event does not fit.
type Misfit = String;

/// What the state will be if all events fit.
struct Draft<'a> {
    state: &'a State,
    entry: &'a v1::LogEntry,
    stamp: v1::Stamp,
    services: BTreeMap<String, Service>,
    mesh: Option<Mesh>,
}

impl State {
    /// Applies the next entry of the log.
    ///
    /// # Errors
    /// If the entry is not the next one, an event of it is unknown to this build, or does not fit what came
    /// before, or its actor was not allowed to. Nothing of it is applied then.
    pub fn apply(&mut self, entry: &v1::LogEntry) -> Result<Applied, FoldError> {
        let Draft { services, mesh, .. } = self.draft(entry)?;
        let applied = Applied {
            index: entry.index,
            services: services.keys().cloned().collect(),
            mesh: mesh.is_some(),
        };
        self.index = entry.index;
        self.time_ms = entry.time_ms;
        for (name, service) in services {
            self.services.insert(name.into(), Arc::new(service));
        }
        if let Some(mesh) = mesh {
            self.mesh = Arc::new(mesh);
        }
        if !entry.command_id.is_empty() {
            self.commands.record(&entry.command_id, entry.index);
        }
        Ok(applied)
    }

    /// Whether the next entry could be applied.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub fn check(&self, entry: &v1::LogEntry) -> Result<(), FoldError> {
        self.draft(entry).map(|_| ())
    }

    fn draft<'a>(&'a self, entry: &'a v1::LogEntry) -> Result<Draft<'a>, FoldError> {
        let fail = |event: String, reason: String, unknown| FoldError {
            index: entry.index,
            command: entry.command.clone(),
            actor: entry.actor.clone().unwrap_or_default().name,
            event,
            reason,
            unknown,
        };
        if entry.index != self.index + 1 {
            let reason = format!("the next entry is {}", self.index + 1);
            return Err(fail(String::new(), reason, false));
        }
        if let Some(earlier) = self.entry_of_command(&entry.command_id) {
            let reason = format!("its command id {:?} is that of entry {earlier}", entry.command_id);
            return Err(fail(String::new(), reason, false));
        }
        let mut draft = Draft::new(self, entry);
        for event in &entry.events {
            let Some(kind) = &event.event else {
                return Err(fail(
                    "an event is of a kind that this build does not know".into(),
                    String::new(),
                    true,
                ));
            };
            draft.fold(&event.service, kind).map_err(|reason| {
                fail(format!("{} of {:?}: ", name_of(kind), event.service), reason, false)
            })?;
        }
        draft
            .check_services()
            .map_err(|(service, reason)| fail(format!("service {service}: "), reason, false))?;
        Ok(draft)
    }
}

impl<'a> Draft<'a> {
    fn new(state: &'a State, entry: &'a v1::LogEntry) -> Self {
        let stamp = v1::Stamp {
            index: entry.index,
            time_ms: entry.time_ms,
            actor: entry.actor.clone(),
            reason: entry.reason.clone(),
        };
        Self { state, entry, stamp, services: BTreeMap::new(), mesh: None }
    }

    fn fold(&mut self, service: &str, event: &Event) -> Result<(), Misfit> {
        self.check_rights(service, event)?;
        match event {
            Event::VersionUploaded(event) => self.version_uploaded(service, event),
            Event::VersionApproved(event) => self.version_approved(service, event),
            Event::VersionRetired(event) => self.version_retired(service, event),
            Event::ReleaseMade(event) => self.release_made(service, event),
            Event::Assigned(event) => self.assigned(service, event),
            Event::ActivationStarted(event) => self.activation_started(service, event),
            Event::ActivationStepped(event) => self.activation_stepped(service, event),
            Event::ActivationReported(event) => self.activation_reported(service, event),
            Event::ActivationEnded(event) => self.activation_ended(service, event),
            Event::PartEdited(event) => self.part_edited(service, event),
            Event::HoldRecorded(event) => self.hold_recorded(event),
            Event::HoldReleased(event) => self.hold_released(event),
            Event::SourceAdopted(event) => self.source_adopted(event),
            Event::TokenIssued(event) => self.token_issued(event),
            Event::TokenRevoked(event) => self.token_revoked(event),
            Event::FeatureLevelRaised(event) => self.level_raised(*event),
        }
    }

    /// The service as the events so far have left it.
    fn seen(&self, service: &str) -> Option<&Service> {
        self.services.get(service).or_else(|| self.state.service(service).map(|service| &**service))
    }

    /// Whether the entry has such an event of the service.
    fn has(&self, service: &str, of_kind: impl Fn(&Event) -> bool) -> bool {
        let of_service = self.entry.events.iter().filter(|event| event.service == service);
        of_service.filter_map(|event| event.event.as_ref()).any(of_kind)
    }

    /// The service, to be changed. That the entry is about it is noted with the first change.
    fn service(&mut self, name: &str) -> Result<&mut Service, Misfit> {
        if !self.services.contains_key(name) {
            check_name("a service", name)?;
            let mut service = self.state.service(name).map(|held| Service::clone(held)).unwrap_or_default();
            service.etag = self.entry.index;
            let change =
                v1::ChangeRecord { command: self.entry.command.clone(), stamp: Some(self.stamp.clone()) };
            push_bounded(&mut service.changes, change, CHANGES);
            self.services.insert(name.to_owned(), service);
        }
        self.services.get_mut(name).ok_or_else(|| "it is gone".into())
    }

    /// What belongs to no service, to be changed.
    fn mesh(&mut self) -> &mut Mesh {
        self.mesh.get_or_insert_with(|| Mesh::clone(&self.state.mesh))
    }
}

/// Names become parts of other names, of paths and of lines.
fn check_name(what: &str, name: &str) -> Result<(), Misfit> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(format!("the name of {what} has 1 to {MAX_NAME} bytes, and not {}", name.len()));
    }
    match name.chars().find(|char| *char == '/' || char.is_whitespace() || char.is_control()) {
        Some(char) => Err(format!("the name of {what} must not contain {char:?}")),
        None => Ok(()),
    }
}

fn check_hash(what: &str, hash: &[u8]) -> Result<(), Misfit> {
    if hash.len() == 32 { Ok(()) } else { Err(format!("{what} has {} bytes, and not 32", hash.len())) }
}

fn push_bounded<T>(list: &mut Vec<T>, item: T, limit: usize) {
    list.push(item);
    if list.len() > limit {
        list.drain(..list.len() - limit);
    }
}

fn name_of(event: &Event) -> &'static str {
    match event {
        Event::VersionUploaded(_) => "VersionUploaded",
        Event::VersionApproved(_) => "VersionApproved",
        Event::VersionRetired(_) => "VersionRetired",
        Event::ReleaseMade(_) => "ReleaseMade",
        Event::Assigned(_) => "Assigned",
        Event::ActivationStarted(_) => "ActivationStarted",
        Event::ActivationStepped(_) => "ActivationStepped",
        Event::ActivationReported(_) => "ActivationReported",
        Event::ActivationEnded(_) => "ActivationEnded",
        Event::PartEdited(_) => "PartEdited",
        Event::HoldRecorded(_) => "HoldRecorded",
        Event::HoldReleased(_) => "HoldReleased",
        Event::SourceAdopted(_) => "SourceAdopted",
        Event::TokenIssued(_) => "TokenIssued",
        Event::TokenRevoked(_) => "TokenRevoked",
        Event::FeatureLevelRaised(_) => "FeatureLevelRaised",
    }
}
