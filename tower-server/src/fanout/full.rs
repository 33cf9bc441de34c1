//! The whole store as frames, encoded once for all who start over at about the same time.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::log::FrameLog;

/// The store as of one place in the log.
#[derive(Debug)]
pub struct FullState {
    /// A delivery of everything.
    pub frames: Vec<Bytes>,
    /// Where in the log it goes on from there.
    pub place: u64,
}

/// The full state that was built last. It serves as long as it, and what came after it, is cheaper to
/// send than it would be to build a new one: so a thousand Beacons that come back together share one.
#[derive(Debug)]
pub struct FullCache {
    log: Arc<FrameLog>,
    last: Mutex<Option<Arc<FullState>>>,
}

impl FullCache {
    /// An empty cache of states that continue in this log.
    pub fn new(log: Arc<FrameLog>) -> Self {
        Self { log, last: Mutex::default() }
    }

    /// The last state, if it still serves.
    pub fn get(&self) -> Option<Arc<FullState>> {
        let last = self.last.lock().clone()?;
        let since = self.log.bytes_since(last.place)?;
        let bytes: u64 = last.frames.iter().map(|frame| frame.len() as u64).sum();
        (since <= bytes / 4).then_some(last)
    }

    /// Replaces the last state.
    pub fn put(&self, state: FullState) -> Arc<FullState> {
        let state = Arc::new(state);
        *self.last.lock() = Some(state.clone());
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanout::log::Limits;

    #[test]
    fn a_state_is_shared_until_too_much_has_happened_since() {
        let log = FrameLog::new(Limits { bytes: 1000, entries: 10 });
        let cache = FullCache::new(log.clone());
        assert!(cache.get().is_none());
        cache.put(FullState { frames: vec![vec![0; 100].into()], place: log.end() });
        log.append(vec![vec![0; 20].into()]);
        assert!(cache.get().is_some());
        log.append(vec![vec![0; 20].into()]);
        assert!(cache.get().is_none(), "40 bytes more than a quarter of 100");
        cache.put(FullState { frames: vec![vec![0; 100].into()], place: log.end() });
        log.append(vec![vec![0; 2000].into()]);
        log.append(vec![vec![0; 1].into()]);
        assert!(cache.get().is_none(), "its place has been dropped");
    }
}
