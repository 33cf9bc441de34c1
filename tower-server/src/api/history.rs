//! What was before an entry of the log: the documents and assignments that it changed.

use tower_common::{
    api::{activity::Entry, plan::Change, service::Rule},
    document::Owner,
};
use tower_proto::v1::{self, LogEntry, event::Event};

use super::{caller::unreadable, changes, documents, error::Refused, told};
use crate::registry::{Registry, Service, State};

/// Entries that are looked through for the assignment before; one that is older is not told.
const MAX_BACK: u64 = 5_000;

/// Entries that are read at once.
const CHUNK: u64 = 250;

/// An entry with what was otherwise before.
///
/// # Errors
/// If the log cannot be read.
pub async fn with_changes(registry: &Registry, entry: &LogEntry) -> Result<Entry, Refused> {
    let folded = registry.state();
    let mut told = told::activity::entry(entry);
    for (event, told) in entry.events.iter().zip(&mut told.events) {
        told.changes = changes_of(registry, &folded, entry.index, event).await?;
    }
    Ok(told)
}

async fn changes_of(
    registry: &Registry,
    folded: &State,
    index: u64,
    event: &v1::Event,
) -> Result<Option<Vec<Change>>, Refused> {
    let service = folded.service(&event.service).map(|service| &**service);
    match &event.event {
        Some(Event::VersionUploaded(it)) => {
            let before = service.and_then(|service| service.version(it.number.checked_sub(1)?));
            let before = before.and_then(|record| Some(record.uploaded.as_ref()?.body.as_ref()));
            between(registry, Owner::Service, before.unwrap_or_default(), &it.body).await.map(Some)
        }
        Some(Event::PartEdited(it)) => {
            let part = folded.part(it.owner(), Some(&*event.service).filter(|service| !service.is_empty()));
            let before = it.revision.checked_sub(2).and_then(|place| usize::try_from(place).ok());
            let before = part.and_then(|part| Some(part.revisions.get(before?)?.body.as_ref()));
            let owner = documents::owner(it.owner());
            between(registry, owner, before.unwrap_or_default(), &it.body).await.map(Some)
        }
        Some(Event::Assigned(it)) => {
            let Some(before) = assignment_before(registry, &event.service, index).await? else {
                return Ok(None);
            };
            let none = Service::default();
            let rules = |assignment: &v1::Assignment| -> Vec<Rule> {
                told::services::rules(service.unwrap_or(&none), assignment)
            };
            let after = it.assignment.clone().unwrap_or_default();
            Ok(Some(changes::of_assignments(&rules(&before), &rules(&after))))
        }
        _ => Ok(None),
    }
}

async fn between(
    registry: &Registry,
    owner: Owner,
    before: &[u8],
    after: &[u8],
) -> Result<Vec<Change>, Refused> {
    let mut documents = [None, None];
    for (document, hash) in documents.iter_mut().zip([before, after]) {
        if !hash.is_empty() {
            *document = Some(documents::read(registry, "the document", hash, owner).await?);
        }
    }
    let [before, after] = &documents;
    Ok(changes::of_documents(before.as_ref(), after.as_ref()))
}

/// What the service's assignment was before this entry; nothing, if that is too long ago to look for.
async fn assignment_before(
    registry: &Registry,
    service: &str,
    index: u64,
) -> Result<Option<v1::Assignment>, Refused> {
    let mut high = index;
    while high > 1 && index - high < MAX_BACK {
        let count = CHUNK.min(high - 1);
        let from = high - count;
        let read = registry.entries(from, usize::try_from(count).unwrap_or(usize::MAX)).await;
        let entries = read.map_err(|error| unreadable(&error))?;
        for entry in entries.iter().rev() {
            for event in entry.events.iter().rev().filter(|event| event.service == service) {
                if let Some(Event::Assigned(it)) = &event.event {
                    return Ok(Some(it.assignment.clone().unwrap_or_default()));
                }
            }
        }
        high = from;
    }
    Ok((high <= 1).then(v1::Assignment::default))
}
