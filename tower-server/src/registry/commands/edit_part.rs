//! Edit a part of the document that belongs to platform or security. It changes nothing until releases with
//! it are activated.

use tower_proto::v1::{PartEdited, event::Event, part_edited::Owner};

use super::{Context, Decision, event};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    state::State,
};

/// Edit a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPart {
    /// Whose part.
    pub owner: Owner,
    /// For which service; none is all.
    pub service: Option<String>,
    /// The name of the file that it comes from, for messages.
    pub file: String,
    /// The document; none takes the part away.
    pub text: Option<String>,
}

pub(super) fn handle(state: &State, command: &EditPart, context: &Context) -> Result<Decision, Refusal> {
    let service = command.service.as_deref();
    let whose = match command.owner {
        Owner::Unspecified | Owner::Platform => "platform",
        Owner::Security => "security",
    };
    let object = match service {
        Some(service) => format!("{whose} part of service {service}"),
        None => format!("{whose} part of all services"),
    };
    let action = match command.owner {
        Owner::Unspecified => {
            let message = "it belongs to nobody";
            return Err(Refusal::new(RefusalKind::Invalid, "no-owner", object, message).field("owner"));
        }
        Owner::Platform => Action::EditPlatform,
        Owner::Security => Action::EditSecurity,
    };
    context.may(state, action, service)?;
    let part = state.part(command.owner, service);
    let (etag, revisions) = part.map_or((0, 0), |part| (part.etag, part.revisions.len() as u64));
    if let Some(expected) = context.if_match.filter(|expected| *expected != etag) {
        let last = part.and_then(|part| part.revisions.last()?.stamp.clone()).unwrap_or_default();
        let by = last.actor.unwrap_or_default().name;
        let message = format!("it has changed since \"{expected}\": by {by}, {:?} (\"{etag}\")", last.reason);
        return Err(Refusal::new(RefusalKind::Stale, "stale", object, message)
            .field("If-Match")
            .owner(whose)
            .next(format!("look at it again, and repeat with If-Match \"{etag}\" if that is still right")));
    }
    let body = match (&command.text, &context.prepared.document) {
        (None, _) => Vec::new(),
        (Some(_), Some(document)) => document.body.clone(),
        (Some(_), None) => {
            let message = "there is no document";
            return Err(Refusal::new(RefusalKind::Invalid, "no-document", object, message).field("document"));
        }
    };
    let held = part.and_then(|part| part.revisions.last()).map(|revision| revision.body.to_vec());
    if held.unwrap_or_default() == body {
        return Ok(Decision::nothing(format!("the {object} is so already")));
    }
    let edited = PartEdited { owner: command.owner.into(), revision: revisions + 1, body: body.into() };
    Ok(Decision::of(vec![event(service.unwrap_or_default(), Event::PartEdited(edited))]))
}
