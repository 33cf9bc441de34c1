//! What the log says about one service.

use std::collections::BTreeSet;

use tower_proto::v1;

use super::{
    refusal::{Refusal, RefusalKind},
    steps::assignment_at,
};

/// One service: its versions, releases, assignment and activations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Service {
    /// The last entry about the service.
    pub etag: u64,
    /// By number, without gaps: version 1 is the first.
    pub versions: Vec<v1::VersionRecord>,
    /// The newest, and those in use, in the order in which they were made.
    pub releases: Vec<v1::ReleaseRecord>,
    /// Which release goes to whom. Without rules and default, everyone has the release "default".
    pub assignment: v1::Assignment,
    /// The newest activations, the oldest of them first.
    pub activations: Vec<v1::ActivationRecord>,
    /// What stands: the assignment, unless that is in progress or for a time only. It is what is gone back to.
    pub firm: v1::Assignment,
    /// What stood before, the oldest first.
    pub stood: Vec<v1::Assignment>,
    /// Platform's part for this service.
    pub platform: v1::PartRecord,
    /// Security's part for this service.
    pub security: v1::PartRecord,
    /// The newest entries about the service, the oldest of them first.
    pub changes: Vec<v1::ChangeRecord>,
}

/// Of how many assignments that stood before the releases stay published, so that a way back needs no payload.
const KEPT_BEFORE: usize = 3;

impl Service {
    pub(super) fn from_record(record: v1::ServiceRecord) -> Self {
        Self {
            etag: record.etag,
            versions: record.versions,
            releases: record.releases,
            assignment: record.assignment.unwrap_or_default(),
            activations: record.activations,
            firm: record.firm.unwrap_or_default(),
            stood: record.stood,
            platform: record.platform.unwrap_or_default(),
            security: record.security.unwrap_or_default(),
            changes: record.changes,
        }
    }

    pub(super) fn to_record(&self) -> v1::ServiceRecord {
        v1::ServiceRecord {
            etag: self.etag,
            versions: self.versions.clone(),
            releases: self.releases.clone(),
            assignment: Some(self.assignment.clone()),
            activations: self.activations.clone(),
            firm: Some(self.firm.clone()),
            stood: self.stood.clone(),
            platform: Some(self.platform.clone()),
            security: Some(self.security.clone()),
            changes: self.changes.clone(),
        }
    }

    /// A version by its number.
    pub fn version(&self, number: u64) -> Option<&v1::VersionRecord> {
        self.versions.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    /// The version with this content.
    pub fn version_with(&self, hash: &[u8]) -> Option<&v1::VersionUploaded> {
        self.versions.iter().filter_map(|version| version.uploaded.as_ref()).find(|v| v.hash == hash)
    }

    /// Who owns the service: whom its newest version names, or nobody yet.
    pub fn owner(&self) -> &str {
        let newest = self.versions.last().and_then(|version| version.uploaded.as_ref());
        newest.map_or("", |version| &version.owner)
    }

    /// A release by its name.
    pub fn release(&self, release: &str) -> Option<&v1::ReleaseMade> {
        self.releases.iter().filter_map(|record| record.made.as_ref()).find(|made| made.release == release)
    }

    /// The version that a release was made of.
    pub fn version_of(&self, release: &str) -> Option<u64> {
        self.release(release).map(|made| made.version)
    }

    /// An activation, if it is among the newest.
    pub fn activation(&self, id: &str) -> Option<&v1::ActivationRecord> {
        self.activations.iter().rev().find(|record| record.id() == id)
    }

    /// The activation that is in progress.
    pub fn running(&self) -> Option<&v1::ActivationRecord> {
        self.activations.last().filter(|record| record.is_running())
    }

    /// The activation in force that will be taken back when its time has come.
    pub fn temporary(&self) -> Option<&v1::ActivationRecord> {
        match self.running() {
            Some(running) => Some(running).filter(|record| record.temporary),
            None => self.stands_for_a_time(),
        }
    }

    /// The activation with a time to live that has succeeded. One that is in progress may be about to take its
    /// place; it is in force again if that one is taken back.
    pub fn stands_for_a_time(&self) -> Option<&v1::ActivationRecord> {
        self.activations.iter().rev().find(|record| record.temporary && !record.is_running())
    }

    /// What it assigns.
    pub fn for_a_time(&self) -> Option<v1::Assignment> {
        let started = self.stands_for_a_time()?.started.as_ref()?;
        Some(assignment_at(started, started.steps.len().saturating_sub(1)))
    }

    /// What is assigned when the activation in progress is taken back.
    pub fn fallback(&self) -> &v1::Assignment {
        let over = self.running().and_then(|record| record.started.as_ref()?.over.as_ref());
        over.unwrap_or(&self.firm)
    }

    /// The releases that a host may have to serve at once: those of the assignment, and those before it.
    pub fn published(&self) -> BTreeSet<&str> {
        let mut releases: BTreeSet<&str> = releases_of(&self.assignment).collect();
        releases.extend(releases_of(self.fallback()));
        releases.extend(releases_of(&self.firm));
        releases.extend(self.stood.iter().rev().take(KEPT_BEFORE).flat_map(releases_of));
        releases
    }

    /// The versions that a host serves, or goes back to by itself.
    pub fn versions_in_use(&self) -> BTreeSet<u64> {
        let releases = releases_of(&self.assignment).chain(releases_of(self.fallback()));
        let releases = releases.chain(releases_of(&self.firm));
        releases.filter_map(|release| self.version_of(release)).collect()
    }

    /// Refuses a command that was made for another state of the service.
    ///
    /// # Errors
    /// If there are newer entries about the service; they are named.
    pub fn expect(&self, name: &str, etag: Option<u64>) -> Result<(), Refusal> {
        let Some(etag) = etag.filter(|etag| *etag != self.etag) else { return Ok(()) };
        let since: Vec<String> = self
            .changes
            .iter()
            .filter(|change| change.stamp.as_ref().is_some_and(|stamp| stamp.index > etag))
            .map(describe)
            .collect();
        let message = if since.is_empty() {
            format!("it is at \"{}\", and never was at \"{etag}\"", self.etag)
        } else {
            format!("it has changed since \"{etag}\": {}", since.join("; "))
        };
        let next =
            format!("look at it again, and repeat with If-Match \"{}\" if that is still right", self.etag);
        Err(Refusal::new(RefusalKind::Stale, "stale", format!("service {name}"), message)
            .field("If-Match")
            .next(next))
    }
}

/// The releases that an assignment names, its default first; not the release "default".
pub fn releases_of(assignment: &v1::Assignment) -> impl Iterator<Item = &str> {
    let rules = assignment.rules.iter().map(|rule| rule.release.as_str());
    [assignment.default_release.as_str()].into_iter().chain(rules).filter(|release| !release.is_empty())
}

/// An entry in words: what, by whom, why, and where in the log.
fn describe(change: &v1::ChangeRecord) -> String {
    let stamp = change.stamp.clone().unwrap_or_default();
    let actor = stamp.actor.unwrap_or_default().name;
    let reason = if stamp.reason.is_empty() { String::new() } else { format!(", {:?}", stamp.reason) };
    format!("{} by {actor}{reason} (\"{}\")", change.command, stamp.index)
}

/// What the log says about one activation.
pub trait Activation {
    /// Its id.
    fn id(&self) -> &str;
    /// Whether it is in progress.
    fn is_running(&self) -> bool;
    /// Whether it has reached its last step.
    fn is_at_last_step(&self) -> bool;
}

impl Activation for v1::ActivationRecord {
    fn id(&self) -> &str {
        self.started.as_ref().map_or("", |started| &started.activation)
    }

    fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    fn is_at_last_step(&self) -> bool {
        let steps = self.started.as_ref().map_or(0, |started| started.steps.len());
        self.step as usize + 1 >= steps
    }
}
