//! What an activation would have changed, and who wrote that: whom to talk to when an Envoy has rejected it.

use tower_common::{
    api::plan::Change,
    document::{Document, Effective, Part},
    view::evaluate,
};
use tower_proto::v1::{self, part_edited};

use super::{AppState, changes, effective, error::Refused, told};
use crate::registry::{Service, State};

/// The fields in which the release that was rejected differs from what the host had, each with who last wrote it.
///
/// # Errors
/// If a document cannot be read.
pub async fn of(
    state: &AppState,
    folded: &State,
    name: &str,
    service: &Service,
    record: &v1::ActivationRecord,
) -> Result<Vec<Change>, Refused> {
    let rejection = record.ended.as_ref().and_then(|ended| ended.rejection.as_ref());
    let (Some(started), Some(rejection)) = (&record.started, rejection) else { return Ok(Vec::new()) };
    let Some(made) = service.release(&started.release) else { return Ok(Vec::new()) };
    let Some(after) = effective::of_release(&state.registry, folded, name, service, made).await? else {
        return Ok(Vec::new());
    };
    let had = before(state, started, &rejection.host);
    let before = match service.release(&had) {
        Some(made) => effective::of_release(&state.registry, folded, name, service, made).await?,
        None => None,
    };
    let before =
        before.unwrap_or_else(|| Effective { document: Document::default(), ..Effective::default() });
    let mut changes = changes::of_documents(Some(&before.document), Some(&after.document));
    for change in &mut changes {
        let mut parts = after.parts_of(&change.field);
        if parts.is_empty() {
            // It is there no more: whoever had it has taken it out.
            parts = before.parts_of(&change.field);
        }
        let mut authors: Vec<String> =
            parts.into_iter().filter_map(|part| author(folded, name, service, made, part)).collect();
        authors.dedup();
        change.author = told::some(&authors.join(", "));
    }
    Ok(changes)
}

/// The release that the host had before: by what is known of it, else what most have.
fn before(state: &AppState, started: &v1::ActivationStarted, host: &str) -> String {
    let Some(assignment) = started.over.as_ref().or(started.before.as_ref()) else { return String::new() };
    let hosts = state.beacons.fleet().hosts();
    let known = hosts.iter().find(|known| known.facts.id == host);
    let had = known.and_then(|known| evaluate(assignment, &known.facts).ok());
    had.unwrap_or(&assignment.default_release).to_owned()
}

/// Who wrote a part as it went into a release.
fn author(
    folded: &State,
    name: &str,
    service: &Service,
    made: &v1::ReleaseMade,
    part: Part,
) -> Option<String> {
    let edited = |owner: part_edited::Owner, own: bool, revision: u64| {
        let place = usize::try_from(revision.checked_sub(1)?).ok()?;
        let revision = folded.part(owner, own.then_some(name))?.revisions.get(place)?;
        revision.stamp.as_ref().map(told::author)
    };
    match part {
        Part::Platform => edited(part_edited::Owner::Platform, false, made.platform),
        Part::PlatformForService => edited(part_edited::Owner::Platform, true, made.platform_for_service),
        Part::Security => edited(part_edited::Owner::Security, false, made.security),
        Part::SecurityForService => edited(part_edited::Owner::Security, true, made.security_for_service),
        Part::Service => service.version(made.version)?.stamp.as_ref().map(told::author),
    }
}
