//! Documents as they take effect: with the parts of platform and security, those that are in force now or those
//! of a release.

use tower_common::{
    api::service::{self, Origin},
    document::{self, Document, Effective, Finding, Owner, Part, Parts},
};
use tower_proto::v1::{self, part_edited};

use super::{documents, error::Refused};
use crate::registry::{Registry, Service, State};

/// The parts of platform and security: for all services, and for one.
#[derive(Debug, Default)]
pub struct OtherParts([Option<Document>; 4]);

/// The order of the parts, and whether each is for one service.
const ORDER: [(part_edited::Owner, bool); 4] = [
    (part_edited::Owner::Platform, false),
    (part_edited::Owner::Platform, true),
    (part_edited::Owner::Security, false),
    (part_edited::Owner::Security, true),
];

impl OtherParts {
    /// Those that are in force.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn in_force(registry: &Registry, state: &State, service: &str) -> Result<Self, Refused> {
        let newest = |(owner, own): (part_edited::Owner, bool)| {
            Some(state.part(owner, own.then_some(service))?.revisions.last()?.body.clone())
        };
        Self::read(registry, service, ORDER.map(newest)).await
    }

    /// Those that went into a release.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn of(
        registry: &Registry,
        state: &State,
        service: &str,
        made: &v1::ReleaseMade,
    ) -> Result<Self, Refused> {
        let revisions = [made.platform, made.platform_for_service, made.security, made.security_for_service];
        let mut bodies = [const { None }; 4];
        for ((body, (owner, own)), revision) in bodies.iter_mut().zip(ORDER).zip(revisions) {
            let part = state.part(owner, own.then_some(service));
            let place = revision.checked_sub(1).and_then(|place| usize::try_from(place).ok());
            *body = part.zip(place).and_then(|(part, place)| Some(part.revisions.get(place)?.body.clone()));
        }
        Self::read(registry, service, bodies).await
    }

    async fn read(
        registry: &Registry,
        service: &str,
        bodies: [Option<bytes::Bytes>; 4],
    ) -> Result<Self, Refused> {
        let mut parts = Self::default();
        for ((part, body), (owner, own)) in parts.0.iter_mut().zip(bodies).zip(ORDER) {
            let Some(body) = body.filter(|body| !body.is_empty()) else { continue };
            let owner = documents::owner(owner);
            let name = if own { format!("{owner}/{service}") } else { owner.to_string() };
            *part = Some(documents::read(registry, &name, &body, owner).await?);
        }
        Ok(parts)
    }

    /// A service's document with them.
    ///
    /// # Errors
    /// If they do not fit together.
    pub fn with(&self, service: &Document) -> Result<Effective, Vec<Finding>> {
        let [platform, platform_own, security, security_own] = &self.0;
        document::merge(&Parts {
            platform: platform.as_ref(),
            platform_for_service: platform_own.as_ref(),
            security: security.as_ref(),
            security_for_service: security_own.as_ref(),
            service,
        })
    }
}

/// What a release of a service was made of.
///
/// # Errors
/// If it cannot be read, or is none to this build.
pub async fn of_release(
    registry: &Registry,
    state: &State,
    name: &str,
    service: &Service,
    made: &v1::ReleaseMade,
) -> Result<Option<Effective>, Refused> {
    let Some(uploaded) = service.version(made.version).and_then(|record| record.uploaded.as_ref()) else {
        return Ok(None);
    };
    let id = format!("{name}@{}", made.version);
    let document = documents::read(registry, &id, &uploaded.body, Owner::Service).await?;
    let parts = OtherParts::of(registry, state, name, made).await?;
    Ok(parts.with(&document).ok())
}

/// In the words of the API. `version` is the id of the version that is in it.
pub fn told(effective: &Effective, name: &str, version: &str) -> service::Effective {
    let part = |part: Part| match part {
        Part::Platform => "platform".to_owned(),
        Part::PlatformForService => format!("platform/{name}"),
        Part::Security => "security".to_owned(),
        Part::SecurityForService => format!("security/{name}"),
        Part::Service => version.to_owned(),
    };
    let origin =
        |origin: &document::Origin| Origin { owner: origin.owner.to_string(), part: part(origin.part) };
    service::Effective {
        document: serde_json::to_value(&effective.document).unwrap_or_default(),
        provenance: effective.provenance.iter().map(|(field, of)| (field.clone(), origin(of))).collect(),
    }
}
