//! Say that a version is not to be used again.

use tower_proto::v1::{VersionRetired, event::Event};

use super::{Context, Decision, called, event, known};
use crate::registry::{
    permission::Action,
    refusal::{Refusal, RefusalKind},
    state::State,
};

/// Say that a version is not to be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retire {
    /// The service.
    pub service: String,
    /// The version's number.
    pub version: u64,
}

pub(super) fn handle(state: &State, command: &Retire, context: &Context) -> Result<Decision, Refusal> {
    let (name, number) = (&command.service, command.version);
    context.may(state, Action::Retire, Some(name))?;
    let service = known(state, name)?;
    service.expect(name, context.if_match)?;
    let refuse =
        |kind, code, message: &str| Refusal::new(kind, code, called(name, number), message).field("version");
    let Some(version) = service.version(number) else {
        return Err(refuse(RefusalKind::NotFound, "no-such-version", "there is no such version"));
    };
    if version.retired.is_some() {
        let nothing = Decision::nothing(format!("{name}@{number} is retired already"));
        return Ok(Decision { version: Some(number), ..nothing });
    }
    if service.versions_in_use().contains(&number) {
        let message = "hosts have it, or would go back to it";
        return Err(refuse(RefusalKind::Blocked, "version-in-use", message)
            .next("activate another version for everyone first"));
    }
    let retired = vec![event(name, Event::VersionRetired(VersionRetired { number }))];
    Ok(Decision { version: Some(number), ..Decision::of(retired) })
}
