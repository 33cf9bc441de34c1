//! The frame log: a bounded ring of encoded frames. A stream is a number, its place in the log, and a
//! waker; so a stream that does not read costs nothing, and delays nobody.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use bytes::Bytes;
use futures::task::AtomicWaker;
use parking_lot::{Mutex, RwLock};

use super::encoding::{Encoding, packed};

/// How much the log holds. What is older is dropped, and whoever still wanted it starts over.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all frames together, as they are before they are packed. The newest entry is kept even if it is larger.
    pub bytes: u64,
    /// Entries.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 32 << 20, entries: 1 << 16 }
    }
}

/// Frames in the order in which they are sent, shared by all streams.
#[derive(Debug)]
pub struct FrameLog {
    limits: Limits,
    ring: RwLock<Ring>,
    readers: Mutex<BTreeMap<u64, Arc<AtomicWaker>>>,
    next_reader: AtomicU64,
}

/// What a reader takes at once, unless one entry alone is larger. It bounds how much a reader that then
/// stops can keep alive of what the ring has dropped.
const READ_BYTES: u64 = 256 << 10;

#[derive(Debug, Default)]
struct Ring {
    /// The place of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
    /// Bytes ever appended.
    written: u64,
}

#[derive(Debug)]
struct Entry {
    plain: Vec<Bytes>,
    packed: Vec<Bytes>,
    /// The revision after it.
    revision: u64,
    /// Bytes ever appended before it.
    start: u64,
}

/// What a reader finds at its place.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Frames from there on, and the place after them.
    Frames(Vec<Bytes>, Cursor),
    /// Nothing yet: the reader is woken when there is something.
    Pending,
    /// The place has been dropped.
    Lagged,
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Counts entries.
    pub place: u64,
    /// The revision that a reader is at who has read up to here.
    pub revision: u64,
}

/// A registered reader; dropping it ends its registration.
#[derive(Debug)]
pub struct Reader {
    log: Arc<FrameLog>,
    id: u64,
    encoding: Encoding,
    waker: Arc<AtomicWaker>,
}

impl FrameLog {
    /// An empty log.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            ring: RwLock::default(),
            readers: Mutex::default(),
            next_reader: AtomicU64::new(0),
        })
    }

    /// Appends frames that belong together, after which readers are at this revision, and wakes them all.
    pub fn append(&self, plain: Vec<Bytes>, revision: u64) {
        let packed = plain.iter().map(packed).collect();
        {
            let mut ring = self.ring.write();
            let start = ring.written;
            ring.written += plain.iter().map(|frame| frame.len() as u64).sum::<u64>();
            ring.entries.push_back(Entry { plain, packed, revision, start });
            while ring.entries.len() > 1
                && (ring.bytes() > self.limits.bytes || ring.entries.len() > self.limits.entries)
            {
                ring.entries.pop_front();
                ring.first += 1;
            }
        }
        self.wake();
    }

    /// The place after the last entry.
    pub fn end(&self) -> u64 {
        let ring = self.ring.read();
        ring.first + ring.entries.len() as u64
    }

    /// How many bytes stand at and after a place; `None` if it has been dropped.
    pub fn bytes_since(&self, place: u64) -> Option<u64> {
        let ring = self.ring.read();
        let skipped = usize::try_from(place.checked_sub(ring.first)?).ok()?;
        Some(ring.written - ring.entries.get(skipped).map_or(ring.written, |entry| entry.start))
    }

    /// Entries and bytes in the ring.
    pub fn usage(&self) -> (usize, u64) {
        let ring = self.ring.read();
        (ring.entries.len(), ring.bytes())
    }

    /// Registers a reader of this encoding.
    pub fn reader(self: &Arc<Self>, encoding: Encoding) -> Reader {
        let id = self.next_reader.fetch_add(1, Ordering::Relaxed);
        let waker = Arc::new(AtomicWaker::new());
        self.readers.lock().insert(id, waker.clone());
        Reader { log: self.clone(), id, encoding, waker }
    }

    /// How many readers are registered.
    pub fn readers(&self) -> usize {
        self.readers.lock().len()
    }

    fn read(&self, encoding: Encoding, at: Cursor, until: u64) -> Read {
        let ring = self.ring.read();
        let Some(skipped) = at.place.checked_sub(ring.first) else { return Read::Lagged };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let Some(first) = ring.entries.get(skipped) else {
            return Read::Pending;
        };
        let enough = first.start + READ_BYTES;
        let (mut frames, mut next) = (Vec::new(), at);
        for entry in ring.entries.range(skipped..) {
            if entry.start >= enough || next.place >= until {
                break;
            }
            frames.extend_from_slice(match encoding {
                Encoding::Plain => &entry.plain,
                Encoding::Zstd => &entry.packed,
            });
            next = Cursor { place: next.place + 1, revision: entry.revision };
        }
        Read::Frames(frames, next)
    }

    fn wake(&self) {
        for waker in self.readers.lock().values() {
            waker.wake();
        }
    }
}

impl Reader {
    /// Reads at a place, and not beyond `until`, which must lie behind it. If that is [`Read::Pending`],
    /// `waker` is woken by the next append.
    pub fn poll(&self, at: Cursor, until: u64, waker: &Waker) -> Read {
        let read = self.log.read(self.encoding, at, until);
        if read != Read::Pending {
            return read;
        }
        self.waker.register(waker);
        // Something may have been appended just before the registration.
        self.log.read(self.encoding, at, until)
    }

    /// How it reads.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Wakes whoever polled last.
    pub fn waker(&self) -> Arc<AtomicWaker> {
        self.waker.clone()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.log.readers.lock().remove(&self.id);
    }
}

impl Ring {
    fn bytes(&self) -> u64 {
        self.written - self.entries.front().map_or(self.written, |entry| entry.start)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn entry(text: &'static str) -> Vec<Bytes> {
        vec![Bytes::from_static(text.as_bytes())]
    }

    /// Reads at a place: the frames and the next place, if there are any.
    fn poll(reader: &Reader, place: u64) -> Read {
        reader.poll(Cursor { place, revision: 0 }, u64::MAX, Waker::noop())
    }

    #[test]
    fn readers_see_every_frame_once_and_in_order() {
        let log = FrameLog::new(Limits::default());
        let reader = log.reader(Encoding::Plain);
        log.append(entry("a"), 7);
        log.append([entry("b"), entry("c")].concat(), 8);
        let Read::Frames(frames, next) = poll(&reader, 0) else { panic!("no frames") };
        assert_eq!((frames.concat(), next), (b"abc".to_vec(), Cursor { place: 2, revision: 8 }));
        assert_eq!(poll(&reader, next.place), Read::Pending);
        assert_eq!(log.end(), 2);
    }

    #[test]
    fn a_reader_takes_a_bounded_amount_at_once() {
        let log = FrameLog::new(Limits::default());
        let reader = log.reader(Encoding::Plain);
        for _ in 0..5 {
            log.append(vec![vec![0; 100 << 10].into()], 7);
        }
        assert!(
            matches!(poll(&reader, 0), Read::Frames(frames, next) if (frames.len(), next.place) == (3, 3))
        );
        assert!(
            matches!(poll(&reader, 3), Read::Frames(frames, next) if (frames.len(), next.place) == (2, 5))
        );
    }

    #[test]
    fn a_reader_can_be_stopped_at_a_place() {
        let log = FrameLog::new(Limits::default());
        let reader = log.reader(Encoding::Plain);
        for text in ["a", "b", "c"] {
            log.append(entry(text), 7);
        }
        let start = Cursor { place: 0, revision: 0 };
        let Read::Frames(frames, next) = reader.poll(start, 2, Waker::noop()) else { panic!("no frames") };
        assert_eq!((frames.concat(), next.place), (b"ab".to_vec(), 2));
    }

    #[test]
    fn a_waiting_reader_is_woken() {
        let log = FrameLog::new(Limits::default());
        let reader = log.reader(Encoding::Plain);
        let count = Arc::new(Count::default());
        assert_eq!(
            reader.poll(Cursor { place: 0, revision: 0 }, u64::MAX, &Waker::from(count.clone())),
            Read::Pending
        );
        log.append(entry("a"), 7);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_ring_is_bounded_and_tells_who_fell_behind() {
        let log = FrameLog::new(Limits { bytes: 4, entries: 3 });
        let reader = log.reader(Encoding::Plain);
        for text in ["a", "b", "c", "d"] {
            log.append(entry(text), 7);
        }
        assert_eq!(log.usage(), (3, 3));
        assert_eq!(poll(&reader, 0), Read::Lagged);
        assert_eq!(log.bytes_since(0), None);
        assert_eq!(log.bytes_since(2), Some(2));
        log.append(entry("a large one"), 7);
        assert_eq!(log.usage(), (1, 11));
        assert_eq!(poll(&reader, 3), Read::Lagged);
        assert!(matches!(poll(&reader, 4), Read::Frames(..)));
    }

    #[test]
    fn a_reader_that_is_dropped_leaves_nothing() {
        let log = FrameLog::new(Limits::default());
        let readers = [log.reader(Encoding::Plain), log.reader(Encoding::Plain)];
        assert_eq!(log.readers(), 2);
        drop(readers);
        assert_eq!(log.readers(), 0);
    }
}
