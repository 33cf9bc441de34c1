//! Never back in time: how far what a Tower says of a source may be followed.
//!
//! A receiver remembers the highest position of each source. Whatever Tower it comes to, it takes nothing
//! from an older one. Content is not a function of the position alone (one Tower may hold a removal that
//! another lets through), so at an equal position what is held is kept, even if that Tower lacks it.

use tower_proto::v1;

use crate::store::is_complete;

/// How far what a Tower says of a source is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In everything.
    Follow,
    /// In what it has, but its lack of something says nothing.
    Keep,
    /// In nothing: it is behind, or does not know.
    Ignore,
}

/// How far `offered`, what a Tower says of a source, is followed by one who holds it as `held`.
pub fn standing(held: Option<&v1::SourceStatus>, offered: &v1::SourceStatus) -> Standing {
    let Some(held) = held.filter(|held| is_complete(held.state())) else { return Standing::Follow };
    if !is_complete(offered.state()) {
        return Standing::Ignore;
    }
    let Some(held) = held.position.as_ref().filter(|held| !held.incarnation.is_empty()) else {
        return Standing::Follow;
    };
    let offered_position = offered.position.clone().unwrap_or_default();
    if offered_position.incarnation != held.incarnation {
        // Another history. Whoever has adopted it reads it; whoever does not read anything, or has found
        // nothing that could be one, is not asked.
        let adopted = offered.state() == v1::SourceState::Live && !offered_position.incarnation.is_empty();
        return if adopted { Standing::Follow } else { Standing::Ignore };
    }
    match offered_position.index.cmp(&held.index) {
        std::cmp::Ordering::Less => Standing::Ignore,
        std::cmp::Ordering::Equal => Standing::Keep,
        std::cmp::Ordering::Greater => Standing::Follow,
    }
}

#[cfg(test)]
mod tests {
    use v1::SourceState::{Live, Loading, Lost, Stale};

    use super::*;

    fn status(state: v1::SourceState, incarnation: &str, index: u64) -> v1::SourceStatus {
        let position = v1::Position { incarnation: incarnation.into(), index, ..Default::default() };
        v1::SourceStatus { state: state.into(), position: Some(position), ..Default::default() }
    }

    #[test]
    fn a_source_never_goes_back() {
        let held = status(Live, "a", 10);
        let check = |offered: v1::SourceStatus, expected| {
            assert_eq!(standing(Some(&held), &offered), expected, "{offered:?}");
        };
        check(status(Live, "a", 11), Standing::Follow);
        check(status(Stale, "a", 11), Standing::Follow);
        check(status(Live, "a", 10), Standing::Keep);
        check(status(Live, "a", 9), Standing::Ignore);
        check(status(Loading, "a", 99), Standing::Ignore);
        check(status(Live, "b", 1), Standing::Follow);
        check(status(Stale, "b", 99), Standing::Ignore);
        check(status(Lost, "b", 99), Standing::Ignore);
        check(status(Live, "", 0), Standing::Ignore);
    }

    #[test]
    fn whoever_holds_nothing_follows() {
        for offered in [status(Loading, "", 0), status(Live, "a", 1), status(Lost, "a", 1)] {
            assert_eq!(standing(None, &offered), Standing::Follow);
            assert_eq!(standing(Some(&status(Loading, "", 0)), &offered), Standing::Follow);
        }
        assert_eq!(standing(Some(&status(Live, "", 0)), &status(Live, "a", 1)), Standing::Follow);
    }
}
