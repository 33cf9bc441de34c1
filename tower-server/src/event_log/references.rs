//! What entries refer to by hash.

use bytes::Bytes;
use tower_proto::v1::{self, event::Event};

/// The hashes of the bodies of an entry. What events are that this build does not know, nobody can say.
pub fn references(entry: &v1::LogEntry) -> impl Iterator<Item = &Bytes> {
    entry.events.iter().filter_map(|event| reference(event.event.as_ref()?)).filter(|hash| !hash.is_empty())
}

fn reference(event: &Event) -> Option<&Bytes> {
    match event {
        Event::VersionUploaded(uploaded) => Some(&uploaded.body),
        Event::ReleaseMade(made) => Some(&made.bundle),
        Event::PartEdited(edited) => Some(&edited.body),
        Event::VersionApproved(_)
        | Event::VersionRetired(_)
        | Event::Assigned(_)
        | Event::ActivationStarted(_)
        | Event::ActivationStepped(_)
        | Event::ActivationReported(_)
        | Event::ActivationEnded(_)
        | Event::HoldRecorded(_)
        | Event::HoldReleased(_)
        | Event::SourceAdopted(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked(_)
        | Event::FeatureLevelRaised(_) => None,
    }
}
