//! The Towers, one after the other.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The Towers that the Beacon was given, and which is next.
#[derive(Debug)]
pub(super) struct Towers {
    names: Vec<String>,
    next: AtomicUsize,
}

impl Towers {
    /// Beacons spread over the Towers by their ids.
    pub(super) fn new(names: Vec<String>, node_id: &str) -> Self {
        let start = usize::from(blake3::hash(node_id.as_bytes()).as_bytes()[0]);
        Self { names, next: AtomicUsize::new(start) }
    }

    /// The next; after the last comes the first.
    pub(super) fn next(&self) -> &str {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.names[number % self.names.len()]
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn() {
        let towers = Towers::new(["a", "b", "c"].map(str::to_owned).into(), "host");
        let turns: Vec<&str> = (0..6).map(|_| towers.next()).collect();
        assert_eq!(turns[..3], turns[3..]);
        let mut each = turns[..3].to_vec();
        each.sort_unstable();
        assert_eq!(each, ["a", "b", "c"]);
    }
}
