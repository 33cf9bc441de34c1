//! Waiting longer after each failure, and never in step with others.

use std::time::Duration;

use rand::Rng;

/// Exponential backoff with full jitter: attempt `n` waits a random time up to `first * 2^n`, at most
/// `limit`, and at least a tenth of that bound.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    limit: Duration,
    failures: u32,
}

impl Backoff {
    /// The first wait is up to `first`, no wait is longer than `limit`.
    pub fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit, failures: 0 }
    }

    /// How long to wait after one more failure.
    pub fn next_wait(&mut self, rng: &mut impl Rng) -> Duration {
        let bound = self.first.saturating_mul(2_u32.saturating_pow(self.failures)).min(self.limit);
        self.failures = self.failures.saturating_add(1);
        bound.mul_f64(rng.random_range(0.1..=1.0))
    }

    /// To be called after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn waits_grow_to_the_limit_and_start_again_after_a_reset() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for bound in [100, 200, 400, 800, 1000, 1000] {
            let wait = backoff.next_wait(&mut rng).as_millis();
            assert!((bound / 10..=bound).contains(&wait), "{wait} ms, bound {bound} ms");
        }
        backoff.reset();
        assert!(backoff.next_wait(&mut rng).as_millis() <= 100);
    }

    #[test]
    fn a_very_long_outage_does_not_overflow() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
        for _ in 0..200 {
            assert!(backoff.next_wait(&mut rng) <= Duration::from_secs(10));
        }
    }
}
