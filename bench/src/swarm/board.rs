//! What is known of the swarm from outside its thread.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tower_common::clock;

/// What went wrong is told so often; all of it is counted.
const TOLD: usize = 20;

/// Counters, written by the swarm's thread alone.
#[derive(Debug, Default)]
pub struct Board {
    /// Beacons whose store is that of their Tower; at other ends, those who have heard something.
    pub equal: AtomicUsize,
    /// Deliveries that were applied.
    pub deliveries: AtomicU64,
    /// Messages that were received, of any kind.
    pub messages: AtomicU64,
    /// Bytes that were received, as the swarm reads them: with TLS, what was in it.
    pub bytes: AtomicU64,
    /// Bytes of those messages alone, without what HTTP/2 adds.
    pub payload: AtomicU64,
    /// Reports that were sent.
    pub reports: AtomicU64,
    /// Connections that ended without having been asked to.
    pub ends: AtomicU64,
    /// Goodbyes.
    pub goodbyes: AtomicU64,
    /// What no Tower may say; none must ever be counted.
    pub faults: AtomicU64,
    told: Mutex<Vec<String>>,
    last_equal: Mutex<Option<Instant>>,
    /// The message with marks that was received last.
    pub(super) marked: Mutex<Vec<u8>>,
}

impl Board {
    /// What went wrong, in words.
    pub fn told(&self) -> Vec<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From a moment until the last Beacon became equal.
    pub fn last_equal_since(&self, start: Instant) -> Duration {
        let last = *self.last_equal.lock().unwrap_or_else(PoisonError::into_inner);
        last.map_or(Duration::ZERO, |last| last.saturating_duration_since(start))
    }

    /// The message with marks that was received last, with gRPC's prefix.
    pub fn marked(&self) -> Vec<u8> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn tell(&self, counter: &AtomicU64, what: String) {
        counter.fetch_add(1, Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < TOLD {
            told.push(what);
        }
    }

    pub(super) fn count_equal(&self, before: bool, now: bool) {
        match (before, now) {
            (false, true) => {
                self.equal.fetch_add(1, Relaxed);
                *self.last_equal.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock::monotonic());
            }
            (true, false) => {
                self.equal.fetch_sub(1, Relaxed);
            }
            (true, true) | (false, false) => {}
        }
    }
}
