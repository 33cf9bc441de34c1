//! What Tower's parts say of themselves, in the words of the API.

use tower_common::api::source::{
    Beacon, Counters, GuardCounters, Hold, Position, Quarantine, Refusal, Source, SourceProblem, SourceState,
    TypeRejection,
};

use crate::{
    fanout::{beacons, refusals},
    sources::{self, report},
};

/// A source.
pub fn source(report: report::SourceReport) -> Source {
    Source {
        id: report.id,
        url: report.url,
        optional: report.optional,
        state: match report.state {
            report::State::Loading => SourceState::Loading,
            report::State::Live => SourceState::Live,
            report::State::Stale => SourceState::Stale,
            report::State::Lost => SourceState::Lost,
        },
        reason: report.reason,
        since_unix_ms: report.since_unix_ms,
        position: report.position.map(position),
        services: report.services as u64,
        endpoints: report.endpoints as u64,
        problems: report.problems.into_iter().map(problem).collect(),
        problem_count: report.problem_count as u64,
        counters: Counters {
            events: report.counters.events,
            reloads: report.counters.reloads,
            reconnects: report.counters.reconnects,
            malformed: report.counters.malformed,
            remarks: report.counters.remarks,
        },
        holds: report.holds.into_iter().map(hold).collect(),
        guard: GuardCounters {
            held: report.guard.held,
            returned: report.guard.returned,
            replaced: report.guard.replaced,
            expired: report.guard.expired,
            released: report.guard.released,
            dropped: report.guard.dropped,
        },
        quarantine: report.quarantine.map(quarantine),
    }
}

fn problem(problem: report::Problem) -> SourceProblem {
    SourceProblem { path: problem.path.to_string(), reason: problem.reason }
}

/// How far a source has been read.
pub fn position(position: sources::Position) -> Position {
    Position { incarnation: position.incarnation, index: position.index }
}

/// A hold.
pub fn hold(report: report::HoldReport) -> Hold {
    Hold {
        id: report.id,
        source: report.source,
        service: report.service,
        since_unix_ms: report.since_unix_ms,
        ends_unix_ms: report.ends_unix_ms,
        largest: report.largest,
        left: report.left,
        endpoint_count: report.endpoint_count as u64,
        endpoints: report.endpoints,
    }
}

/// A quarantine.
pub fn quarantine(report: report::QuarantineReport) -> Quarantine {
    Quarantine {
        source: report.source,
        reason: report.reason,
        published: position(report.published),
        incarnation: report.incarnation,
        index: report.index,
        services: report.services as u64,
        entries: report.entries as u64,
    }
}

/// A connected Beacon.
pub fn beacon(beacon: beacons::BeaconState) -> Beacon {
    Beacon {
        node_id: beacon.node_id,
        zone: beacon.zone,
        build: beacon.build,
        peer: beacon.peer.map(|peer| peer.to_string()),
        since_unix_ms: beacon.since_unix_ms,
        reported_unix_ms: beacon.reported_unix_ms,
        revision: beacon.revision,
        rejections: beacon.rejections.into_iter().map(rejection).collect(),
        clients: beacon.clients as u64,
        arrival_micros: beacon.arrival.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
    }
}

fn rejection(rejection: beacons::Rejection) -> TypeRejection {
    TypeRejection {
        client: rejection.client,
        type_url: rejection.type_url,
        version: rejection.version,
        error: rejection.error,
    }
}

/// Somebody who could not connect.
pub fn refusal(refusal: refusals::Refusal) -> Refusal {
    Refusal {
        stage: match refusal.stage {
            refusals::Stage::Handshake => "handshake".to_owned(),
            refusals::Stage::Hello => "hello".to_owned(),
        },
        peer: refusal.peer.map(|peer| peer.to_string()),
        node_id: refusal.node_id,
        reason: refusal.reason,
        count: refusal.count,
        last_unix_ms: refusal.last_unix_ms,
    }
}
