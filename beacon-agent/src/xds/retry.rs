//! Sending again what a client's host could not take, ever later.

use std::time::{Duration, Instant};

/// The first wait, and the longest of all. Each is twice the one before.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// When the same is to be sent again. A port may be free by then, a file be there.
#[derive(Debug, Default)]
pub(super) enum Retry {
    /// There is nothing to be sent again.
    #[default]
    No,
    /// To be planned, as soon as it is known what time it is.
    Wanted { failures: u32 },
    /// Planned.
    At { failures: u32, at: Instant },
    /// It has been sent, and is not answered.
    Tried { failures: u32 },
}

impl Retry {
    /// The host could not take it.
    pub(super) fn failed(&mut self) {
        let failures = match *self {
            Self::No => 0,
            Self::Wanted { failures } | Self::At { failures, .. } | Self::Tried { failures } => failures,
        };
        *self = Self::Wanted { failures };
    }

    /// Whether it is time; each attempt once.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        match *self {
            Self::Wanted { failures } => {
                let wait = FIRST.saturating_mul(1 << failures.min(10)).min(LONGEST);
                *self = Self::At { failures: failures + 1, at: now + wait };
                false
            }
            Self::At { failures, at } if at <= now => {
                *self = Self::Tried { failures };
                true
            }
            Self::No | Self::At { .. } | Self::Tried { .. } => false,
        }
    }

    /// Whether nothing is to be sent again.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Self::No => true,
            Self::Wanted { .. } | Self::At { .. } | Self::Tried { .. } => false,
        }
    }

    /// When to ask again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::At { at, .. } => Some(*at),
            Self::No | Self::Wanted { .. } | Self::Tried { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_minute() {
        let mut now = tower_common::clock::monotonic();
        let mut retry = Retry::No;
        assert!(!retry.is_due(now));
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            retry.failed();
            assert!(!retry.is_due(now));
            assert_eq!(retry.deadline(), Some(now + Duration::from_secs(seconds)));
            now += Duration::from_secs(seconds);
            assert!(retry.is_due(now) && !retry.is_due(now));
        }
    }
}
