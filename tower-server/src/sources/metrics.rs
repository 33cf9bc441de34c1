//! What Prometheus sees of the sources. Labels are ids of sources and states.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use tower_proto::v1;

use super::{guard, model::Counters, report::State};

/// The metrics of all sources.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    state: Family<StateLabels, Gauge>,
    services: Family<SourceLabels, Gauge>,
    endpoints: Family<SourceLabels, Gauge>,
    problems: Family<SourceLabels, Gauge>,
    position: Family<SourceLabels, Gauge>,
    last_event: Family<SourceLabels, Gauge<f64, AtomicU64>>,
    events: Family<SourceLabels, Counter>,
    reloads: Family<SourceLabels, Counter>,
    reconnects: Family<SourceLabels, Counter>,
    malformed: Family<SourceLabels, Counter>,
    remarks: Family<SourceLabels, Counter>,
    holds: Family<SourceLabels, Gauge>,
    held_endpoints: Family<SourceLabels, Gauge>,
    guarded: Family<OutcomeLabels, Counter>,
    quarantined: Family<SourceLabels, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    source: String,
    outcome: Outcome,
}

/// What became of an endpoint that was registered no more, after most of its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Outcome {
    Held,
    Returned,
    Replaced,
    Expired,
    Released,
    Dropped,
}

impl EncodeLabelValue for Outcome {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        let word = match self {
            Self::Held => "held",
            Self::Returned => "returned",
            Self::Replaced => "replaced",
            Self::Expired => "expired",
            Self::Released => "released",
            Self::Dropped => "dropped",
        };
        word.encode(encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    source: String,
    state: State,
}

impl EncodeLabelValue for State {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        self.word().encode(encoder)
    }
}

/// What a source shows of itself.
pub(super) struct Reading {
    pub(super) state: v1::SourceState,
    pub(super) services: usize,
    pub(super) endpoints: usize,
    pub(super) problems: usize,
    pub(super) index: u64,
    pub(super) counters: Counters,
    pub(super) holds: usize,
    pub(super) held_endpoints: usize,
    pub(super) guarded: guard::Counters,
    pub(super) quarantined: bool,
}

impl Metrics {
    /// Registers the metrics.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("tower_source");
        registry.register("state", "1 for the state that a source is in", metrics.state.clone());
        registry.register("services", "Services that a source knows", metrics.services.clone());
        registry.register("endpoints", "Endpoints that a source knows", metrics.endpoints.clone());
        registry.register(
            "problems",
            "Paths of a source that cannot be used at present",
            metrics.problems.clone(),
        );
        registry.register(
            "position",
            "How far a source has been read: its zxid or counter",
            metrics.position.clone(),
        );
        registry.register(
            "last_event_timestamp_seconds",
            "When something of a source was last read, in Unix time",
            metrics.last_event.clone(),
        );
        registry.register("events", "Events that a source sent", metrics.events.clone());
        registry.register("reloads", "Complete readings of a source", metrics.reloads.clone());
        registry.register(
            "reconnects",
            "Complete readings after a source had been out of touch",
            metrics.reconnects.clone(),
        );
        registry.register(
            "malformed",
            "Members or files that turned out to be unusable",
            metrics.malformed.clone(),
        );
        registry.register(
            "remarks",
            "Oddities in members that were used all the same",
            metrics.remarks.clone(),
        );
        registry.register("holds", "Shrinks of a source that are held", metrics.holds.clone());
        registry.register(
            "held_endpoints",
            "Endpoints that stay published though a source has them no more",
            metrics.held_endpoints.clone(),
        );
        registry.register(
            "guarded_endpoints",
            "Endpoints that were held, and what became of them",
            metrics.guarded.clone(),
        );
        registry.register(
            "quarantined",
            "1 if what was found in a source is not believed until an operator adopts it",
            metrics.quarantined.clone(),
        );
        metrics
    }

    /// Something of a source was read.
    pub(super) fn heard(&self, source: &str, unix_millis: u64) {
        let seconds = std::time::Duration::from_millis(unix_millis).as_secs_f64();
        self.last_event.get_or_create(&labels(source)).set(seconds);
    }

    pub(super) fn show(&self, source: &str, reading: &Reading) {
        for state in State::ALL {
            let labels = StateLabels { source: source.to_owned(), state };
            self.state.get_or_create(&labels).set(i64::from(state == reading.state.into()));
        }
        let labels = labels(source);
        let gauge = |family: &Family<SourceLabels, Gauge>, value: u64| {
            family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        gauge(&self.services, reading.services as u64);
        gauge(&self.endpoints, reading.endpoints as u64);
        gauge(&self.problems, reading.problems as u64);
        gauge(&self.position, reading.index);
        // The model counts, so that a source's report and its metrics agree.
        let counter = |family: &Family<SourceLabels, Counter>, value: u64| {
            family.get_or_create(&labels).inner().store(value, Ordering::Relaxed);
        };
        let Counters { events, reloads, reconnects, malformed, remarks } = reading.counters;
        counter(&self.events, events);
        counter(&self.reloads, reloads);
        counter(&self.reconnects, reconnects);
        counter(&self.malformed, malformed);
        counter(&self.remarks, remarks);
        gauge(&self.holds, reading.holds as u64);
        gauge(&self.held_endpoints, reading.held_endpoints as u64);
        gauge(&self.quarantined, u64::from(reading.quarantined));
        let guard::Counters { held, returned, replaced, expired, released, dropped } = reading.guarded;
        for (outcome, value) in [
            (Outcome::Held, held),
            (Outcome::Returned, returned),
            (Outcome::Replaced, replaced),
            (Outcome::Expired, expired),
            (Outcome::Released, released),
            (Outcome::Dropped, dropped),
        ] {
            let labels = OutcomeLabels { source: source.to_owned(), outcome };
            self.guarded.get_or_create(&labels).inner().store(value, Ordering::Relaxed);
        }
    }
}

fn labels(source: &str) -> SourceLabels {
    SourceLabels { source: source.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_stay() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        metrics.heard("zk", 1_500);
        let counters = Counters { events: 5, ..Counters::default() };
        let state = v1::SourceState::Live;
        let guarded = guard::Counters { released: 8, ..guard::Counters::default() };
        let reading = Reading {
            state,
            services: 1,
            endpoints: 2,
            problems: 3,
            index: 4,
            counters,
            holds: 6,
            held_endpoints: 7,
            guarded,
            quarantined: true,
        };
        metrics.show("zk", &reading);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "tower_source_state{source=\"zk\",state=\"live\"} 1",
            "tower_source_state{source=\"zk\",state=\"lost\"} 0",
            "tower_source_services{source=\"zk\"} 1",
            "tower_source_endpoints{source=\"zk\"} 2",
            "tower_source_problems{source=\"zk\"} 3",
            "tower_source_position{source=\"zk\"} 4",
            "tower_source_last_event_timestamp_seconds{source=\"zk\"} 1.5",
            "tower_source_events_total{source=\"zk\"} 5",
            "tower_source_reloads_total{source=\"zk\"} 0",
            "tower_source_reconnects_total{source=\"zk\"} 0",
            "tower_source_malformed_total{source=\"zk\"} 0",
            "tower_source_remarks_total{source=\"zk\"} 0",
            "tower_source_holds{source=\"zk\"} 6",
            "tower_source_held_endpoints{source=\"zk\"} 7",
            "tower_source_guarded_endpoints_total{source=\"zk\",outcome=\"released\"} 8",
            "tower_source_quarantined{source=\"zk\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }
}
