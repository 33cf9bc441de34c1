//! Which service answers to which host name.
//!
//! Host names do not distinguish case, and Envoy refuses a whole route configuration in which a domain
//! occurs twice. So a domain has one owner, and services that cannot have theirs are named, not dropped
//! silently.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use prost::Message;
use tower_proto::v1;

use crate::{resource::ResourceKey, store::Store};

/// What is appended to a service's name for a host name that no public one can clash with.
pub const SUFFIX: &str = ".mesh";

/// Why a service has no host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// Another service was there first.
    #[error("the host name {domain:?} belongs to the service {owner:?}, which had it first")]
    Taken {
        /// The host name.
        domain: String,
        /// Who has it.
        owner: String,
    },
    /// It would clash with the second name of another service.
    #[error("a service's name must not end in {SUFFIX:?}, which is added to each name")]
    Suffix,
    /// Host names have fewer characters.
    #[error("{0:?} cannot be part of a host name; use letters, digits, '-', '_' and '.'")]
    Character(char),
    /// Host names are not that short or long.
    #[error("a host name has 1 to 248 characters")]
    Length,
}

/// The host name of a service: its name in lower case.
///
/// # Errors
/// If the name cannot be a host name.
pub fn domain_of(service: &str) -> Result<String, DomainError> {
    // 253 characters (RFC 1035, section 2.3.4), less the suffix.
    if service.is_empty() || service.len() > 253 - SUFFIX.len() {
        return Err(DomainError::Length);
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(character) = service.chars().find(|c| !allowed(*c)) {
        return Err(DomainError::Character(character));
    }
    if service.split('.').any(str::is_empty) {
        return Err(DomainError::Character('.'));
    }
    let domain = service.to_ascii_lowercase();
    if domain.ends_with(SUFFIX) { Err(DomainError::Suffix) } else { Ok(domain) }
}

/// A service's claim to its domain. The smallest claim wins: what was discovered, sources in the order of their
/// ids, within a source whoever came first, and then whoever writes its name in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// It has an assignment, and nothing of it was discovered.
    pub undiscovered: bool,
    /// The id of the source that knows the service.
    pub source: Arc<str>,
    /// Since when, as an index of that source.
    pub since: u64,
    /// Whether its name is not the domain itself.
    pub capitals: bool,
    /// The service.
    pub service: Arc<str>,
}

/// The claim of a service, if it is there: a source knows it, or has an endpoint of it, or it has an assignment.
pub fn claim_of(store: &Store, scope: &str, service: &Arc<str>) -> Option<Claim> {
    let claim = |source: &Arc<str>, since| Claim {
        undiscovered: false,
        source: source.clone(),
        since,
        capitals: service.chars().any(char::is_uppercase),
        service: service.clone(),
    };
    let known = store.of_service(scope, v1::Kind::Service, service).map(|resource| {
        // A body that does not decode is from a build that knew more; that there is one is enough.
        let body = v1::Service::decode(resource.body().clone()).unwrap_or_default();
        claim(&resource.origin().source, body.since)
    });
    let endpoint = store.of_service(scope, v1::Kind::Endpoint, service).take(1);
    let discovered = known.chain(endpoint.map(|resource| claim(&resource.origin().source, u64::MAX))).min();
    discovered.or_else(|| {
        let assigned = store.get(&ResourceKey::new(scope, v1::Kind::Assignment, service, ""))?;
        // One that this build cannot read is there as well.
        let ended =
            v1::Assignment::decode(assigned.body().clone()).is_ok_and(|assignment| is_ended(&assignment));
        (!ended).then(|| Claim { undiscovered: true, ..claim(&assigned.origin().source, u64::MAX) })
    })
}

/// Whether a service has no assignment any more: one that gives nothing to anybody ends it.
pub fn is_ended(assignment: &v1::Assignment) -> bool {
    assignment.rules.is_empty() && assignment.default_release.is_empty()
}

/// All claims to all domains.
#[derive(Debug, Default)]
pub struct Domains {
    by_domain: BTreeMap<String, BTreeSet<Claim>>,
    by_service: BTreeMap<Arc<str>, Claim>,
    refused: BTreeMap<Arc<str>, DomainError>,
}

impl Domains {
    /// Sets, replaces or (with `None`) ends a service's claim. Returns the services whose right to their
    /// domain may have changed.
    pub fn claim(&mut self, service: &Arc<str>, claim: Option<Claim>) -> Vec<Arc<str>> {
        if self.by_service.get(service) == claim.as_ref() {
            return Vec::new();
        }
        let domain = match domain_of(service) {
            Ok(domain) => domain,
            Err(error) => {
                match claim {
                    Some(claim) => {
                        self.by_service.insert(service.clone(), claim);
                        self.refused.insert(service.clone(), error);
                    }
                    None => {
                        self.by_service.remove(service);
                        self.refused.remove(service);
                    }
                }
                return vec![service.clone()];
            }
        };
        let claims = self.by_domain.entry(domain.clone()).or_default();
        if let Some(old) = self.by_service.remove(service) {
            claims.remove(&old);
        }
        self.refused.remove(service);
        let mut affected = vec![service.clone()];
        if let Some(claim) = claim {
            claims.insert(claim.clone());
            self.by_service.insert(service.clone(), claim);
        }
        let Some(owner) = claims.first().map(|claim| claim.service.clone()) else {
            self.by_domain.remove(&domain);
            return affected;
        };
        for claim in claims.iter() {
            if claim.service == owner {
                self.refused.remove(&claim.service);
            } else {
                let error = DomainError::Taken { domain: domain.clone(), owner: owner.to_string() };
                self.refused.insert(claim.service.clone(), error);
            }
            if claim.service != *service {
                affected.push(claim.service.clone());
            }
        }
        affected
    }

    /// The domain of a service, if it has the right to it.
    pub fn granted(&self, service: &str) -> Option<String> {
        if !self.by_service.contains_key(service) || self.refused.contains_key(service) {
            return None;
        }
        domain_of(service).ok()
    }

    /// The services without a host name, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&Arc<str>, &DomainError)> {
        self.refused.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(service: &str, since: u64) -> Claim {
        Claim {
            undiscovered: false,
            source: "zk".into(),
            since,
            capitals: service != service.to_lowercase(),
            service: service.into(),
        }
    }

    #[test]
    fn names_are_lowered_and_checked() {
        assert_eq!(domain_of("Ads").unwrap(), "ads");
        assert_eq!(domain_of("ads.mesh"), Err(DomainError::Suffix));
        assert_eq!(domain_of("ads.MESH"), Err(DomainError::Suffix));
        assert_eq!(domain_of("*"), Err(DomainError::Character('*')));
        assert_eq!(domain_of("a/b"), Err(DomainError::Character('/')));
        assert_eq!(domain_of(""), Err(DomainError::Length));
        assert_eq!(domain_of(&"a".repeat(249)), Err(DomainError::Length));
    }

    #[test]
    fn the_first_keeps_its_domain_and_the_next_inherits_it() {
        let mut domains = Domains::default();
        let (first, second): (Arc<str>, Arc<str>) = ("ads".into(), "Ads".into());
        domains.claim(&second, Some(claim("Ads", 9)));
        assert_eq!(domains.granted("Ads").as_deref(), Some("ads"));
        let affected = domains.claim(&first, Some(claim("ads", 3)));
        assert_eq!(affected, [first.clone(), second.clone()]);
        assert_eq!(domains.granted("ads").as_deref(), Some("ads"));
        assert_eq!(domains.granted("Ads"), None);
        let (_, error) = domains.refused().next().unwrap();
        assert!(error.to_string().contains("belongs to the service \"ads\""));

        domains.claim(&first, None);
        assert_eq!(domains.granted("Ads").as_deref(), Some("ads"));
        assert_eq!(domains.refused().count(), 0);
        domains.claim(&second, None);
        assert!(domains.by_domain.is_empty() && domains.by_service.is_empty());
    }

    #[test]
    fn an_impossible_name_is_refused_until_it_is_gone() {
        let mut domains = Domains::default();
        let service: Arc<str> = "a.mesh".into();
        domains.claim(&service, Some(claim("a.mesh", 1)));
        assert_eq!(domains.granted("a.mesh"), None);
        assert_eq!(domains.refused().count(), 1);
        domains.claim(&service, None);
        assert_eq!(domains.refused().count(), 0);
    }
}
