//! Which revisions of the parts of platform and security go into a release.

use bytes::Bytes;
use tower_common::document::Owner;
use tower_proto::v1::{self, ReleaseMade, part_edited};

use crate::registry::{service::releases_of, state::State};

/// The parts, in the order in which releases name their revisions: whose, and whether for one service alone.
const PARTS: [(part_edited::Owner, Owner, bool); 4] = [
    (part_edited::Owner::Platform, Owner::Platform, false),
    (part_edited::Owner::Platform, Owner::Platform, true),
    (part_edited::Owner::Security, Owner::Security, false),
    (part_edited::Owner::Security, Owner::Security, true),
];

/// Revisions of the four parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::registry) struct Revisions([Revision; 4]);

/// A revision of a part; 0 is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Revision {
    number: u64,
    /// The hash of the body; none if the part is gone, or never was.
    body: Option<Bytes>,
}

impl Revisions {
    /// The newest.
    pub(in crate::registry) fn latest(state: &State, name: &str) -> Self {
        Self::pick(state, name, |part, _| part.revisions.len() as u64)
    }

    /// Those of a release.
    pub(super) fn of(state: &State, name: &str, made: &ReleaseMade) -> Self {
        let numbers = [made.platform, made.platform_for_service, made.security, made.security_for_service];
        Self::pick(state, name, |_, place| numbers[place])
    }

    /// Those of the release that hosts have; the newest if they have none.
    pub(super) fn in_force(state: &State, name: &str) -> Self {
        let service = state.service(name);
        let made = service.and_then(|service| service.release(releases_of(&service.firm).next()?));
        made.map_or_else(|| Self::latest(state, name), |made| Self::of(state, name, made))
    }

    fn pick(state: &State, name: &str, number: impl Fn(&v1::PartRecord, usize) -> u64) -> Self {
        let mut place = 0;
        Self(PARTS.map(|(owner, _, own)| {
            let part = state.part(owner, own.then_some(name));
            let number = part.map_or(0, |part| number(part, place));
            place += 1;
            let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            let revision = part.zip(at).and_then(|(part, at)| part.revisions.get(at));
            let body = revision.map(|revision| revision.body.clone()).filter(|body| !body.is_empty());
            Revision { number, body }
        }))
    }

    /// Their numbers.
    pub(super) fn numbers(&self) -> [u64; 4] {
        self.0.each_ref().map(|revision| revision.number)
    }

    /// Each that says something: how it is called, its owner, and its body.
    pub(super) fn bodies(&self, name: &str) -> [Option<(String, Owner, Bytes)>; 4] {
        let mut parts = self.0.iter().zip(PARTS).map(|(revision, (_, owner, own))| {
            let called = if own { format!("{owner}/{name}") } else { owner.to_string() };
            Some((format!("{called}@{}", revision.number), owner, revision.body.clone()?))
        });
        std::array::from_fn(|_| parts.next().flatten())
    }
}
