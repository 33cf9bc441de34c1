//! Hosts, and how far they are.

use std::time::Duration;

use tower_common::api::{
    activation::Progress,
    fleet::{self as told, ClientType, HeldState, Host, Lack, TypeState},
};
use tower_proto::v1;

use super::activations::rejection;
use crate::{
    fanout::arrivals::Outcome,
    fleet::{
        self,
        standing::{Counts, HostStanding, HostState},
        tally::{Condition, Tally},
    },
};

/// A host.
pub fn host(host: &fleet::Host) -> Host {
    let connected = host.stream.is_some();
    let Tally { services, accepted, .. } = host.tally;
    let (services, accepted) = if connected { (services, accepted) } else { (0, 0) };
    Host {
        name: host.facts.id.clone(),
        connected,
        zone: host.facts.zone.clone(),
        labels: host.facts.labels.clone(),
        workloads: workloads(host).collect(),
        build: host.build.clone(),
        seen_unix_ms: super::time(host.seen_unix_ms),
        clients: if connected { host.clients.len() as u64 } else { 0 },
        state: condition(host.condition()),
        trouble: host.trouble(),
        accepted: u64::from(accepted),
        lacking: u64::from(services - accepted),
        types: None,
    }
}

/// What runs on a host: `service`, or `service/cluster`.
pub fn workloads(host: &fleet::Host) -> impl Iterator<Item = String> {
    host.facts.workloads.iter().map(|workload| match workload.cluster.as_str() {
        "" => workload.service.clone(),
        cluster => format!("{}/{cluster}", workload.service),
    })
}

/// How a host is as a whole.
pub fn condition(condition: Condition) -> told::HostState {
    match condition {
        Condition::OnTarget => told::HostState::OnTarget,
        Condition::Lagging => told::HostState::Lagging,
        Condition::Rejected => told::HostState::Rejected,
        Condition::NoEnvoy => told::HostState::NoEnvoy,
        Condition::Silent => told::HostState::Silent,
    }
}

/// What became of a heartbeat.
pub fn probe(outcome: &Outcome) -> told::ProbeOutcome {
    let millis = |duration: Duration| (duration.as_secs_f64() * 1e5).round() / 100.0;
    told::ProbeOutcome {
        sent_unix_ms: outcome.unix_ms,
        beacons: outcome.beacons,
        p50_ms: millis(outcome.half),
        p99_ms: millis(outcome.most),
        max_ms: millis(outcome.longest),
    }
}

/// The same with what its xDS clients made of each type, of which nothing is known while it is silent.
pub fn host_with_types(of: &fleet::Host) -> Host {
    let clients = if of.stream.is_some() { &*of.clients } else { &[] };
    Host { types: Some(clients.iter().flat_map(types).collect()), ..host(of) }
}

/// How far a host is.
pub fn state(state: HostState) -> HeldState {
    match state {
        HostState::Accepted => HeldState::Accepted,
        HostState::Pending => HeldState::Pending,
        HostState::NotReported => HeldState::NotReported,
        HostState::NoEnvoy => HeldState::NoEnvoy,
        HostState::Rejected => HeldState::Rejected,
        HostState::HostFault => HeldState::HostFault,
        HostState::Unusable => HeldState::Unusable,
        HostState::Silent => HeldState::Silent,
        HostState::Lost => HeldState::Lost,
    }
}

/// A host that lacks what it should have.
pub fn lack(standing: &HostStanding) -> Lack {
    Lack {
        host: standing.host.clone(),
        why: state(standing.state),
        detail: super::some(&standing.why),
        since_unix_ms: standing.since_unix_ms,
        rejection: standing.rejection.as_ref().map(rejection),
    }
}

/// How many hosts are how far.
pub fn progress(counts: &Counts) -> Progress {
    Progress {
        total: u64::from(counts.total),
        accepted: u64::from(counts.accepted),
        pending: u64::from(counts.pending),
        rejected: u64::from(counts.rejected),
        host_faults: u64::from(counts.host_faults),
        no_envoy: u64::from(counts.no_envoy),
        silent: u64::from(counts.silent) + u64::from(counts.lost),
    }
}

/// The types of an xDS client.
fn types(client: &v1::ClientReport) -> impl Iterator<Item = ClientType> {
    client.types.iter().map(|of| ClientType {
        client: client.node_id.clone(),
        type_url: of.type_url.clone(),
        state: match of {
            _ if !of.error.is_empty() => TypeState::Rejected,
            _ if of.sent_version.is_empty() && of.accepted_version.is_empty() => TypeState::NotSent,
            _ if of.accepted_version.is_empty() => TypeState::NeverAccepted,
            _ if of.sent_version.is_empty() || of.sent_version == of.accepted_version => TypeState::Synced,
            _ => TypeState::Pending,
        },
        sent: of.sent_version.clone(),
        accepted: of.accepted_version.clone(),
        error: of.error.clone(),
        quarantined: of.quarantined.iter().map(|it| format!("{}: {}", it.name, it.error)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_what_the_client_last_said_about_it() {
        let state = |sent: &str, accepted: &str, error: &str| {
            let of = v1::TypeReport {
                sent_version: sent.into(),
                accepted_version: accepted.into(),
                error: error.into(),
                ..Default::default()
            };
            let client = v1::ClientReport { node_id: "envoy".into(), types: vec![of] };
            types(&client).next().unwrap().state
        };
        assert_eq!(state("", "", ""), TypeState::NotSent);
        assert_eq!(state("2", "", ""), TypeState::NeverAccepted);
        assert_eq!(state("2", "2", ""), TypeState::Synced);
        assert_eq!(state("2", "1", ""), TypeState::Pending);
        assert_eq!(state("2", "1", "no"), TypeState::Rejected);
    }
}
