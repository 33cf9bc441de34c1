//! What one client has of the releases that its host holds.
//!
//! A stream may be of one type only, so what it says of a release is put together with what the client's
//! other streams say, in [`super::clients`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tower_common::view::Held;

use super::{clients::Reason, kind::ResourceType};

/// Parts of a release, by their place in its list. Those beyond the last bit share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Parts(u128);

impl Parts {
    /// So many parts.
    pub(super) fn first(count: usize) -> Self {
        Self(if count >= 128 { u128::MAX } else { (1 << count) - 1 })
    }

    /// All of these but one.
    pub(super) fn without(self, part: usize) -> Self {
        Self(self.0 & !(1 << part.min(127)))
    }

    /// Those that are in either.
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of these are in the other.
    pub(super) fn are_in(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Those that are not in the other.
    pub(super) fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a stream's client has of a service.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// What it should have.
    pub(super) held: Arc<Held>,
    /// What it has asked for on this stream.
    pub(super) asked: Parts,
    /// What it is known to have accepted.
    pub(super) accepted: Parts,
    /// What it is not to have.
    pub(super) exempt: Parts,
    /// Why it does not have something.
    pub(super) trouble: Option<Trouble>,
}

/// Why a client does not have something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) reason: Reason,
    pub(super) kind: ResourceType,
    pub(super) name: Arc<str>,
    /// What the client says.
    pub(super) message: Arc<str>,
}

/// What has changed of a client's standings: by service, `None` if that has no assignment any more.
pub(super) type Changes = Vec<(Arc<str>, Option<Standing>)>;

/// A client's standings, kept in step.
#[derive(Debug, Default)]
pub(super) struct Standings {
    held: Arc<BTreeMap<Arc<str>, Arc<Held>>>,
    by_service: BTreeMap<Arc<str>, Standing>,
    /// Services of which the client does not have all that it is to have.
    open: BTreeSet<Arc<str>>,
}

impl Standings {
    /// What has changed, as the host holds this now. `look` says how a service stands, and whether that is
    /// final until something else is to be had.
    pub(super) fn update(
        &mut self,
        held: &Arc<BTreeMap<Arc<str>, Arc<Held>>>,
        look: impl Fn(&Arc<str>, &Arc<Held>) -> (Standing, bool),
    ) -> Changes {
        let mut changes = Changes::new();
        if !Arc::ptr_eq(&self.held, held) {
            for service in self.held.keys().filter(|service| !held.contains_key(*service)) {
                self.open.remove(service);
                self.by_service.remove(service);
                changes.push((service.clone(), None));
            }
            let same = |service: &Arc<str>, now: &Arc<Held>| {
                self.held.get(service).is_some_and(|before| Arc::ptr_eq(before, now))
            };
            let new = held.iter().filter(|(service, now)| !same(service, now));
            self.open.extend(new.map(|(service, _)| service.clone()));
            self.held = held.clone();
        }
        let (held, by_service) = (&self.held, &mut self.by_service);
        self.open.retain(|service| {
            let Some(held) = held.get(service) else { return false };
            let (standing, is_final) = look(service, held);
            if by_service.get(service) != Some(&standing) {
                by_service.insert(service.clone(), standing.clone());
                changes.push((service.clone(), Some(standing)));
            }
            !is_final
        });
        changes
    }

    /// Everything is to be looked at again: the client asks for other things than before.
    pub(super) fn reopen(&mut self) {
        self.open.extend(self.held.keys().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_beyond_the_last_bit_share_it() {
        let all = Parts::first(300);
        assert!(all.without(200).without(3).minus(all.without(127).without(3)).is_empty());
        assert!(!all.are_in(all.without(299)) && all.without(299).are_in(all));
        let three = Parts::first(3);
        assert_eq!(three.without(0).or(three.without(1)), three);
        assert!(Parts::first(0).is_empty() && Parts::first(128) == Parts::first(129));
    }

    #[test]
    fn only_what_is_open_is_looked_at() {
        let held = |services: &[&str]| -> Arc<BTreeMap<Arc<str>, Arc<Held>>> {
            Arc::new(services.iter().map(|&name| (name.into(), Arc::new(Held::default()))).collect())
        };
        let look = |is_final: bool| {
            move |_: &Arc<str>, held: &Arc<Held>| {
                let none = Parts::default();
                let standing =
                    Standing { held: held.clone(), asked: none, accepted: none, exempt: none, trouble: None };
                (standing, is_final)
            }
        };
        let mut standings = Standings::default();
        let both = held(&["a", "b"]);
        assert_eq!(standings.update(&both, look(false)).len(), 2);
        assert_eq!(standings.open.len(), 2);
        assert!(standings.update(&both, look(true)).is_empty(), "nothing is different");
        assert!(standings.open.is_empty());
        standings.reopen();
        assert!(standings.update(&both, look(true)).is_empty());
        let one = Arc::new([("a".into(), both["a"].clone())].into());
        let changes = standings.update(&one, |_, _| panic!("a is as it was"));
        assert_eq!(changes, [("b".into(), None)]);
    }
}
