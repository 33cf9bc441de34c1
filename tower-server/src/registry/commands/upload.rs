//! Keep a document as a version. It changes nothing until it is activated.

use tower_proto::v1::{self, event::Event};

use super::{Context, Decision, PreparedDocument, event};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    service::Service,
    state::State,
};

/// Keep a document as a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The service.
    pub service: String,
    /// The name of the file that it comes from, for messages.
    pub file: String,
    /// The document.
    pub text: String,
}

pub(super) fn handle(state: &State, command: &Upload, context: &Context) -> Result<Decision, Refusal> {
    let name = &command.service;
    context.may(state, Action::Upload, Some(name))?;
    let service = state.service(name);
    if let Some(service) = service {
        service.expect(name, context.if_match)?;
    }
    let document = prepared(name, context)?;
    let (number, new) = version_for(name, service.map(|service| &**service), document)?;
    let events = Vec::from_iter(new);
    let note =
        if events.is_empty() { format!("{name}@{number} has the same content") } else { String::new() };
    Ok(Decision { events, note, version: Some(number), activation: None })
}

/// The number of the version with this content, and the event that makes it one if it is new.
pub(super) fn version_for(
    name: &str,
    service: Option<&Service>,
    document: &PreparedDocument,
) -> Result<(u64, Option<v1::Event>), Refusal> {
    if let Some(same) = service.and_then(|service| service.version_with(&document.hash)) {
        return Ok((same.number, None));
    }
    let number = service.map_or(0, |service| service.versions.len() as u64) + 1;
    let uploaded = v1::VersionUploaded {
        number,
        hash: document.hash.clone().into(),
        body: document.body.clone().into(),
        owner: document.owner.clone(),
    };
    Ok((number, Some(event(name, Event::VersionUploaded(uploaded)))))
}

pub(super) fn prepared<'a>(name: &str, context: &'a Context) -> Result<&'a PreparedDocument, Refusal> {
    context.prepared.document.as_ref().ok_or_else(|| {
        let object = format!("service {name}");
        Refusal::new(RefusalKind::Invalid, "no-document", object, "there is no document").field("document")
    })
}
