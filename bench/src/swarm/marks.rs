//! Changes whose arrival is measured: from the moment before they were asked for, by the clock that all
//! processes of a machine share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tower_common::{clock, resource::ResourceKey};

/// What is being waited for. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Marks(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// By what the names of the resources begin with.
    by_name: HashMap<String, usize>,
    /// The number of the first.
    first: usize,
    marks: Vec<Mark>,
}

/// One change, and who has it.
#[derive(Debug, Clone)]
pub struct Mark {
    /// When it was asked for.
    pub start: Instant,
    /// From then until a Beacon had applied it, in milliseconds; of those Beacons that are asked for it.
    pub millis: Vec<f32>,
    /// The last of all Beacons.
    pub last: Duration,
    /// How many have it.
    pub seen: usize,
}

impl Marks {
    /// Marks the endpoint of this address, as of now. Returns its number.
    pub fn set(&self, address: &str) -> usize {
        let mut inner = self.lock();
        let number = inner.first + inner.marks.len();
        inner.by_name.insert(address.to_owned(), number);
        inner.marks.push(Mark {
            start: clock::monotonic(),
            millis: Vec::new(),
            last: Duration::ZERO,
            seen: 0,
        });
        number
    }

    /// One of the marks.
    pub fn get(&self, number: usize) -> Option<Mark> {
        self.lock().get_mut(number).cloned()
    }

    /// How many Beacons have a change.
    pub fn seen(&self, number: usize) -> usize {
        self.lock().get_mut(number).map_or(0, |mark| mark.seen)
    }

    /// All marks, which are forgotten.
    pub fn take(&self) -> Vec<Mark> {
        let mut inner = self.lock();
        inner.by_name.clear();
        // A number is given once: messages that are still on their way carry those of before.
        inner.first += inner.marks.len();
        std::mem::take(&mut inner.marks)
    }

    /// Which of them are among these resources.
    pub(super) fn found<'a>(&self, keys: impl Iterator<Item = &'a ResourceKey>) -> Vec<usize> {
        let inner = self.lock();
        if inner.by_name.is_empty() {
            return Vec::new();
        }
        // The name of an endpoint is its address and its source.
        keys.filter_map(|key| inner.by_name.get(key.name.split('@').next()?)).copied().collect()
    }

    /// Notes that a Beacon has these; `each` tells whether the times of this Beacon are all kept.
    pub(super) fn note(&self, numbers: &[usize], each: bool) {
        let now = clock::monotonic();
        let mut inner = self.lock();
        for number in numbers {
            let Some(mark) = inner.get_mut(*number) else { continue };
            let took = now.saturating_duration_since(mark.start);
            mark.seen += 1;
            mark.last = mark.last.max(took);
            if each {
                #[allow(clippy::cast_possible_truncation, reason = "milliseconds need no more digits")]
                mark.millis.push((took.as_secs_f64() * 1000.0) as f32);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn get_mut(&mut self, number: usize) -> Option<&mut Mark> {
        self.marks.get_mut(number.checked_sub(self.first)?)
    }
}

#[cfg(test)]
mod tests {
    use tower_proto::v1;

    use super::*;

    #[test]
    fn a_change_is_seen_by_who_receives_its_endpoint() {
        let marks = Marks::default();
        marks.set("10.0.0.9:80");
        marks.take();
        let number = marks.set("10.0.0.1:80");
        let key = |name| ResourceKey::new("", v1::Kind::Endpoint, "web", name);
        let keys = [key("10.0.0.9:80@zk"), key("10.0.0.1:80@zk")];
        let found = marks.found(keys.iter());
        assert_eq!(found, [number]);
        marks.note(&found, true);
        marks.note(&[number - 1, number], false);
        let mark = marks.get(number).unwrap();
        assert_eq!((mark.seen, mark.millis.len()), (2, 1));
        assert_eq!(marks.take().len(), 1);
        assert!(marks.get(number).is_none());
    }
}
