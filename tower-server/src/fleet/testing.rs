//! What Beacons say, for tests.

use tower_proto::v1::{self, held_release::State};

pub(super) fn node(id: &str, zone: &str) -> v1::Node {
    v1::Node { id: id.into(), zone: zone.into(), ..Default::default() }
}

/// A report of a Beacon with one Envoy.
pub(super) fn report(revision: u64, releases: &[v1::HeldRelease]) -> v1::Report {
    let client = v1::ClientReport { node_id: "envoy".into(), types: Vec::new() };
    v1::Report { revision, clients: vec![client], releases: releases.to_vec(), ..Default::default() }
}

pub(super) fn held(service: &str, release: &str, state: State) -> v1::HeldRelease {
    let rejected = state == State::Rejected || state == State::Host;
    v1::HeldRelease {
        service: service.into(),
        release: release.into(),
        state: state.into(),
        client: if rejected { "envoy".into() } else { String::new() },
        type_url: String::new(),
        resource: if rejected { "web".into() } else { String::new() },
        error: if rejected { "it is wrong".into() } else { String::new() },
    }
}
