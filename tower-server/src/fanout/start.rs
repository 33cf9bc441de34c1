//! What a stream begins with, or starts over with: frames that bring a Beacon to one place in the log.
//! They are encoded once for all who need the same.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use super::{
    encoding::{Encoding, packed},
    log::{Cursor, FrameLog},
};

/// So many starts are kept: Beacons that come back together come from the same few states.
const KEPT: usize = 16;

/// A start is reused while less than this has happened since, or a quarter of its own size.
const WORTH_SHARING_BYTES: u64 = 64 << 10;

/// Frames, and where the log goes on from them.
#[derive(Debug)]
pub struct Start {
    frames: Vec<Bytes>,
    packed: OnceLock<Vec<Bytes>>,
    /// Where it goes on. `None` if the Beacon has been asked something and must answer first.
    pub next: Option<Cursor>,
}

/// From which state a start leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFrom {
    /// From nothing.
    Nothing,
    /// From a revision of this run.
    Revision(u64),
    /// From these positions, as encoded by the Beacon.
    Positions(Vec<u8>),
    /// From the state whose buckets have these sums.
    Buckets(Bytes),
}

/// The starts that were made last.
#[derive(Debug)]
pub struct StartCache {
    log: Arc<FrameLog>,
    made: VecDeque<(StartFrom, Arc<Start>)>,
}

impl Start {
    /// These frames, and where the log goes on from them.
    pub fn new(frames: Vec<Bytes>, next: Option<Cursor>) -> Self {
        Self { frames, packed: OnceLock::new(), next }
    }

    /// What is sent first. It is packed for the first stream that takes it so.
    pub fn frames(&self, encoding: Encoding) -> &[Bytes] {
        match encoding {
            Encoding::Plain => &self.frames,
            Encoding::Zstd => self.packed.get_or_init(|| self.frames.iter().map(packed).collect()),
        }
    }

    /// Bytes of its frames, before they are packed.
    pub fn bytes(&self) -> u64 {
        self.frames.iter().map(|frame| frame.len() as u64).sum()
    }
}

impl StartCache {
    /// An empty cache of starts that continue in this log.
    pub fn new(log: Arc<FrameLog>) -> Self {
        Self { log, made: VecDeque::new() }
    }

    /// A start from this state that is still cheaper to complete from the log than to make again, and that
    /// leads at least to this place.
    pub fn get(&self, from: &StartFrom, at_least: u64) -> Option<Arc<Start>> {
        let (_, start) = self.made.iter().find(|(made, _)| made == from)?;
        let next = start.next.filter(|next| next.place >= at_least)?;
        let since = self.log.bytes_since(next.place)?;
        (since <= (start.bytes() / 4).max(WORTH_SHARING_BYTES)).then(|| start.clone())
    }

    /// Keeps a start.
    pub fn put(&mut self, from: StartFrom, start: Start) -> Arc<Start> {
        let start = Arc::new(start);
        self.made.retain(|(made, _)| *made != from);
        self.made.push_front((from, start.clone()));
        self.made.truncate(KEPT);
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanout::log::Limits;

    #[test]
    fn a_start_is_shared_until_too_much_has_happened_since() {
        let log = FrameLog::new(Limits { bytes: 1 << 20, entries: 10 });
        let mut cache = StartCache::new(log.clone());
        assert!(cache.get(&StartFrom::Nothing, 0).is_none());
        let next = Some(Cursor { place: log.end(), revision: 0 });
        cache.put(StartFrom::Nothing, Start::new(vec![vec![0; 100].into()], next));
        log.append(vec![vec![0; 64 << 10].into()], 1);
        assert!(cache.get(&StartFrom::Nothing, 0).is_some());
        assert!(cache.get(&StartFrom::Nothing, 1).is_none(), "it leads to place 0");
        assert!(cache.get(&StartFrom::Revision(0), 0).is_none());
        log.append(vec![vec![0; 1].into()], 2);
        assert!(cache.get(&StartFrom::Nothing, 0).is_none());
    }

    #[test]
    fn only_the_last_ones_are_kept() {
        let log = FrameLog::new(Limits::default());
        let mut cache = StartCache::new(log);
        let next = Some(Cursor { place: 0, revision: 0 });
        for revision in 0..=KEPT as u64 {
            cache.put(StartFrom::Revision(revision), Start::new(vec![], next));
        }
        assert!(cache.get(&StartFrom::Revision(0), 0).is_none());
        assert!(cache.get(&StartFrom::Revision(1), 0).is_some());
    }
}
