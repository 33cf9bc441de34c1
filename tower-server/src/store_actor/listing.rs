//! Which services there are, for people: those that Beacons are sent, and those that are only watched.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use serde::Serialize;
use tower_common::store::Store;
use tower_proto::v1;

use super::core::StoreCore;

/// One service, as discovered.
#[derive(Debug, Clone, Serialize)]
pub struct ServiceSummary {
    /// Its name.
    pub service: String,
    /// How many endpoints it has, of all sources.
    pub endpoints: usize,
    /// Whether Beacons are sent it.
    pub served: bool,
    /// The host name by which it is called, besides the one with `.mesh`. One that is not served has none.
    pub domain: Option<String>,
    /// Why it has none, though it is served.
    pub refused: Option<String>,
}

/// How many services there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceCounts {
    /// Those that Beacons are sent.
    pub served: usize,
    /// Those that are only watched.
    pub watched: usize,
}

impl StoreCore {
    /// All services by name.
    pub fn services(&self) -> Vec<ServiceSummary> {
        let refused: BTreeMap<_, _> =
            self.domains.refused().map(|(service, error)| (&**service, error.to_string())).collect();
        let served =
            endpoints_by_service(&self.store).into_iter().map(|(service, endpoints)| ServiceSummary {
                service: service.to_owned(),
                endpoints,
                served: true,
                domain: self.domains.granted(service),
                refused: refused.get(service).cloned(),
            });
        let watched = endpoints_by_service(&self.watched).into_iter().map(|(service, endpoints)| {
            let service = service.to_owned();
            ServiceSummary { service, endpoints, served: false, domain: None, refused: None }
        });
        let mut services: Vec<_> = served.chain(watched).collect();
        services.sort_by(|a, b| a.service.cmp(&b.service));
        services
    }

    /// How many services there are.
    pub fn service_counts(&self) -> ServiceCounts {
        let count = |store: &Store| {
            let known = store.of_kind(&self.scope, v1::Kind::Service);
            known.map(|resource| &resource.key().service).collect::<BTreeSet<_>>().len()
        };
        ServiceCounts { served: count(&self.store), watched: count(&self.watched) }
    }

    /// The endpoints of a service, each with the id of its source.
    pub fn endpoints(&self, service: &str) -> Vec<(String, v1::Endpoint)> {
        let of = |store: &Store| -> Vec<_> {
            let resources = store.of_service(&self.scope, v1::Kind::Endpoint, service);
            let decoded = resources.filter_map(|resource| {
                let endpoint = v1::Endpoint::decode(resource.body().clone()).ok()?;
                Some((resource.origin().source.to_string(), endpoint))
            });
            decoded.collect()
        };
        [of(&self.store), of(&self.watched)].concat()
    }
}

fn endpoints_by_service(store: &Store) -> BTreeMap<&str, usize> {
    let mut endpoints: BTreeMap<&str, usize> = BTreeMap::new();
    for resource in store.iter() {
        match v1::Kind::try_from(resource.key().kind) {
            Ok(v1::Kind::Endpoint) => *endpoints.entry(&resource.key().service).or_default() += 1,
            Ok(v1::Kind::Service) => {
                endpoints.entry(&resource.key().service).or_default();
            }
            _ => {}
        }
    }
    endpoints
}

#[cfg(test)]
mod tests {
    use tower_common::{
        clock,
        resource::{Origin, Resource, ResourceKey},
        served::Served,
        store::Transaction,
    };

    use super::*;
    use crate::fanout::start::StartFrom;

    fn service(name: &str, source: &str, since: u64) -> Resource {
        let key = ResourceKey::new("", v1::Kind::Service, name, source);
        let body = v1::Service { since }.encode_to_vec();
        Resource::new(key, Origin { source: source.into(), index: since }, body.into())
    }

    fn endpoint(service: &str, source: &str, name: &str) -> Resource {
        let key = ResourceKey::new("", v1::Kind::Endpoint, service, name);
        Resource::new(key, Origin { source: source.into(), index: 1 }, bytes::Bytes::new())
    }

    fn apply(core: &mut StoreCore, upserts: Vec<Resource>) -> bool {
        let transaction = Transaction { upserts, ..Default::default() };
        core.apply(transaction, clock::monotonic()).is_some()
    }

    fn only(services: &[&str]) -> Served {
        Served::Only(services.iter().map(|service| (*service).to_owned()).collect())
    }

    #[test]
    fn services_are_listed_with_their_host_names() {
        let mut core = StoreCore::new("");
        apply(&mut core, vec![service("web", "zk", 0), endpoint("web", "zk", "a")]);
        apply(&mut core, vec![service("WEB", "zk", 9)]);
        let services = core.services();
        assert_eq!((services[0].service.as_str(), services[0].domain.as_deref()), ("WEB", None));
        assert!(services[0].refused.as_ref().unwrap().contains("belongs to the service \"web\""));
        assert_eq!((services[1].endpoints, services[1].domain.as_deref()), (1, Some("web")));
        assert_eq!(core.endpoints("web").len(), 1);
    }

    #[test]
    fn what_is_not_served_is_listed_and_nothing_else() {
        let mut core = StoreCore::serving("", only(&["web"]));
        assert!(apply(&mut core, vec![service("web", "zk", 1), endpoint("web", "zk", "a")]));
        let before = (core.revision(), core.store.digest(), core.delivery_from(&StartFrom::Nothing));
        let ads = endpoint("ads", "zk", "a");
        assert!(!apply(&mut core, vec![service("ads", "zk", 1), service("ads", "files", 1), ads.clone()]));
        // A clash there is one, too.
        apply(&mut core, vec![endpoint("ads", "files", "a")]);
        assert_eq!(core.summary().clashes, 1);
        assert_eq!(core.service_counts(), ServiceCounts { served: 1, watched: 1 });
        assert_eq!(core.endpoints("ads").len(), 1);
        let shown: Vec<_> = core
            .services()
            .into_iter()
            .map(|summary| (summary.service, summary.endpoints, summary.served))
            .collect();
        assert_eq!(shown, [("ads".to_owned(), 1, false), ("web".to_owned(), 1, true)]);

        let removals = vec![(ads.key().clone(), Origin { source: "zk".into(), index: 2 })];
        assert!(core.apply(Transaction { removals, ..Default::default() }, clock::monotonic()).is_none());
        assert!(core.endpoints("ads").is_empty());
        assert_eq!(before, (core.revision(), core.store.digest(), core.delivery_from(&StartFrom::Nothing)));
    }

    #[test]
    fn with_nothing_served_there_is_nothing_to_send() {
        let mut core = StoreCore::serving("", only(&[]));
        assert!(!apply(&mut core, vec![service("web", "zk", 1)]));
        assert_eq!((core.summary().resources, core.service_counts().watched), (0, 1));
    }
}
