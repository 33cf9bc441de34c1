//! How soon what Tower sends is in force on hosts. Each heartbeat takes the way of any change, from the mailbox
//! of the store's owner on, and Beacons report when it was applied. So the figure is there before anything has
//! to change, and tells of each host.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prometheus_client::{metrics::histogram::Histogram, registry::Registry, registry::Unit};
use tower_proto::v1;

/// So many heartbeats are remembered: a minute of them.
pub const REMEMBERED: usize = 12;

/// The buckets of the histogram, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// What is known of the last heartbeats.
#[derive(Debug)]
pub struct Arrivals {
    sent: Mutex<VecDeque<Sent>>,
    seconds: Histogram,
}

#[derive(Debug)]
struct Sent {
    number: u64,
    at: Instant,
    /// From then until each Beacon had applied it, in milliseconds.
    millis: Vec<f32>,
}

/// Quantiles of the last heartbeats, over all Beacons, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles {
    /// How many reports there were.
    pub reports: usize,
    /// The median.
    pub p50: f64,
    /// Of 90 %.
    pub p90: f64,
    /// Of 99 %.
    pub p99: f64,
    /// The last.
    pub most: f64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { sent: Mutex::default(), seconds: Histogram::new(BUCKETS) }
    }
}

impl Arrivals {
    /// Registers the histogram.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "tower_source_to_applied",
            "From a source's reading until a Beacon had applied it, by heartbeats that take the same way",
            Unit::Seconds,
            self.seconds.clone(),
        );
    }

    /// A heartbeat that was due then is being sent. Returns its number.
    pub fn sent(&self, at: Instant) -> u64 {
        let mut sent = self.sent.lock();
        let number = sent.back().map_or(1, |last| last.number + 1);
        sent.push_back(Sent { number, at, millis: Vec::new() });
        if sent.len() > REMEMBERED {
            sent.pop_front();
        }
        number
    }

    /// A Beacon that has been connected since then reports. Returns how long it took, unless the heartbeat was
    /// sent before it connected, or is forgotten.
    pub fn applied(&self, applied: &v1::Applied, connected: Instant, now: Instant) -> Option<Duration> {
        let mut all = self.sent.lock();
        let first = all.front()?.number;
        let index = usize::try_from(applied.heartbeat.checked_sub(first)?).ok()?;
        let sent = all.get_mut(index).filter(|sent| sent.at >= connected)?;
        let ago = Duration::from_micros(applied.micros_ago);
        let took = now.saturating_duration_since(sent.at).saturating_sub(ago);
        #[allow(clippy::cast_possible_truncation, reason = "milliseconds need no more digits")]
        sent.millis.push((took.as_secs_f64() * 1000.0) as f32);
        self.seconds.observe(took.as_secs_f64());
        Some(took)
    }

    /// The quantiles, if any Beacon has reported.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let mut millis: Vec<f32> =
            self.sent.lock().iter().flat_map(|sent| sent.millis.iter().copied()).collect();
        millis.sort_unstable_by(f32::total_cmp);
        let last = millis.len().checked_sub(1)?;
        let at = |hundredths: usize| f64::from(millis[(last * hundredths).div_ceil(100)]);
        Some(Quantiles { reports: millis.len(), p50: at(50), p90: at(90), p99: at(99), most: at(100) })
    }
}

#[cfg(test)]
mod tests {
    use tower_common::clock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_heartbeat_counts_for_those_who_were_there_when_it_was_sent() {
        let start = clock::monotonic();
        let arrivals = Arrivals::default();
        assert_eq!(arrivals.quantiles(), None);
        let number = arrivals.sent(start + SECOND);
        let applied = |number, micros_ago| v1::Applied { heartbeat: number, micros_ago };
        let now = start + 3 * SECOND;
        assert_eq!(arrivals.applied(&applied(number, 1_950_000), start, now), Some(SECOND / 20));
        assert_eq!(arrivals.applied(&applied(number, 0), start + 2 * SECOND, now), None);
        assert_eq!(arrivals.applied(&applied(number + 1, 0), start, now), None);
        assert_eq!(arrivals.applied(&applied(0, 0), start, now), None);
        // Who counts differently does not go back before the sending.
        assert_eq!(arrivals.applied(&applied(number, 9_000_000), start, now), Some(Duration::ZERO));
        let quantiles = arrivals.quantiles().unwrap();
        assert_eq!((quantiles.reports, quantiles.most), (2, 50.0));
    }

    #[test]
    fn quantiles_are_of_the_last_heartbeats() {
        let start = clock::monotonic();
        let arrivals = Arrivals::default();
        let old = arrivals.sent(start);
        arrivals.applied(&v1::Applied { heartbeat: old, micros_ago: 0 }, start, start + 100 * SECOND);
        for _ in 0..REMEMBERED {
            arrivals.sent(start);
        }
        for millis in 1..=100 {
            let applied = v1::Applied { heartbeat: old + 1, micros_ago: 0 };
            arrivals.applied(&applied, start, start + Duration::from_millis(millis));
        }
        let quantiles = arrivals.quantiles().unwrap();
        assert_eq!((quantiles.reports, quantiles.p99, quantiles.most), (100, 100.0, 100.0));
        assert_eq!((quantiles.p50, quantiles.p90), (51.0, 91.0));
    }
}
