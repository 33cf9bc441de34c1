//! When changes are sent: at once when little happens, in groups when much does.
//!
//! Each flush costs something for each stream, whatever its size: a wake-up and a write. A Tower that sent each
//! of a thousand changes a second by itself to thousands of Beacons would only fall behind. One flush may be on
//! credit: what comes just after another, or after a heartbeat, does not wait for that.

use std::time::{Duration, Instant};

/// The time between two flushes, on average, for each stream: somewhat more than a flush costs for one. So flushing
/// takes less than one core, however many Beacons there are.
const PACE_PER_READER: Duration = Duration::from_micros(12);

/// However many there are, a change waits no longer.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What has been sent, and when more may be.
#[derive(Debug)]
pub(super) struct Flushes {
    /// The revision that readers of the log are at.
    sent: u64,
    /// When all flushes are paid for.
    paid: Instant,
    /// What the last one cost.
    cost: Duration,
}

impl Flushes {
    /// Nothing has been sent.
    pub(super) fn new(now: Instant) -> Self {
        Self { sent: 0, paid: now, cost: Duration::ZERO }
    }

    /// The revision that readers of the log are at.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// How long something new has to wait.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.paid.saturating_duration_since(now).saturating_sub(self.cost)
    }

    /// Notes that so many readers were sent everything up to a revision.
    pub(super) fn flushed(&mut self, revision: u64, readers: usize, now: Instant) {
        self.sent = revision;
        let readers = u32::try_from(readers).unwrap_or(u32::MAX);
        self.cost = PACE_PER_READER.saturating_mul(readers).min(LONGEST_WAIT);
        self.paid = self.paid.max(now) + self.cost;
    }
}

#[cfg(test)]
mod tests {
    use tower_common::clock;

    use super::*;

    #[test]
    fn what_comes_alone_does_not_wait_and_what_comes_in_crowds_does() {
        let start = clock::monotonic();
        let mut flushes = Flushes::new(start);
        assert_eq!(flushes.wait(start), Duration::ZERO);
        flushes.flushed(1, 5000, start);
        assert_eq!((flushes.sent(), flushes.wait(start)), (1, Duration::ZERO));
        let soon = start + Duration::from_millis(10);
        flushes.flushed(2, 5000, soon);
        assert_eq!(flushes.wait(soon), Duration::from_millis(50));
        let paid = start + Duration::from_millis(60);
        assert_eq!(flushes.wait(paid), Duration::ZERO);
        flushes.flushed(3, 5000, paid);
        assert_eq!(flushes.wait(paid), Duration::from_millis(60));
        let later = start + Duration::from_secs(1);
        flushes.flushed(4, usize::MAX, later);
        flushes.flushed(5, usize::MAX, later);
        assert_eq!(flushes.wait(later), LONGEST_WAIT);
        flushes.flushed(6, 0, later + 2 * LONGEST_WAIT);
        assert_eq!(flushes.wait(later + 2 * LONGEST_WAIT), Duration::ZERO);
    }
}
