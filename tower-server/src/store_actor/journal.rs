//! What changed when: which keys each revision touched, and where in its source each removed one was gone.
//! From it a Beacon that was away gets what it missed, and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use tower_common::resource::{Origin, ResourceKey};
use tower_proto::v1;

/// How long a Beacon may be away and be told only what it missed.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Keys that are remembered, at most; about 100 bytes each.
const KEPT_KEYS: usize = 1 << 20;

/// The changes of this run.
#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    keys: usize,
    /// Everything after this revision is here.
    floor: u64,
    /// By source: everything after this position is here.
    floors: BTreeMap<String, v1::Position>,
}

#[derive(Debug)]
struct Entry {
    revision: u64,
    at: Instant,
    upserted: Vec<ResourceKey>,
    removed: Vec<(ResourceKey, Origin)>,
}

impl Journal {
    /// Notes what a revision changed.
    pub(super) fn record(
        &mut self,
        revision: u64,
        at: Instant,
        upserted: Vec<ResourceKey>,
        removed: Vec<(ResourceKey, Origin)>,
    ) {
        self.keys += upserted.len() + removed.len();
        self.entries.push_back(Entry { revision, at, upserted, removed });
        while let Some(oldest) = self.entries.front()
            && (self.keys > KEPT_KEYS || at.saturating_duration_since(oldest.at) > KEPT_FOR)
        {
            self.drop_oldest();
        }
    }

    /// From this position on, everything that happens to a source is noted.
    pub(super) fn begin(&mut self, position: v1::Position) {
        self.floors.insert(position.source.clone(), position);
    }

    /// The keys that changed after a revision, if they are still known.
    pub(super) fn since_revision(&self, revision: u64) -> Option<BTreeSet<&ResourceKey>> {
        if revision < self.floor {
            return None;
        }
        let start = self.entries.partition_point(|entry| entry.revision <= revision);
        let entries = self.entries.range(start..);
        Some(
            entries
                .flat_map(|entry| entry.upserted.iter().chain(entry.removed.iter().map(|(key, _)| key)))
                .collect(),
        )
    }

    /// Where each of these keys was last gone, after a revision.
    pub(super) fn removals<'a>(
        &'a self,
        revision: u64,
        keys: &'a BTreeSet<&ResourceKey>,
    ) -> BTreeMap<&'a ResourceKey, &'a Origin> {
        let start = self.entries.partition_point(|entry| entry.revision <= revision);
        let removed = self.entries.range(start..).flat_map(|entry| &entry.removed);
        removed.filter(|(key, _)| keys.contains(key)).map(|(key, origin)| (key, origin)).collect()
    }

    /// The keys that were removed after these positions, if all removals after them are known: only then
    /// what is missing at a Beacon, and what it has too much, follows from its positions.
    pub(super) fn removed_since(
        &self,
        positions: &BTreeMap<&str, &v1::Position>,
    ) -> Option<BTreeSet<&ResourceKey>> {
        let known = |position: &v1::Position| {
            self.floors.get(&position.source).is_some_and(|floor| {
                floor.incarnation == position.incarnation && floor.index <= position.index
            })
        };
        if !positions.values().all(|position| known(position)) {
            return None;
        }
        let later = |origin: &Origin| {
            positions.get(&*origin.source).is_some_and(|position| origin.index > position.index)
        };
        let removed = self.entries.iter().flat_map(|entry| &entry.removed);
        Some(removed.filter(|(_, origin)| later(origin)).map(|(key, _)| key).collect())
    }

    fn drop_oldest(&mut self) {
        let Some(dropped) = self.entries.pop_front() else { return };
        self.keys -= dropped.upserted.len() + dropped.removed.len();
        self.floor = dropped.revision;
        for (_, origin) in dropped.removed {
            if let Some(floor) = self.floors.get_mut(&*origin.source) {
                floor.index = floor.index.max(origin.index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ResourceKey {
        ResourceKey::new("", v1::Kind::Endpoint, "web", name)
    }

    fn gone(name: &str, index: u64) -> (ResourceKey, Origin) {
        (key(name), Origin { source: "zk".into(), index })
    }

    fn position(index: u64) -> v1::Position {
        v1::Position { source: "zk".into(), incarnation: "1".into(), index }
    }

    fn names(keys: Option<BTreeSet<&ResourceKey>>) -> Option<Vec<String>> {
        keys.map(|keys| keys.iter().map(|key| key.name.to_string()).collect())
    }

    #[test]
    fn what_changed_since_a_revision_is_known_as_long_as_it_is_kept() {
        let start = tower_common::clock::monotonic();
        let mut journal = Journal::default();
        journal.record(1, start, vec![key("a")], vec![]);
        journal.record(2, start, vec![key("b")], vec![gone("a", 5)]);
        assert_eq!(names(journal.since_revision(0)).unwrap(), ["a", "b"]);
        assert_eq!(names(journal.since_revision(1)).unwrap(), ["a", "b"]);
        assert_eq!(names(journal.since_revision(2)).unwrap(), Vec::<String>::new());
        let keys = journal.since_revision(1).unwrap();
        assert_eq!(journal.removals(0, &keys).len(), 1);

        journal.record(3, start + KEPT_FOR + Duration::from_secs(1), vec![key("c")], vec![]);
        assert_eq!(names(journal.since_revision(1)), None);
        assert_eq!(names(journal.since_revision(2)).unwrap(), ["c"]);
        assert_eq!(journal.keys, 1);
    }

    #[test]
    fn removals_since_a_position_are_known_from_the_first_reading_on() {
        let start = tower_common::clock::monotonic();
        let mut journal = Journal::default();
        let since = |journal: &Journal, index| {
            let position = position(index);
            names(journal.removed_since(&BTreeMap::from([("zk", &position)])))
        };
        assert_eq!(since(&journal, 9), None, "the source has not been read");
        journal.begin(position(10));
        journal.record(1, start, vec![], vec![gone("a", 12)]);
        assert_eq!(since(&journal, 9), None);
        assert_eq!(since(&journal, 10).unwrap(), ["a"]);
        assert_eq!(since(&journal, 12).unwrap(), Vec::<String>::new());
        journal.record(2, start + KEPT_FOR * 2, vec![], vec![gone("b", 20)]);
        assert_eq!(since(&journal, 11), None, "the removal at 12 is forgotten");
        assert_eq!(since(&journal, 12).unwrap(), ["b"]);
        let other = v1::Position { incarnation: "2".into(), ..position(12) };
        assert_eq!(names(journal.removed_since(&BTreeMap::from([("zk", &other)]))), None);
    }
}
