//! The weights that entries of a place give to the endpoints of all entries there.
//!
//! What an endpoint weighs thus follows from its own entry, and from others; if one of those changes, all
//! entries of the place are claimed again, once per transaction.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use tower_proto::v1::endpoint::State;

use crate::sources::{
    address::Host,
    format::{Factor, Registration, Select, WeightRule},
};

/// The rules of all places that have any.
#[derive(Debug, Default)]
pub(super) struct Weights {
    places: HashMap<Arc<str>, Rules>,
    /// Places whose rules changed, and at which position.
    changed: BTreeMap<Arc<str>, u64>,
}

#[derive(Debug, Default)]
struct Rules {
    /// By the path of the entry.
    of_entries: BTreeMap<Arc<str>, Vec<WeightRule>>,
    /// All of them, multiplied.
    product: HashMap<Select, Factor>,
}

impl Weights {
    /// An entry of a place has these rules now.
    pub(super) fn set(&mut self, place: &Arc<str>, path: &Arc<str>, rules: &[WeightRule], index: u64) {
        let held = self.places.get(place).and_then(|held| held.of_entries.get(path));
        if held.map_or(&[][..], Vec::as_slice) == rules {
            return;
        }
        let held = self.places.entry(place.clone()).or_default();
        if rules.is_empty() {
            held.of_entries.remove(path);
        } else {
            held.of_entries.insert(path.clone(), rules.to_vec());
        }
        let changed = self.changed.entry(place.clone()).or_default();
        *changed = index.max(*changed);
    }

    /// The places whose rules changed since the last call, each with the position of that.
    pub(super) fn take_changed(&mut self) -> BTreeMap<Arc<str>, u64> {
        let changed = std::mem::take(&mut self.changed);
        for place in changed.keys() {
            let Some(rules) = self.places.get_mut(place) else { continue };
            rules.product.clear();
            for rule in rules.of_entries.values().flatten() {
                let product = rules.product.entry(rule.select.clone()).or_insert(Factor::Times(1.0));
                *product = product.and(rule.factor);
            }
            if rules.of_entries.is_empty() {
                self.places.remove(place);
            }
        }
        changed
    }

    /// A registration of the entry at `path`, weighed by the rules of its place. One that is excluded drains:
    /// whoever wrote the rule wants it to get nothing, and has not said that it is dead.
    pub(super) fn weigh<'a>(
        &self,
        place: &str,
        path: &str,
        address: IpAddr,
        registration: &'a Registration,
    ) -> Cow<'a, Registration> {
        let Some(rules) = self.places.get(place) else { return Cow::Borrowed(registration) };
        match rules.factor(path, address, registration) {
            None => Cow::Borrowed(registration),
            Some(Factor::Times(factor)) => {
                let weight = (registration.weight.unwrap_or(1.0) * factor).clamp(f64::MIN, f64::MAX);
                Cow::Owned(Registration { weight: Some(weight), ..registration.clone() })
            }
            Some(Factor::Excluded) => match registration.state {
                State::Down | State::NotReady | State::Draining => Cow::Borrowed(registration),
                State::Unspecified | State::Up | State::Degraded => {
                    Cow::Owned(Registration { state: State::Draining, ..registration.clone() })
                }
            },
        }
    }
}

impl Rules {
    fn factor(&self, path: &str, address: IpAddr, registration: &Registration) -> Option<Factor> {
        let member = path.rsplit('/').next().unwrap_or(path);
        let by_name = matches!(registration.host, Host::Name(_))
            .then(|| Select::Address(registration.host.clone(), registration.port));
        [
            Some(Select::Member(member.into())),
            Some(Select::Address(Host::Ip(address), registration.port)),
            by_name,
            registration.shard().map(Select::Shard),
        ]
        .into_iter()
        .flatten()
        .filter_map(|select| self.product.get(&select).copied())
        .reduce(Factor::and)
    }
}
