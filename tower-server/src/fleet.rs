//! The hosts, as far as this Tower knows them: what their Beacons say that they are, hold, and what their
//! Envoys made of it.
//!
//! - [`Fleet`]: takes in what Beacons say
//! - [`tally`]: how a host is as a whole
//! - [`standing`]: who has what he should have, who has not, and why
//! - [`driver`]: sends activations from step to step by that

pub mod driver;
pub mod standing;
pub mod tally;
#[cfg(test)]
mod testing;

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;
use tokio::sync::watch;
use tower_common::{
    audience::{self, NodeFacts, contains},
    clock,
};
use tower_proto::v1;

use self::tally::Tally;
use crate::registry::prepare::Hosts;

/// A host that has been silent for longer is forgotten.
const FORGOTTEN_MS: u64 = 72 * 60 * 60 * 1000;

/// More hosts than these are not remembered when they are silent.
const MAX_SILENT: usize = 100_000;

/// The hosts of this Tower's Beacons.
#[derive(Debug)]
pub struct Fleet {
    hosts: RwLock<BTreeMap<String, Arc<Host>>>,
    /// Changes with whatever a Beacon says.
    changes: watch::Sender<u64>,
}

/// One host.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Its name and all else that decides in which audiences it is.
    pub facts: NodeFacts,
    /// The version of its Beacon.
    pub build: String,
    /// Which stream it is on, if its Beacon is connected.
    pub stream: Option<u64>,
    /// When its Beacon was last heard of, in milliseconds since 1970.
    pub seen_unix_ms: u64,
    /// Since when it is connected, or not, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// The revision of this Tower's store that it has applied; 0 until it says so.
    pub revision: u64,
    /// Its xDS clients, as it last reported them.
    pub clients: Vec<v1::ClientReport>,
    /// What it last reported to hold, by service.
    pub releases: BTreeMap<String, HeldSince>,
    /// How much of that is how far.
    pub tally: Tally,
}

/// What a host holds of a service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeldSince {
    /// What it reported.
    pub held: v1::HeldRelease,
    /// Since when it reports so, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// On which stream it did.
    pub stream: u64,
}

impl Default for Fleet {
    fn default() -> Self {
        Self { hosts: RwLock::default(), changes: watch::Sender::new(0) }
    }
}

impl Fleet {
    /// A Beacon has connected, on this stream.
    pub fn connect(&self, node: &v1::Node, stream: u64) {
        let now = clock::unix_millis();
        self.change(&node.id, now, |host| {
            host.facts = NodeFacts::from(node);
            host.build.clone_from(&node.build);
            host.stream = Some(stream);
            host.since_unix_ms = now;
            host.revision = 0;
            host.tally = Tally::default();
        });
    }

    /// A Beacon has reported on this stream.
    pub fn report(&self, node: &str, stream: u64, report: &v1::Report) {
        let now = clock::unix_millis();
        self.change(node, now, |host| {
            if host.stream != Some(stream) {
                return;
            }
            host.revision = report.revision;
            host.clients.clone_from(&report.clients);
            for held in &report.releases {
                if held.state() == v1::held_release::State::Unspecified {
                    host.releases.remove(&held.service);
                    continue;
                }
                let before = host.releases.get(&held.service);
                let same = before.filter(|it| it.held.release == held.release && it.held.state == held.state);
                let since_unix_ms = same.map_or(now, |before| before.since_unix_ms);
                let held = HeldSince { held: held.clone(), since_unix_ms, stream };
                host.releases.insert(held.held.service.clone(), held);
            }
            if !report.releases.is_empty() {
                host.tally = Tally::of(host);
            }
        });
    }

    /// A stream has ended.
    pub fn disconnect(&self, node: &str, stream: u64) {
        let now = clock::unix_millis();
        self.change(node, now, |host| {
            if host.stream == Some(stream) {
                host.stream = None;
                host.since_unix_ms = now;
            }
        });
        self.forget(now);
    }

    /// All hosts by name, also those that are silent.
    pub fn hosts(&self) -> Vec<Arc<Host>> {
        self.hosts.read().values().cloned().collect()
    }

    /// One host.
    pub fn host(&self, name: &str) -> Option<Arc<Host>> {
        self.hosts.read().get(name).cloned()
    }

    /// Something that a Beacon says has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change(&self, node: &str, now: u64, change: impl FnOnce(&mut Host)) {
        {
            let mut hosts = self.hosts.write();
            let host = Arc::make_mut(hosts.entry(node.to_owned()).or_default());
            host.seen_unix_ms = now;
            change(host);
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn forget(&self, now: u64) {
        let mut hosts = self.hosts.write();
        let silent = hosts.values().filter(|host| host.stream.is_none()).count();
        if silent <= MAX_SILENT && silent * 8 < hosts.len() {
            return;
        }
        let old = now.saturating_sub(FORGOTTEN_MS);
        let mut room = MAX_SILENT;
        hosts.retain(|_, host| {
            let stays = host.stream.is_some() || (host.seen_unix_ms >= old && room > 0);
            if stays && host.stream.is_none() {
                room -= 1;
            }
            stays
        });
    }
}

impl Host {
    /// What it holds of a service, by what it said on the stream that it is on.
    pub fn held(&self, service: &str) -> Option<&HeldSince> {
        self.releases.get(service).filter(|held| Some(held.stream) == self.stream)
    }
}

impl Hosts for Fleet {
    fn first_of(&self, wanted: &v1::Audience, salt: &str) -> Option<String> {
        let hosts = self.hosts.read();
        let with_envoy = hosts.values().filter(|host| host.stream.is_some() && !host.clients.is_empty());
        let members = with_envoy.filter(|host| contains(wanted, &host.facts) == Ok(true));
        let first = members.min_by_key(|host| audience::number(salt, &host.facts.id));
        first.map(|host| host.facts.id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        testing::{held, node, report},
        *,
    };

    #[test]
    fn what_a_beacon_said_counts_on_the_stream_on_which_it_said_so() {
        let fleet = Fleet::default();
        let mut changes = fleet.changes();
        fleet.connect(&node("h", "a"), 1);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        fleet.report("h", 1, &report(5, &[held("web", "r1", v1::held_release::State::Accepted)]));
        assert!(changes.has_changed().unwrap());
        let before = fleet.host("h").unwrap();
        assert_eq!((before.revision, before.held("web").unwrap().held.release.as_str()), (5, "r1"));

        fleet.connect(&node("h", "b"), 2);
        fleet.disconnect("h", 1);
        fleet.report("h", 1, &report(9, &[]));
        let host = fleet.host("h").unwrap();
        assert_eq!((host.stream, host.revision, &*host.facts.zone), (Some(2), 0, "b"));
        assert!(host.held("web").is_none(), "not said on this stream");
        fleet.report("h", 2, &report(6, &[held("web", "r1", v1::held_release::State::Accepted)]));
        let after = fleet.host("h").unwrap();
        assert_eq!(after.held("web").unwrap().since_unix_ms, before.held("web").unwrap().since_unix_ms);
        fleet.disconnect("h", 2);
        let silent = fleet.host("h").unwrap();
        assert!(silent.stream.is_none() && silent.held("web").is_none());
    }

    #[test]
    fn the_first_host_is_one_that_can_accept_something_and_another_with_another_salt() {
        let fleet = Fleet::default();
        let zone: audience::AudienceSpec = "zone=a".parse().unwrap();
        let zone = zone.resolve("", |_| None).unwrap();
        fleet.connect(&node("other", "b"), 1);
        fleet.report("other", 1, &report(1, &[]));
        fleet.connect(&node("no-envoy", "a"), 2);
        assert_eq!(fleet.first_of(&zone, "web-1"), None);
        for number in 0..8 {
            let name = format!("h{number}");
            fleet.connect(&node(&name, "a"), 10 + number);
            fleet.report(&name, 10 + number, &report(1, &[]));
        }
        let first: std::collections::BTreeSet<_> =
            (0..20).map(|salt| fleet.first_of(&zone, &salt.to_string()).unwrap()).collect();
        assert!(first.len() > 2 && first.iter().all(|name| name.starts_with('h')), "{first:?}");
    }
}
