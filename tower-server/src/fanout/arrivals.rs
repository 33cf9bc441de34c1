//! How soon what Tower sends is in force on hosts. Each heartbeat takes the way of any change, from the mailbox
//! of the store's owner on, and Beacons report how long ago it came into force. So the figure is there before
//! anything has to change, tells of each host, and takes no clocks that agree.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prometheus_client::{metrics::histogram::Histogram, registry::Registry, registry::Unit};
use tower_common::clock;
use tower_proto::v1;

/// So many heartbeats are remembered: those of an hour.
pub const REMEMBERED: usize = 720;

/// The buckets of the histogram, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Steps in which times are counted, for each doubling: percentiles are right to 9 %.
const STEPS: f64 = 8.0;

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
    unix_ms: u64,
    /// How many Beacons took how long, by [`step`].
    took: BTreeMap<i32, u32>,
    longest: Duration,
}

/// What became of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// When it was sent, in milliseconds since 1970.
    pub unix_ms: u64,
    /// How many Beacons have told that it is in force.
    pub beacons: u64,
    /// How long half of them took, at most.
    pub half: Duration,
    /// How long 99 of 100 took, at most.
    pub most: Duration,
    /// How long the last one took.
    pub longest: Duration,
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
        if sent.len() == REMEMBERED {
            sent.pop_front();
        }
        let unix_ms = clock::unix_millis();
        sent.push_back(Sent { number, at, unix_ms, took: BTreeMap::new(), longest: Duration::ZERO });
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
        *sent.took.entry(step(took)).or_default() += 1;
        sent.longest = sent.longest.max(took);
        self.seconds.observe(took.as_secs_f64());
        Some(took)
    }

    /// What became of the heartbeats of the last hour, the oldest first.
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.sent.lock().iter().map(Sent::outcome).collect()
    }
}

impl Sent {
    fn outcome(&self) -> Outcome {
        let beacons = self.took.values().map(|count| u64::from(*count)).sum();
        Outcome {
            unix_ms: self.unix_ms,
            beacons,
            half: self.percentile(beacons.div_ceil(2)),
            most: self.percentile((beacons * 99).div_ceil(100)),
            longest: self.longest,
        }
    }

    /// What so many took at most.
    fn percentile(&self, wanted: u64) -> Duration {
        let mut so_far = 0;
        for (step, count) in &self.took {
            so_far += u64::from(*count);
            if so_far >= wanted {
                return end(*step).min(self.longest);
            }
        }
        self.longest
    }
}

/// Which step a time is in.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm of microseconds is small")]
fn step(took: Duration) -> i32 {
    let micros = took.as_secs_f64() * 1e6;
    (micros.max(1.0).log2() * STEPS).ceil() as i32
}

/// The longest time of a step.
fn end(step: i32) -> Duration {
    Duration::from_secs_f64((f64::from(step) / STEPS).exp2() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn applied(heartbeat: u64, micros_ago: u64) -> v1::Applied {
        v1::Applied { heartbeat, micros_ago }
    }

    #[test]
    fn a_heartbeat_counts_for_those_who_were_there_when_it_was_sent() {
        let start = clock::monotonic();
        let arrivals = Arrivals::default();
        assert_eq!(arrivals.outcomes(), []);
        let number = arrivals.sent(start + SECOND);
        assert_eq!(arrivals.outcomes()[0].beacons, 0);
        let now = start + 3 * SECOND;
        assert_eq!(arrivals.applied(&applied(number, 1_950_000), start, now), Some(SECOND / 20));
        assert_eq!(arrivals.applied(&applied(number, 0), start + 2 * SECOND, now), None);
        assert_eq!(arrivals.applied(&applied(number + 1, 0), start, now), None);
        assert_eq!(arrivals.applied(&applied(0, 0), start, now), None);
        // Who counts differently does not go back before the sending.
        assert_eq!(arrivals.applied(&applied(number, 9_000_000), start, now), Some(Duration::ZERO));
        let outcome = arrivals.outcomes()[0];
        assert_eq!((outcome.beacons, outcome.longest), (2, SECOND / 20));
    }

    #[test]
    fn outcomes_are_percentiles_over_beacons() {
        let start = clock::monotonic();
        let arrivals = Arrivals::default();
        let number = arrivals.sent(start);
        let ms = Duration::from_millis;
        for took in 1..=100 {
            // Each tells of it half a second after it has come into force.
            arrivals.applied(&applied(number, 500_000), start, start + ms(500) + ms(took));
        }
        let [outcome] = arrivals.outcomes()[..] else { panic!("one was sent") };
        assert_eq!((outcome.beacons, outcome.longest), (100, ms(100)));
        assert!(outcome.half >= ms(50) && outcome.half < ms(56), "{outcome:?}");
        assert!(outcome.most >= ms(99) && outcome.most <= ms(100), "{outcome:?}");
    }

    #[test]
    fn those_of_an_hour_are_remembered() {
        let start = clock::monotonic();
        let arrivals = Arrivals::default();
        for _ in 0..REMEMBERED + 10 {
            arrivals.sent(start);
        }
        assert_eq!(arrivals.outcomes().len(), REMEMBERED);
        assert_eq!(arrivals.applied(&applied(1, 0), start, start), None);
        assert_eq!(arrivals.applied(&applied(11, 0), start, start), Some(Duration::ZERO));
    }
}
