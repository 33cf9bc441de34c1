//! Who is connected, and what they last reported.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::Serialize;
use tower_common::clock;
use tower_proto::v1;

use super::{probes::Probes, refusals::Refusals};
use crate::fleet::Fleet;

/// The connected Beacons, shared by all streams.
#[derive(Debug, Default)]
pub struct Beacons {
    refusals: Refusals,
    fleet: Arc<Fleet>,
    probes: Arc<Probes>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    connected: BTreeMap<u64, BeaconState>,
}

/// One connected Beacon.
#[derive(Debug, Clone, Serialize)]
pub struct BeaconState {
    /// Its node id.
    pub node_id: String,
    /// Its zone, if it says so.
    pub zone: String,
    /// Its software version.
    pub build: String,
    /// The other end of its connection.
    pub peer: Option<SocketAddr>,
    /// Since when it is connected, in milliseconds since the Unix epoch.
    pub since_unix_ms: u64,
    /// When it last reported, in milliseconds since the Unix epoch.
    pub reported_unix_ms: Option<u64>,
    /// The revision of this Tower that it has applied.
    pub revision: u64,
    /// Its xDS clients that rejected something, with type and reason.
    pub rejections: Vec<Rejection>,
    /// How many xDS clients it has.
    pub clients: usize,
}

/// An xDS client's rejection, not yet followed by an acceptance.
#[derive(Debug, Clone, Serialize)]
pub struct Rejection {
    /// The client's node id.
    pub client: String,
    /// The type.
    pub type_url: String,
    /// The version that it rejected.
    pub version: String,
    /// What it said.
    pub error: String,
}

/// A connected Beacon's entry; dropping it removes the entry.
#[derive(Debug)]
pub struct Connected {
    beacons: Arc<Beacons>,
    id: u64,
    node_id: String,
}

impl Beacons {
    /// Enters a Beacon.
    pub fn connect(self: &Arc<Self>, node: v1::Node, peer: Option<SocketAddr>) -> Connected {
        let mut inner = self.inner.lock();
        inner.next += 1;
        let id = inner.next;
        self.fleet.connect(&node, id);
        let node_id = node.id.clone();
        let state = BeaconState {
            node_id: node.id,
            zone: node.zone,
            build: node.build,
            peer,
            since_unix_ms: clock::unix_millis(),
            reported_unix_ms: None,
            revision: 0,
            rejections: Vec::new(),
            clients: 0,
        };
        inner.connected.insert(id, state);
        Connected { beacons: self.clone(), id, node_id }
    }

    /// The hosts that they are on, also of those that were connected before.
    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// How long what is sent takes until they have applied it.
    pub fn probes(&self) -> &Arc<Probes> {
        &self.probes
    }

    /// Those that could not connect.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// All connected Beacons, the longest connected first.
    pub fn list(&self) -> Vec<BeaconState> {
        self.inner.lock().connected.values().cloned().collect()
    }

    /// How many are connected.
    pub fn len(&self) -> usize {
        self.inner.lock().connected.len()
    }

    /// Whether none is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Connected {
    /// Replaces what the Beacon reported last.
    pub fn report(&self, report: v1::Report) {
        self.beacons.fleet.report(&self.node_id, self.id, &report);
        if report.probe > 0 {
            let ago = Duration::from_micros(report.probe_us_ago);
            self.beacons.probes.applied(report.probe, ago, clock::monotonic());
        }
        let mut inner = self.beacons.inner.lock();
        let Some(state) = inner.connected.get_mut(&self.id) else { return };
        state.reported_unix_ms = Some(clock::unix_millis());
        state.revision = report.revision;
        state.clients = report.clients.len();
        state.rejections = report.clients.into_iter().flat_map(rejections).collect();
    }
}

fn rejections(client: v1::ClientReport) -> impl Iterator<Item = Rejection> {
    let v1::ClientReport { node_id, types } = client;
    types.into_iter().filter(|report| !report.error.is_empty()).map(move |report| Rejection {
        client: node_id.clone(),
        type_url: report.type_url,
        version: report.rejected_version,
        error: report.error,
    })
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.beacons.inner.lock().connected.remove(&self.id);
        self.beacons.fleet.disconnect(&self.node_id, self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beacon_is_listed_while_connected_with_its_last_report() {
        let beacons = Arc::new(Beacons::default());
        let node = v1::Node { id: "host-1".into(), ..Default::default() };
        let connected = beacons.connect(node, None);
        let rejected = v1::TypeReport {
            type_url: "type.googleapis.com/x".into(),
            rejected_version: "2".into(),
            error: "no".into(),
            ..Default::default()
        };
        connected.report(v1::Report {
            revision: 7,
            clients: vec![v1::ClientReport {
                node_id: "envoy".into(),
                types: vec![v1::TypeReport::default(), rejected],
            }],
            ..Default::default()
        });
        let listed = beacons.list();
        assert_eq!((listed.len(), listed[0].revision, listed[0].clients), (1, 7, 1));
        assert_eq!(listed[0].rejections[0].error, "no");
        drop(connected);
        assert!(beacons.is_empty());
    }
}
