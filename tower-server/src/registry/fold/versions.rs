//! Versions, releases, and the parts of platform and security.

use std::collections::BTreeSet;

use tower_proto::v1::{
    PartEdited, PartRecord, ReleaseMade, ReleaseRecord, RevisionRecord, VersionApproved, VersionRecord,
    VersionRetired, VersionUploaded, part_edited::Owner,
};

use super::{Draft, Misfit, check_hash, check_name};
use crate::registry::service::{Service, releases_of};

/// How many releases are remembered beyond those in use.
const RELEASES: usize = 20;

impl Draft<'_> {
    pub(super) fn version_uploaded(&mut self, name: &str, event: &VersionUploaded) -> Result<(), Misfit> {
        check_hash("the hash of the document", &event.hash)?;
        check_hash("the hash of the body", &event.body)?;
        let stamp = Some(self.stamp.clone());
        let service = self.service(name)?;
        let next = service.versions.len() as u64 + 1;
        if event.number != next {
            return Err(format!("the next version is {next}, and not {}", event.number));
        }
        if let Some(same) = service.version_with(&event.hash) {
            return Err(format!("version {} has the same content", same.number));
        }
        let record = VersionRecord { uploaded: Some(event.clone()), stamp, approved: None, retired: None };
        service.versions.push(record);
        Ok(())
    }

    pub(super) fn version_approved(&mut self, name: &str, event: &VersionApproved) -> Result<(), Misfit> {
        let stamp = Some(self.stamp.clone());
        let version = version_of(self.service(name)?, event.number)?;
        if version.retired.is_some() {
            return Err(format!("version {} is retired", event.number));
        }
        version.approved = stamp;
        Ok(())
    }

    pub(super) fn version_retired(&mut self, name: &str, event: &VersionRetired) -> Result<(), Misfit> {
        let stamp = Some(self.stamp.clone());
        let service = self.service(name)?;
        if service.versions_in_use().contains(&event.number) {
            return Err(format!("version {} is in use", event.number));
        }
        let version = version_of(service, event.number)?;
        if version.retired.is_some() {
            return Err(format!("version {} is retired already", event.number));
        }
        version.retired = stamp;
        Ok(())
    }

    pub(super) fn release_made(&mut self, name: &str, event: &ReleaseMade) -> Result<(), Misfit> {
        check_hash("the hash of the bundle", &event.bundle)?;
        check_name("a release", &event.release)?;
        if event.release != release_name(&event.bundle) {
            return Err(format!("release {:?} is not named after its bundle", event.release));
        }
        for (owner, revision, for_service) in [
            (Owner::Platform, event.platform, false),
            (Owner::Platform, event.platform_for_service, true),
            (Owner::Security, event.security, false),
            (Owner::Security, event.security_for_service, true),
        ] {
            let part = self.part(owner, if for_service { name } else { "" });
            if revision > part.map_or(0, |part| part.revisions.len() as u64) {
                return Err(format!(
                    "there is no revision {revision} of the part of {}",
                    owner.as_str_name()
                ));
            }
        }
        let stamp = Some(self.stamp.clone());
        let service = self.service(name)?;
        let version = version_of(service, event.version)?;
        if version.retired.is_some() {
            return Err(format!("version {} is retired", event.version));
        }
        if let Some(made) = service.releases.iter_mut().find(|held| named(held) == event.release) {
            // Other parts, or another version, have come to the same bytes: it is the newest that counts.
            *made = ReleaseRecord { made: Some(event.clone()), stamp };
            return Ok(());
        }
        service.releases.push(ReleaseRecord { made: Some(event.clone()), stamp });
        forget_releases(service);
        Ok(())
    }

    pub(super) fn part_edited(&mut self, name: &str, event: &PartEdited) -> Result<(), Misfit> {
        if !event.body.is_empty() {
            check_hash("the hash of the body", &event.body)?;
        }
        let next = self.part(event.owner(), name).map_or(0, |part| part.revisions.len() as u64) + 1;
        if event.revision != next {
            return Err(format!("the next revision is {next}, and not {}", event.revision));
        }
        let stamp = Some(self.stamp.clone());
        let etag = self.entry.index;
        let part = match (event.owner(), name.is_empty()) {
            (Owner::Unspecified, _) => return Err("it has no owner".into()),
            (Owner::Platform, true) => &mut self.mesh().platform,
            (Owner::Security, true) => &mut self.mesh().security,
            (Owner::Platform, false) => &mut self.service(name)?.platform,
            (Owner::Security, false) => &mut self.service(name)?.security,
        };
        part.etag = etag;
        part.revisions.push(RevisionRecord { body: event.body.clone(), stamp });
        Ok(())
    }

    /// A part as the events so far have left it; `name` is empty for all services.
    fn part(&self, owner: Owner, name: &str) -> Option<&PartRecord> {
        let mesh = self.mesh.as_ref().unwrap_or(&self.state.mesh);
        match (owner, name.is_empty()) {
            (Owner::Unspecified, _) => None,
            (Owner::Platform, true) => Some(&mesh.platform),
            (Owner::Security, true) => Some(&mesh.security),
            (Owner::Platform, false) => self.seen(name).map(|service| &service.platform),
            (Owner::Security, false) => self.seen(name).map(|service| &service.security),
        }
    }
}

/// The name of the release with this bundle: the first 8 bytes of its hash, in hexadecimal.
pub fn release_name(bundle: &[u8]) -> String {
    bundle.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn version_of(service: &mut Service, number: u64) -> Result<&mut VersionRecord, Misfit> {
    let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
    let version = place.and_then(|place| service.versions.get_mut(place));
    version.ok_or_else(|| format!("there is no version {number}"))
}

fn named(record: &ReleaseRecord) -> &str {
    record.made.as_ref().map_or("", |made| &made.release)
}

fn forget_releases(service: &mut Service) {
    if service.releases.len() <= RELEASES {
        return;
    }
    let mut kept: BTreeSet<String> = service.published().into_iter().map(str::to_owned).collect();
    kept.extend(service.stood.iter().flat_map(releases_of).map(str::to_owned));
    let old = service.releases.len() - RELEASES;
    let mut place = 0;
    service.releases.retain(|record| {
        place += 1;
        place > old || kept.contains(named(record))
    });
}
