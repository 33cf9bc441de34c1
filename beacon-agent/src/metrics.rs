//! Metrics of the link, the mirror and the snapshot. The xDS server brings its own.

use std::{
    fmt::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge},
    registry::Registry,
};
use tower_common::clock;

use crate::mirror::Mirror;

/// Of the link and the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// Streams to a Tower that were accepted.
    pub connects: Counter,
    /// Streams, and attempts at one, that ended.
    pub link_ends: Family<EndLabels, Counter>,
    /// Streams that took over from one whose Tower had said goodbye, while that still flowed or just after.
    pub hand_overs: Counter,
    /// Deliveries that were applied.
    pub deliveries: Counter,
    /// Snapshots written.
    pub snapshot_writes: Counter,
    /// Bytes of them.
    pub snapshot_bytes: Counter,
    /// Snapshots that could not be written.
    pub snapshot_errors: Counter,
    /// Snapshots that were set aside at the start.
    pub snapshots_rejected: Counter,
    /// What is known by the time.
    pub times: Arc<Times>,
}

/// Times of events, in milliseconds since the Unix epoch; 0 is never.
#[derive(Debug, Default)]
pub struct Times {
    /// When Tower was last heard.
    pub tower_heard: AtomicU64,
    /// When the snapshot on disk was taken.
    pub snapshot_taken: AtomicU64,
    /// When the oldest change was served that the disk does not have; 0 if it has all.
    pub unsaved: AtomicU64,
}

/// Why a stream to a Tower ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// Tower could not be reached, or refused.
    Refused,
    /// The stream broke.
    Broken,
    /// Tower was silent for too long.
    Silent,
    /// Tower said goodbye.
    Goodbye,
    /// A response could not be used.
    Invalid,
}

impl EncodeLabelValue for EndReason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        let word = match self {
            Self::Refused => "refused",
            Self::Broken => "broken",
            Self::Silent => "silent",
            Self::Goodbye => "goodbye",
            Self::Invalid => "invalid",
        };
        encoder.write_str(word)
    }
}

/// The label of [`Metrics::link_ends`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EndLabels {
    /// Why.
    pub reason: EndReason,
}

impl Metrics {
    /// Registers them.
    pub fn new(registry: &mut Registry, mirror: Arc<Mutex<Mirror>>) -> Self {
        let metrics = Self::default();
        let times = metrics.times.clone();
        registry.register_collector(Box::new(MirrorCollector { mirror, times }));
        let registry = registry.sub_registry_with_prefix("beacon");
        registry.register("link_ends", "Streams to a Tower that ended", metrics.link_ends.clone());
        let mut counter = |name: &str, help: &str, metric: &Counter| {
            registry.register(name, help, metric.clone());
        };
        counter("link_connects", "Streams that a Tower accepted", &metrics.connects);
        counter("link_hand_overs", "Streams that took over from another", &metrics.hand_overs);
        counter("deliveries", "Deliveries applied", &metrics.deliveries);
        counter("snapshot_writes", "Snapshots written", &metrics.snapshot_writes);
        counter("snapshot_written_bytes", "Bytes of snapshots written", &metrics.snapshot_bytes);
        counter("snapshot_errors", "Snapshots that could not be written", &metrics.snapshot_errors);
        counter("snapshots_rejected", "Snapshots set aside at the start", &metrics.snapshots_rejected);
        metrics
    }
}

impl Times {
    /// Notes that an event happened now.
    pub fn note(time: &AtomicU64) {
        time.store(clock::unix_millis(), Ordering::Relaxed);
    }

    /// Notes that something is served that the disk does not have.
    pub fn note_unsaved(&self) {
        let now = clock::unix_millis();
        let _ = self.unsaved.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// How long ago an event was, in seconds; negative if it never was.
    pub fn age_seconds(time: &AtomicU64) -> f64 {
        match time.load(Ordering::Relaxed) {
            0 => -1.0,
            at => clock::unix_millis().saturating_sub(at) as f64 / 1000.0,
        }
    }
}

/// Of the mirror, read when asked for.
#[derive(Debug)]
struct MirrorCollector {
    mirror: Arc<Mutex<Mirror>>,
    times: Arc<Times>,
}

impl Collector for MirrorCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let summary = self.mirror.lock().summary();
        let mut gauge = |name: &str, help: &str, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge("beacon_complete", "1 if there is a whole state to serve", f64::from(summary.complete))?;
        gauge("beacon_revision", "Tower's revision applied last", summary.revision as f64)?;
        gauge("beacon_resources", "Resources held", summary.resources as f64)?;
        gauge("beacon_services", "Services served", summary.services as f64)?;
        gauge("beacon_services_refused", "Services without a host name", summary.refused.len() as f64)?;
        gauge(
            "beacon_tower_heard_age_seconds",
            "Time since Tower was heard; -1 if it never was",
            Times::age_seconds(&self.times.tower_heard),
        )?;
        gauge(
            "beacon_snapshot_age_seconds",
            "Time since the snapshot on disk was taken; -1 if there is none",
            Times::age_seconds(&self.times.snapshot_taken),
        )?;
        gauge(
            "beacon_snapshot_behind_seconds",
            "Time since the oldest change that the disk does not have; 0 if it has all",
            Times::age_seconds(&self.times.unsaved).max(0.0),
        )
    }
}
