//! Which services there are, and which of them Beacons are sent.

use std::collections::BTreeSet;

use serde::Serialize;
use tower_common::served::Served;

use crate::store_actor::ServiceSummary;

/// The services, and what `--serve` makes of them.
#[derive(Debug, Serialize)]
pub(super) struct Serving {
    /// What `--serve` says.
    serve: Rule,
    /// Those that it names, and that no source knows. They may register later.
    unknown: BTreeSet<String>,
    services: Vec<ServiceSummary>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    All,
    None,
    List,
}

impl Serving {
    pub(super) fn of(served: &Served, services: Vec<ServiceSummary>) -> Self {
        let known: BTreeSet<&str> = services.iter().map(|summary| summary.service.as_str()).collect();
        let (serve, unknown) = match served {
            Served::All => (Rule::All, BTreeSet::new()),
            Served::Only(named) if named.is_empty() => (Rule::None, BTreeSet::new()),
            Served::Only(named) => {
                let unknown = named.iter().filter(|name| !known.contains(name.as_str()));
                (Rule::List, unknown.cloned().collect())
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

    /// The services that `--serve` names, and that no source knows.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(String::as_str)
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
        assert_eq!(serving.unknown().collect::<Vec<_>>(), ["wep"]);
        assert_eq!((serving.served(), serving.watched().count()), (1, 1));
        let json = serde_json::to_value(&serving).unwrap();
        assert_eq!((json["serve"].as_str(), json["unknown"][0].as_str()), (Some("list"), Some("wep")));
        assert_eq!(json["services"][0]["served"], false);
        let rule = |served| serde_json::to_value(Serving::of(&served, Vec::new())).unwrap()["serve"].clone();
        assert_eq!(rule(Served::All), "all");
        assert_eq!(rule(Served::Only(BTreeSet::new())), "none");
    }
}
