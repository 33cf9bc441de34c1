//! Which services a Tower sends to its Beacons. Tower may watch more than it sends.

use std::collections::BTreeSet;

use tower_proto::v1;

use crate::resource::ResourceKey;

/// The services that a Tower sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Served {
    /// All.
    #[default]
    All,
    /// These. None, if there are none.
    Only(BTreeSet<String>),
}

impl Served {
    /// Whether the service is sent.
    pub fn serves(&self, service: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(services) => services.contains(service),
        }
    }

    /// Whether the resource of this key is sent. One that belongs to no service always is.
    pub fn covers(&self, key: &ResourceKey) -> bool {
        key.service.is_empty() || self.serves(&key.service)
    }

    /// As it is in a welcome.
    pub fn to_proto(&self) -> Option<v1::Served> {
        match self {
            Self::All => None,
            Self::Only(services) => Some(v1::Served { services: services.iter().cloned().collect() }),
        }
    }

    /// As it is in a welcome. A Tower that says nothing of it sends everything.
    pub fn from_proto(proto: Option<v1::Served>) -> Self {
        proto.map_or(Self::All, |served| Self::Only(served.services.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(services: &[&str]) -> Served {
        Served::Only(services.iter().map(|service| (*service).to_owned()).collect())
    }

    #[test]
    fn what_belongs_to_no_service_is_always_sent() {
        let key = |kind, service: &str| ResourceKey::new("", kind, service, "x");
        for (served, web, api) in
            [(Served::All, true, true), (only(&["web"]), true, false), (only(&[]), false, false)]
        {
            assert_eq!(served.covers(&key(v1::Kind::Endpoint, "web")), web, "{served:?}");
            assert_eq!(served.covers(&key(v1::Kind::Service, "api")), api, "{served:?}");
            assert!(served.covers(&key(v1::Kind::AppConfig, "")), "{served:?}");
        }
    }

    #[test]
    fn the_wire_tells_everything_from_nothing() {
        for served in [Served::All, only(&[]), only(&["api", "web"])] {
            assert_eq!(Served::from_proto(served.to_proto()), served);
        }
    }
}
