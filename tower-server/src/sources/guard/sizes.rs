//! How large a set of endpoints is, and how large it was within a window of time.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Losing so many is never a mass loss, unless nothing is left.
const ALWAYS_ALLOWED: u64 = 5;

/// The sizes of one set: of a service, or of a whole source.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// Endpoints that are registered, and in service.
    size: u64,
    /// How many have left in ways that are no loss: announced, or accepted. It only grows, so that the sum
    /// of the two falls by losses alone.
    excused: u64,
    /// Former sums of the two, and until when they were true. Falling: the first is the largest.
    peaks: VecDeque<(Instant, u64)>,
}

/// How a set differs from the largest one within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shrink {
    /// How many there were, without those that have left in ways that are no loss.
    pub(super) largest: u64,
    /// How many are left.
    pub(super) left: u64,
}

impl Shrink {
    /// Whether that is more than services lose by themselves.
    pub(super) fn is_beyond_limit(self) -> bool {
        let lost = self.lost();
        lost > 0 && (self.left == 0 || (lost > ALWAYS_ALLOWED && lost * 2 > self.largest))
    }

    /// How many were lost, and not replaced.
    pub(super) fn lost(self) -> u64 {
        self.largest.saturating_sub(self.left)
    }
}

impl Sizes {
    /// One more is there.
    pub(super) fn grow(&mut self) {
        self.size += 1;
    }

    /// One was lost.
    pub(super) fn lose(&mut self, now: Instant) {
        let sum = self.sum();
        while self.peaks.back().is_some_and(|(_, peak)| *peak <= sum) {
            self.peaks.pop_back();
        }
        // Of several at the same time the first says it all.
        if self.peaks.back().is_none_or(|(until, _)| *until != now) {
            self.peaks.push_back((now, sum));
        }
        self.size -= 1;
    }

    /// One that is there leaves service, by its own announcement.
    pub(super) fn announce(&mut self) {
        self.size -= 1;
        self.excused += 1;
    }

    /// One that was lost before counts as lost no more.
    pub(super) fn excuse(&mut self) {
        self.excused += 1;
    }

    /// What is there now is what there should be.
    pub(super) fn accept(&mut self) {
        self.peaks.clear();
    }

    /// The difference to the largest set within the window, or since what left the window is `pinned`.
    pub(super) fn shrink(&mut self, now: Instant, window: Duration, pinned: bool) -> Shrink {
        while !pinned
            && self.peaks.front().is_some_and(|(until, _)| now.saturating_duration_since(*until) > window)
        {
            self.peaks.pop_front();
        }
        let peak = self.peaks.front().map_or(0, |(_, peak)| *peak).max(self.sum());
        Shrink { largest: peak - self.excused, left: self.size }
    }

    /// Whether nothing needs to be remembered.
    pub(super) fn is_forgettable(&self) -> bool {
        self.size == 0 && self.peaks.is_empty()
    }

    fn sum(&self) -> u64 {
        self.size + self.excused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(90);

    #[test]
    fn the_limit_is_half_but_five_and_everything() {
        for (largest, left, beyond) in [
            (1, 1, false),
            (1, 0, true),
            (5, 1, false),
            (6, 1, false),
            (6, 0, true),
            (7, 1, true),
            (12, 6, false),
            (12, 5, true),
            (13, 7, false),
            (13, 6, true),
            (1000, 500, false),
            (1000, 499, true),
            (0, 0, false),
            (3, 4, false),
        ] {
            assert_eq!(Shrink { largest, left }.is_beyond_limit(), beyond, "{largest} to {left}");
        }
    }

    #[test]
    fn a_size_counts_as_long_as_it_was_true_within_the_window() {
        let start = tower_common::clock::monotonic();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut sizes = Sizes::default();
        (0..10).for_each(|_| sizes.grow());
        // True for a long time before, so it is true at the window's beginning too.
        (0..4).for_each(|_| sizes.lose(at(1000)));
        assert_eq!(sizes.shrink(at(1090), WINDOW, false), Shrink { largest: 10, left: 6 });
        sizes.lose(at(1050));
        assert_eq!(sizes.shrink(at(1091), WINDOW, true).largest, 10, "pinned");
        assert_eq!(sizes.shrink(at(1091), WINDOW, false), Shrink { largest: 6, left: 5 });
        assert_eq!(sizes.shrink(at(1141), WINDOW, false), Shrink { largest: 5, left: 5 });
    }

    #[test]
    fn what_was_announced_or_accepted_is_no_loss() {
        let now = tower_common::clock::monotonic();
        let mut sizes = Sizes::default();
        (0..10).for_each(|_| sizes.grow());
        (0..4).for_each(|_| sizes.announce());
        assert_eq!(sizes.shrink(now, WINDOW, false), Shrink { largest: 6, left: 6 });
        (0..3).for_each(|_| sizes.lose(now));
        sizes.excuse();
        assert_eq!(sizes.shrink(now, WINDOW, false), Shrink { largest: 5, left: 3 });
        sizes.grow();
        assert_eq!(sizes.shrink(now, WINDOW, false).lost(), 1, "a replacement offsets a loss");
        sizes.accept();
        assert_eq!(sizes.shrink(now, WINDOW, false), Shrink { largest: 4, left: 4 });
    }
}
