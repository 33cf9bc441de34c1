//! Metrics of the store, the frame log and the streams. Sources bring their own.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        counter::Counter,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

use crate::{
    fanout::{admission::Admission, beacons::Beacons, log::FrameLog, probes::Probes},
    store_actor::{ServiceCounts, StoreSummary},
};

/// Of the store actor.
#[derive(Debug, Clone, Default)]
pub struct StoreMetrics {
    /// Transactions that changed something.
    pub transactions: Counter,
    /// Bytes of frames, each encoded once.
    pub frame_bytes: Counter,
    /// How often a start was encoded, for one Beacon or many.
    pub starts_encoded: Counter,
    /// What heartbeats carry, and what became of it.
    pub probes: Arc<Probes>,
    revision: Gauge,
    resources: Gauge,
    complete: Gauge,
    clashes: Gauge,
    oversized: Gauge,
    services_served: Gauge,
    services_watched: Gauge,
    log_entries: Gauge,
    log_bytes: Gauge,
}

impl StoreMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry, probes: Arc<Probes>) -> Self {
        let metrics = Self { probes, ..Self::default() };
        let registry = registry.sub_registry_with_prefix("tower");
        let mut counter = |name: &str, help: &str, metric: &Counter| {
            registry.register(name, help, metric.clone());
        };
        counter("store_transactions", "Transactions that changed the store", &metrics.transactions);
        counter("log_appended_bytes", "Bytes of frames, each encoded once", &metrics.frame_bytes);
        counter("starts_encoded", "Starts of streams that were encoded", &metrics.starts_encoded);
        let applied = metrics.probes.seconds.clone();
        registry.register("source_to_applied_seconds", "Until Beacons have applied what is sent", applied);
        let mut gauge = |name: &str, help: &str, metric: &Gauge| {
            registry.register(name, help, metric.clone());
        };
        gauge("store_revision", "Transactions since the start", &metrics.revision);
        gauge("store_resources", "Resources in the store", &metrics.resources);
        gauge("store_complete", "1 if every source that is not optional is loaded", &metrics.complete);
        gauge("store_clashes", "Changes refused because another source owns the key", &metrics.clashes);
        gauge("store_oversized", "Resources refused because they are too large", &metrics.oversized);
        gauge("services_served", "Services that Beacons are sent", &metrics.services_served);
        gauge("services_watched", "Services that are watched and not served", &metrics.services_watched);
        gauge("log_entries", "Entries in the frame log", &metrics.log_entries);
        gauge("log_bytes", "Bytes in the frame log", &metrics.log_bytes);
        metrics
    }

    /// Sets the gauges.
    pub fn observe(&self, store: &StoreSummary, (entries, bytes): (usize, u64)) {
        self.revision.set(to_i64(store.revision));
        self.resources.set(to_i64(store.resources as u64));
        self.complete.set(i64::from(store.complete));
        self.clashes.set(to_i64(store.clashes));
        self.oversized.set(to_i64(store.oversized));
        self.log_entries.set(to_i64(entries as u64));
        self.log_bytes.set(to_i64(bytes));
    }
    /// Sets the gauges of services.
    pub fn observe_services(&self, counts: ServiceCounts) {
        self.services_served.set(to_i64(counts.served as u64));
        self.services_watched.set(to_i64(counts.watched as u64));
    }
}

/// Of the streams, read when asked for.
#[derive(Debug)]
pub struct StreamCollector {
    /// Who is connected.
    pub beacons: Arc<Beacons>,
    /// Who reads.
    pub log: Arc<FrameLog>,
    /// What is on its way to Beacons that start over.
    pub admission: Arc<Admission>,
}

impl Collector for StreamCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = ConstGauge::new(to_i64(value));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge("tower_beacons_connected", "Beacons connected", self.beacons.len() as u64)?;
        gauge("tower_log_readers", "Streams that read the frame log", self.log.readers() as u64)?;
        gauge(
            "tower_starts_under_way_bytes",
            "Bytes on their way to Beacons that start over",
            self.admission.under_way(),
        )?;
        let refused = self.beacons.refusals().counts();
        refused.encode(encoder.encode_descriptor(
            "tower_connections_refused",
            "Connections of Beacons that were refused",
            None,
            refused.metric_type(),
        )?)
    }
}

fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
