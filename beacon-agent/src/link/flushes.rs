//! When what was delivered is served: at once when little happens, in groups when much does.
//!
//! Composing costs something for each group, whatever its size. A Beacon that composed each of hundreds of
//! deliveries a second by itself would fall behind.

use std::{future::pending, time::Duration};

use tokio::time::{Instant, sleep_until};
use tower_common::clock;

use super::Link;

/// The least time between two flushes.
const PACE: Duration = Duration::from_millis(5);

/// Flushing takes a fifth of the time, at most.
const SHARE: u32 = 4;

pub(super) struct Flushes {
    not_before: Instant,
    wanted: bool,
    /// The last probe that came; 0 is none.
    pub(super) probe: u64,
}

impl Flushes {
    pub(super) fn new() -> Self {
        Self { not_before: Instant::now(), wanted: false, probe: 0 }
    }

    /// There is something to serve.
    pub(super) fn wanted(&mut self) {
        self.wanted = true;
    }

    /// Until something is to be served and may be.
    pub(super) async fn due(&self) {
        if self.wanted { sleep_until(self.not_before).await } else { pending().await }
    }

    /// Serves it. Returns the probe that has been applied by that, or 0.
    pub(super) fn flush(&mut self, link: &Link) -> u64 {
        let start = clock::monotonic();
        if link.mirror.lock().flush() {
            link.metrics.times.note_unsaved();
            link.changed.notify_one();
        }
        self.wanted = false;
        self.not_before = Instant::now() + PACE.max(start.elapsed() * SHARE);
        std::mem::take(&mut self.probe)
    }
}
