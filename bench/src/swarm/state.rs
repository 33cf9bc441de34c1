//! The stores of thousands of Beacons in the room of one.
//!
//! Beacons that are in the same state and receive the same delivery are in the same state afterwards. So a
//! state is shared by all who are in it, and what a delivery leads to is found out once, by applying it to a
//! real [`Store`] with the Beacon's own code. There is one store: it is in the state that was needed last, and
//! the others know how they differ from the next one on the way to it. (Baker, "Shallow binding makes
//! functional arrays fast", 1991.)

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    rc::{Rc, Weak},
};

use prost::Message;
use tower_common::{
    delivery::{Delivery, Scope},
    digest::{Buckets, Digest},
    resource::ResourceKey,
    standing::Standing,
    store::{Store, Transaction, is_complete},
};
use tower_proto::v1;

/// Sources that are not followed in everything.
pub type Aside = BTreeMap<String, Standing>;

/// A delivery, put together once for all who receive it.
#[derive(Debug)]
pub struct Delivered {
    /// Which it is, among all that there ever were.
    pub id: u64,
    /// What it is everything of.
    pub scope: Scope,
    /// What to apply.
    pub transaction: Transaction,
    /// The revision on which it builds.
    pub from: u64,
    /// Tower's revision after it.
    pub to: u64,
    /// Tower's digest after it.
    pub digest: v1::Digest,
}

/// A state of a store.
#[derive(Debug)]
pub struct State {
    body: RefCell<Body>,
    digest: Digest,
    resources: usize,
    sources: Vec<v1::SourceStatus>,
    next: RefCell<Vec<(u64, Aside, Weak<State>)>>,
    /// With the revision that is in it.
    report: RefCell<Option<(u64, Rc<[u8]>)>>,
    buckets: OnceCell<v1::Buckets>,
}

#[derive(Debug)]
enum Body {
    Here(Box<Store>),
    /// What leads from the state after this one back to it.
    Before(Undo, Rc<State>),
    /// While it is moved, or dropped.
    Moving,
}

#[derive(Debug, Default)]
struct Undo {
    transaction: Transaction,
    /// The sources that there were.
    sources: Vec<String>,
}

impl State {
    /// Nothing.
    pub fn empty() -> Rc<Self> {
        Rc::new(Self::of(Store::new()))
    }

    fn of(store: Store) -> Self {
        Self {
            digest: store.digest(),
            resources: store.len(),
            sources: store.sources().cloned().collect(),
            next: RefCell::default(),
            report: RefCell::default(),
            buckets: OnceCell::new(),
            body: RefCell::new(Body::Here(Box::new(store))),
        }
    }

    /// The digest of its content.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.resources
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.resources == 0
    }

    /// What is known of a source.
    pub fn source(&self, id: &str) -> Option<&v1::SourceStatus> {
        self.sources.iter().find(|status| status.source == id)
    }

    /// How far each source has been read.
    pub fn positions(&self) -> Vec<v1::Position> {
        self.sources.iter().filter_map(|status| status.position.clone()).collect()
    }

    /// The digests of its buckets, as many as a Beacon would compare by itself, or has been asked for.
    pub fn buckets(self: &Rc<Self>, count: Option<u32>) -> v1::Buckets {
        let make = |count: u32| {
            self.come_here();
            match &*self.body.borrow() {
                Body::Here(store) => Buckets::of(store.iter(), count.min(Buckets::MAX)).to_proto(),
                Body::Before(..) | Body::Moving => v1::Buckets::default(),
            }
        };
        let usual = Buckets::count_for(self.resources);
        match count.filter(|count| *count != usual) {
            Some(count) => make(count),
            None => self.buckets.get_or_init(|| make(usual)).clone(),
        }
    }

    /// A report of this state at a revision.
    pub fn report(&self, revision: u64) -> Rc<[u8]> {
        let mut kept = self.report.borrow_mut();
        if let Some((at, bytes)) = &*kept
            && *at == revision
        {
            return bytes.clone();
        }
        let report = v1::Report {
            revision,
            positions: self.positions(),
            digest: Some(self.digest.to_proto()),
            ..Default::default()
        };
        let request = v1::WatchRequest { request: Some(v1::watch_request::Request::Report(report)) };
        let bytes: Rc<[u8]> = request.encode_to_vec().into();
        *kept = Some((revision, bytes.clone()));
        bytes
    }

    /// The state after a delivery.
    ///
    /// # Errors
    /// If that is a step back: the position of a source is lower than before.
    pub fn after(self: &Rc<Self>, delivery: &Delivered, aside: &Aside) -> Result<Rc<Self>, String> {
        let known = self.next.borrow().iter().find_map(|(id, with, next)| {
            (*id == delivery.id && with == aside).then(|| next.upgrade()).flatten()
        });
        if let Some(next) = known {
            return Ok(next);
        }
        self.come_here();
        let standing = |source: &str| aside.get(source).copied().unwrap_or(Standing::Follow);
        let next = match &delivery.scope {
            Scope::Changes => self.changed(delivery, standing),
            Scope::Everything | Scope::Sources(_) | Scope::Buckets { .. } => {
                let Body::Here(store) = &*self.body.borrow() else { return Err(NOT_HERE.to_owned()) };
                let mut store = store.clone();
                copy(delivery).apply(&mut store, standing);
                Rc::new(Self::of(*store))
            }
        };
        self.check_positions(&next)?;
        let mut nexts = self.next.borrow_mut();
        nexts.retain(|(.., next)| next.strong_count() > 0);
        nexts.push((delivery.id, aside.clone(), Rc::downgrade(&next)));
        Ok(next)
    }

    /// The state after changes: the store moves on to it, and this state keeps what leads back.
    fn changed(self: &Rc<Self>, delivery: &Delivered, standing: impl Fn(&str) -> Standing) -> Rc<Self> {
        let Body::Here(mut store) = self.body.replace(Body::Moving) else { return self.clone() };
        let undo = undo(&store, &delivery.transaction);
        copy(delivery).apply(&mut store, standing);
        let next = Rc::new(Self::of(*store));
        self.body.replace(Body::Before(undo, next.clone()));
        next
    }

    fn check_positions(&self, next: &Self) -> Result<(), String> {
        for before in self.sources.iter().filter(|status| is_complete(status.state())) {
            let after = next.source(&before.source).and_then(|status| status.position.as_ref());
            if let (Some(before), Some(after)) = (&before.position, after)
                && before.incarnation == after.incarnation
                && before.index > after.index
            {
                let (source, from, to) = (&before.source, before.index, after.index);
                return Err(format!("the position of {source} went back from {from} to {to}"));
            }
        }
        Ok(())
    }

    /// Brings the store to this state.
    fn come_here(self: &Rc<Self>) {
        let mut path = vec![self.clone()];
        while let Some(last) = path.last()
            && let Some(next) = last.next_on_the_way()
        {
            path.push(next);
        }
        while let Some(after) = path.pop()
            && let Some(before) = path.last()
        {
            let (Body::Here(mut store), Body::Before(back, _)) =
                (after.body.replace(Body::Moving), before.body.replace(Body::Moving))
            else {
                return;
            };
            let again = undo(&store, &back.transaction);
            store.apply(back.transaction);
            store.retain_sources(|source| back.sources.iter().any(|known| known == source));
            before.body.replace(Body::Here(store));
            after.body.replace(Body::Before(again, before.clone()));
        }
    }

    fn next_on_the_way(&self) -> Option<Rc<Self>> {
        match &*self.body.borrow() {
            Body::Before(_, next) => Some(next.clone()),
            Body::Here(_) | Body::Moving => None,
        }
    }
}

const NOT_HERE: &str = "the shared store is not where it should be";

/// Not one inside the other: the way may be long.
impl Drop for State {
    fn drop(&mut self) {
        let mut body = self.body.replace(Body::Moving);
        while let Body::Before(_, next) = body {
            let Some(next) = Rc::into_inner(next) else { break };
            body = next.body.replace(Body::Moving);
        }
    }
}

/// What makes a store again what it is before this transaction.
fn undo(store: &Store, transaction: &Transaction) -> Undo {
    let mut undo = Undo::default();
    let upserted = transaction.upserts.iter().map(|resource| (resource.key(), resource.origin()));
    let removed = transaction.removals.iter().map(|(key, origin)| (key, origin));
    let touched: BTreeMap<&ResourceKey, _> = upserted.chain(removed).collect();
    for (key, origin) in touched {
        match store.get(key) {
            Some(held) => undo.transaction.upserts.push(held.clone()),
            None => undo.transaction.removals.push((key.clone(), origin.clone())),
        }
    }
    undo.transaction.sources = store.sources().cloned().collect();
    undo.sources = undo.transaction.sources.iter().map(|status| status.source.clone()).collect();
    undo
}

fn copy(delivery: &Delivered) -> Delivery {
    Delivery {
        scope: delivery.scope.clone(),
        transaction: delivery.transaction.clone(),
        to_revision: delivery.to,
        digest: delivery.digest.clone(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tower_common::resource::{Origin, Resource};

    use super::*;

    fn resource(name: usize, body: usize) -> Resource {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", &name.to_string());
        Resource::new(key, Origin { source: "zk".into(), index: 1 }, Bytes::from(body.to_string()))
    }

    fn delivered(id: u64, index: u64, upserts: Vec<Resource>, removed: &[usize]) -> Delivered {
        let origin = Origin { source: "zk".into(), index };
        let position = v1::Position { source: "zk".into(), incarnation: "a".into(), index };
        let mut status =
            v1::SourceStatus { source: "zk".into(), position: Some(position), ..Default::default() };
        status.set_state(v1::SourceState::Live);
        let removals = removed.iter().map(|name| (resource(*name, 0).key().clone(), origin.clone()));
        Delivered {
            id,
            scope: Scope::Changes,
            transaction: Transaction { removals: removals.collect(), upserts, sources: vec![status] },
            from: 0,
            to: id,
            digest: v1::Digest::default(),
        }
    }

    fn digest(resources: &[(usize, usize)]) -> Digest {
        let mut digest = Digest::default();
        for (name, body) in resources {
            let resource = resource(*name, *body);
            digest.add(resource.key(), resource.version());
        }
        digest
    }

    #[test]
    fn the_same_delivery_in_the_same_state_is_the_same_state() {
        let start = State::empty();
        let add = delivered(1, 1, vec![resource(1, 1)], &[]);
        let one = start.after(&add, &Aside::new()).unwrap();
        assert!(Rc::ptr_eq(&one, &start.after(&add, &Aside::new()).unwrap()));
        let aside = Aside::from([("zk".to_owned(), Standing::Ignore)]);
        assert_eq!(start.after(&add, &aside).unwrap().digest(), Digest::default());
        assert_eq!(one.digest(), digest(&[(1, 1)]));
    }

    #[test]
    fn who_is_behind_can_go_another_way() {
        let none = Aside::new();
        let start = State::empty();
        let mut states = vec![start.after(&delivered(1, 1, vec![resource(1, 1)], &[]), &none).unwrap()];
        for id in 2..50_000_usize {
            let removed = if id % 3 == 0 { vec![id - 1] } else { vec![] };
            let next = delivered(id as u64, id as u64, vec![resource(id % 100, id)], &removed);
            let last = states.pop().unwrap();
            states.push(last.after(&next, &none).unwrap());
        }
        let newest = states.pop().unwrap();
        let other = start.after(&delivered(50_000, 2, vec![resource(1, 2), resource(2, 2)], &[]), &none);
        let other = other.unwrap();
        assert_eq!(other.digest(), digest(&[(1, 2), (2, 2)]));
        let back = other.after(&delivered(50_001, 3, vec![], &[2]), &none).unwrap();
        assert_eq!(back.digest(), digest(&[(1, 2)]));
        // And the newest goes on from where it was, although the store had been elsewhere.
        let before = newest.digest();
        let on = newest.after(&delivered(50_002, 60_000, vec![resource(7, 7)], &[]), &none).unwrap();
        let undone = on.after(&delivered(50_003, 60_001, vec![], &[7]), &none).unwrap();
        let known = newest.after(&delivered(50_004, 60_000, vec![], &[7]), &none).unwrap();
        assert_eq!(undone.digest(), known.digest());
        assert_ne!(before, on.digest());
    }

    #[test]
    fn a_position_that_goes_back_is_an_error() {
        let none = Aside::new();
        let state = State::empty().after(&delivered(1, 5, vec![resource(1, 1)], &[]), &none).unwrap();
        let error = state.after(&delivered(2, 4, vec![], &[1]), &none).unwrap_err();
        assert!(error.contains("from 5 to 4"), "{error}");
    }
}
