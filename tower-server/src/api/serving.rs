//! Which services there are, and which of them Beacons are sent.

use std::collections::BTreeSet;

use tower_common::{api::service::Serve, served::Served};

use crate::store_actor::ServiceSummary;

/// The services, and what `--serve` makes of them.
#[derive(Debug)]
pub(crate) struct Serving {
    /// What `--serve` says.
    pub(super) serve: Serve,
    /// Those that it names, and that no source knows. They may register later.
    pub(super) unknown: BTreeSet<String>,
    /// Those that sources know.
    pub(super) services: Vec<ServiceSummary>,
}

impl Serving {
    pub(super) fn of(served: &Served, services: Vec<ServiceSummary>) -> Self {
        let known: BTreeSet<&str> = services.iter().map(|summary| summary.service.as_str()).collect();
        let (serve, unknown) = match served {
            Served::All => (Serve::All, BTreeSet::new()),
            Served::Only(named) if named.is_empty() => (Serve::None, BTreeSet::new()),
            Served::Only(named) => {
                let unknown = named.iter().filter(|name| !known.contains(name.as_str()));
                (Serve::List, unknown.cloned().collect())
            }
        };
        Self { serve, unknown, services }
    }

    /// How many services Beacons are sent.
    pub(super) fn served(&self) -> usize {
        self.services.iter().filter(|summary| summary.served).count()
    }

    /// The services that are only watched.
    pub(super) fn watched(&self) -> impl Iterator<Item = &ServiceSummary> {
        self.services.iter().filter(|summary| !summary.served)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(name: &str, served: bool) -> ServiceSummary {
        let service = name.to_owned();
        ServiceSummary { service, endpoints: 2, served, domain: None, refused: None }
    }

    #[test]
    fn what_is_named_and_not_there_is_told_apart() {
        let served = Served::Only(["web", "wep"].map(str::to_owned).into());
        let serving = Serving::of(&served, vec![summary("ads", false), summary("web", true)]);
        assert_eq!(serving.unknown.iter().collect::<Vec<_>>(), ["wep"]);
        assert_eq!((serving.served(), serving.watched().count()), (1, 1));
        assert_eq!(serving.serve, Serve::List);
        let rule = |served| Serving::of(&served, Vec::new()).serve;
        assert_eq!(rule(Served::All), Serve::All);
        assert_eq!(rule(Served::Only(BTreeSet::new())), Serve::None);
    }
}
