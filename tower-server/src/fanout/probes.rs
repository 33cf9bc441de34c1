//! How long what is sent takes until it is applied: some heartbeats carry a probe, and each Beacon tells how
//! long ago it has applied it. So it takes no clocks that agree, and is known also while nothing changes.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tower_common::clock;

/// Probes are sent this often.
pub const INTERVAL: Duration = Duration::from_secs(15);

/// How many probes are remembered: those of an hour.
const KEPT: usize = 240;

/// Steps in which times are counted, for each doubling: percentiles are right to 9 %.
const STEPS: f64 = 8.0;

/// Probes that were sent, and how long they took.
#[derive(Debug)]
pub struct Probes {
    sent: Mutex<VecDeque<Sent>>,
    /// Of all Beacons, in seconds.
    pub seconds: Histogram,
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

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// When it was sent, in milliseconds since 1970.
    pub unix_ms: u64,
    /// How many Beacons have told that they have applied it.
    pub beacons: u64,
    /// How long half of them took, at most.
    pub half: Duration,
    /// How long 99 of 100 took, at most.
    pub most: Duration,
    /// How long the last one took.
    pub longest: Duration,
}

impl Default for Probes {
    fn default() -> Self {
        let seconds = Histogram::new(exponential_buckets(0.001, 2.0, 14));
        Self { sent: Mutex::default(), seconds }
    }
}

impl Probes {
    /// The number of the probe that a heartbeat carries now; 0 if it is too soon for another one.
    pub fn next(&self, now: Instant) -> u64 {
        let mut sent = self.sent.lock();
        let last = sent.back();
        if last.is_some_and(|last| now.saturating_duration_since(last.at) < INTERVAL) {
            return 0;
        }
        let number = last.map_or(1, |last| last.number + 1);
        if sent.len() == KEPT {
            sent.pop_front();
        }
        let unix_ms = clock::unix_millis();
        sent.push_back(Sent { number, at: now, unix_ms, took: BTreeMap::new(), longest: Duration::ZERO });
        number
    }

    /// A Beacon has just told that it has applied a probe so long ago.
    pub fn applied(&self, number: u64, ago: Duration, now: Instant) {
        let mut sent = self.sent.lock();
        let Some(probe) = sent.iter_mut().rev().find(|probe| probe.number == number) else { return };
        let took = now.saturating_duration_since(probe.at).saturating_sub(ago);
        *probe.took.entry(step(took)).or_default() += 1;
        probe.longest = probe.longest.max(took);
        self.seconds.observe(took.as_secs_f64());
    }

    /// What became of the probes of the last hour, the oldest first.
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

    #[test]
    fn a_probe_tells_how_long_beacons_took_without_the_way_back() {
        let probes = Probes::default();
        let start = clock::monotonic();
        let number = probes.next(start);
        assert_eq!((number, probes.next(start + INTERVAL / 2)), (1, 0));
        let ms = Duration::from_millis;
        for took in 1..=100 {
            // Each tells of it half a second after it has applied it.
            probes.applied(number, ms(500), start + ms(500) + ms(took));
        }
        probes.applied(7, ms(0), start);
        assert_eq!(probes.next(start + INTERVAL), 2);
        let [first, second] = probes.outcomes()[..] else { panic!("two were sent") };
        assert_eq!((first.beacons, first.longest), (100, ms(100)));
        assert!(first.half >= ms(50) && first.half < ms(56), "{first:?}");
        assert!(first.most >= ms(99) && first.most <= ms(100), "{first:?}");
        assert_eq!((second.beacons, second.half, second.longest), (0, ms(0), ms(0)));
    }

    #[test]
    fn the_probes_of_an_hour_are_kept() {
        let probes = Probes::default();
        let start = clock::monotonic();
        for count in 0..250 {
            probes.next(start + INTERVAL * count);
        }
        assert_eq!(probes.outcomes().len(), KEPT);
        // What nobody remembers is not counted.
        probes.applied(1, Duration::ZERO, start);
        assert!(probes.outcomes().iter().all(|outcome| outcome.beacons == 0));
    }
}
