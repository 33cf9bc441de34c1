//! One resource type on one stream: what is wanted, what was told, and what may be sent now.
//!
//! The types on an aggregated stream know nothing of each other (xDS protocol, "Aggregated Discovery
//! Service"); what has to keep an order between them is in the session. The rules that differ between
//! state of the world and delta are in [`super::sotw`] and [`super::delta`].

use std::{
    cmp::Ordering,
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use tower_common::{
    resource::Version,
    view::{Layer, XdsResource},
};
use tower_proto::envoy::google::rpc::Status;

use super::{
    kind::ResourceType,
    ledger::{Entry, Ledger, Nonce},
    protocol::{Answer, Protocol},
    subscription::{Change, Subscription},
};

/// What one message holds at most, unless a single resource is larger. Receivers of gRPC accept 4 MiB by
/// default.
pub(super) const MESSAGE_BYTES: usize = 3 << 20;

/// One resource type on one stream.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) kind: ResourceType,
    pub(super) subscription: Subscription,
    pub(super) ledger: Ledger,
    /// Names to be sent whether the client has them or not: it asked for them, or has to see them again.
    pub(super) due: BTreeSet<Arc<str>>,
    /// An answer is due even if there is nothing: a wildcard was asked for, or what a client has from an
    /// earlier stream may be gone.
    pub(super) must_answer: bool,
    /// Something happened since nothing was found to send.
    pub(super) stirred: bool,
    /// What was there when it was looked at last, and whether absence was known.
    seen: Option<(Layer, bool)>,
    /// What the client knows, except for names that are due: only what differs from it can be news.
    agreed: Option<Layer>,
    held_since: Option<Instant>,
}

/// What is to go into one message.
#[derive(Debug, Default)]
pub(super) struct Selection {
    resources: Vec<XdsResource>,
    removed: Vec<Arc<str>>,
    /// What did not fit, and goes into the next.
    left_over: Vec<Arc<str>>,
    whole: bool,
    bytes: usize,
}

/// One message, and what it is for the client.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) kind: ResourceType,
    pub(super) nonce: Nonce,
    pub(super) version: Version,
    pub(super) resources: Vec<XdsResource>,
    pub(super) removed: Vec<Arc<str>>,
    /// Resources that are new to the client, or perhaps are.
    pub(super) refreshed: BTreeSet<Arc<str>>,
}

/// Under which circumstances a message is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    /// Whether absence is known, and may be told.
    pub(super) complete: bool,
}

impl Channel {
    /// A type that was not asked for yet.
    pub(super) fn new(kind: ResourceType) -> Self {
        Self {
            kind,
            subscription: Subscription::new(kind.is_whole()),
            ledger: Ledger::new(),
            due: BTreeSet::new(),
            must_answer: false,
            stirred: true,
            seen: None,
            agreed: None,
            held_since: None,
        }
    }

    /// Takes note of a change of what the client wants. What it does not want any more it forgets, so it
    /// is to be sent again should it be wanted again.
    pub(super) fn apply(&mut self, change: &Change) {
        let subscription = &self.subscription;
        if change.wildcard_ended || !change.dropped.is_empty() {
            self.ledger.retain(|name| subscription.covers(name));
            self.due.retain(|name| subscription.covers(name));
        }
        let waiting = self.must_answer && !change.wildcard_ended && !subscription.is_empty();
        self.must_answer = waiting || change.wildcard_asked;
        self.due.extend(change.asked.iter().cloned());
        if !change.is_empty() {
            self.agreed = None;
        }
    }

    /// Takes note of the answer to a response. `None` if the nonce is not of one that waits for it.
    pub(super) fn settle(&mut self, nonce: &str, error: Option<Status>) -> Option<Answer> {
        let number = nonce.parse().ok()?;
        let version = self.ledger.settle(number, error.is_none(), self.subscription.names())?;
        let (nonce, version) = (nonce.to_owned(), version.to_string());
        Some(match error {
            None => Answer::Ack { nonce, version },
            Some(status) => Answer::Nack { nonce, version, status },
        })
    }

    /// Has these names sent, as far as they are wanted one by one.
    pub(super) fn push(&mut self, names: &BTreeSet<Arc<str>>) {
        let wanted = self.subscription.names();
        let before = self.due.len();
        self.due.extend(names.intersection(wanted).cloned());
        self.stirred |= self.due.len() != before;
    }

    /// The next message, if one is to be sent now. While a response waits for its answer, newer content
    /// is held back, and then only its newest state goes out; what the client asked for never is.
    pub(super) fn collect<P: Protocol>(
        &mut self,
        layer: &Layer,
        moment: Moment,
        nonce: Nonce,
    ) -> Option<Batch> {
        self.look(layer, moment.complete);
        if !self.stirred {
            return None;
        }
        if self.must_answer && !moment.complete {
            // Not yet loaded is never told as empty.
            self.held_since = None;
            return None;
        }
        let free = !self.ledger.is_waiting() || self.held_until().is_some_and(|end| end <= moment.now);
        // The answer to a wildcard is its content.
        let news = (free || self.must_answer).then(|| self.news::<P>(layer));
        let selection = P::select(self, layer, moment.complete, news.as_ref());
        if news.is_some() {
            self.held_since = None;
            self.agreed = Some(layer.clone());
        }
        if let Some(selection) = selection {
            return Some(self.commit(selection, layer, nonce));
        }
        if free || self.kind.longest_hold().is_none() {
            // If not free: the answer that it waits for stirs it again.
            self.stirred = false;
        } else if self.held_since.is_none() {
            if self.news::<P>(layer).is_empty() {
                self.stirred = false;
            } else {
                self.held_since = Some(moment.now);
            }
        }
        None
    }

    /// The names of which the client knows something else than what is.
    fn news<P: Protocol>(&mut self, layer: &Layer) -> BTreeSet<Arc<str>> {
        let Self { subscription, ledger, agreed, .. } = self;
        let differs = |name: &&Arc<str>| ledger.differs(name, layer.get(*name));
        let mut news: BTreeSet<Arc<str>> = match &agreed {
            Some(agreed) => differences(agreed, layer)
                .filter(|name| subscription.covers(name))
                .filter(differs)
                .cloned()
                .collect(),
            None if subscription.wildcard() => {
                layer.keys().chain(ledger.names()).filter(differs).cloned().collect()
            }
            None => subscription.names().iter().filter(differs).cloned().collect(),
        };
        if !P::tells_removals(self.kind) {
            // The client keeps what it is not told of. What is created again is sent again.
            news.retain(|name| {
                let there = layer.contains_key(name);
                if !there {
                    ledger.forget(name);
                }
                there
            });
        }
        news
    }

    fn look(&mut self, layer: &Layer, complete: bool) {
        let same = |(seen, known): &(Layer, bool)| Arc::ptr_eq(seen, layer) && *known == complete;
        if !self.seen.as_ref().is_some_and(same) {
            self.seen = Some((layer.clone(), complete));
            self.stirred = true;
        }
    }

    /// When held content goes out, answered or not.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let limit: Duration = self.kind.longest_hold()?;
        self.held_since.map(|since| since + limit)
    }

    /// The names that are due, and with `news` these and what is doubtful. What was rejected is not sent
    /// along with a mere answer, which it might spoil.
    pub(super) fn names_to_send<'a>(
        &'a self,
        news: Option<&'a BTreeSet<Arc<str>>>,
    ) -> BTreeSet<&'a Arc<str>> {
        let mut names: BTreeSet<&Arc<str>> = self.due.iter().collect();
        let asked = names.len();
        names.extend(news.into_iter().flatten());
        if names.len() > asked {
            names.extend(self.ledger.doubtful());
        }
        names
    }

    /// The resources that are wanted and exist, by name.
    pub(super) fn wanted<'a>(&'a self, layer: &'a Layer) -> impl Iterator<Item = &'a XdsResource> {
        let everything = self.subscription.wildcard();
        let all = everything.then(|| layer.values()).into_iter().flatten();
        let names = (!everything).then(|| self.subscription.names()).into_iter().flatten();
        all.chain(names.filter_map(|name| layer.get(name)))
    }

    /// A version of all that the client is to have: derived from content alone, so it is the same on
    /// every Beacon, and after a restart.
    fn version(&self, layer: &Layer) -> Version {
        Version::of_parts(self.wanted(layer).flat_map(|resource| {
            // No name contains the byte 0xff, which UTF-8 does not use.
            [resource.name.as_bytes(), &[0xff], resource.version.0.as_slice()]
        }))
    }

    fn commit(&mut self, selection: Selection, layer: &Layer, nonce: Nonce) -> Batch {
        let version = self.version(layer);
        let Selection { resources, removed, left_over, whole, .. } = selection;
        if whole {
            self.agreed = Some(layer.clone());
        } else if self.agreed.as_ref().is_some_and(|agreed| !Arc::ptr_eq(agreed, layer)) {
            // The client has something newer of these names, and of others it has not.
            self.agreed = None;
        }
        let refreshed = self.ledger.record(&Entry {
            nonce,
            version,
            resources: &resources,
            removed: &removed,
            whole,
            complete: left_over.is_empty(),
        });
        for name in resources.iter().map(|resource| &resource.name).chain(&removed) {
            self.due.remove(name);
        }
        self.must_answer = false;
        self.due.extend(left_over);
        Batch { kind: self.kind, nonce, version, resources, removed, refreshed }
    }
}

impl Batch {
    /// Appends to the body of each resource.
    pub(super) fn append(&mut self, suffix: &[u8]) {
        if !suffix.is_empty() {
            for resource in &mut self.resources {
                resource.body = [&resource.body, suffix].concat().into();
            }
        }
    }
}

impl Selection {
    /// Everything, in one message whatever its size: what is not in it is gone.
    pub(super) fn whole(resources: Vec<XdsResource>) -> Self {
        Self { resources, whole: true, ..Self::default() }
    }

    /// Adds a resource, or the fact that there is none of this name, if there is room.
    pub(super) fn add(&mut self, name: &Arc<str>, resource: Option<&XdsResource>) {
        // Beside the body: the name, and an upper bound for type URL, version and field keys.
        const OVERHEAD: usize = 160;
        let bytes = resource.map_or(0, |resource| resource.body.len() + OVERHEAD) + name.len() + 4;
        let empty = self.resources.is_empty() && self.removed.is_empty();
        if !self.left_over.is_empty() || (!empty && self.bytes + bytes > MESSAGE_BYTES) {
            self.left_over.push(name.clone());
            return;
        }
        self.bytes += bytes;
        match resource {
            Some(resource) => self.resources.push(resource.clone()),
            None => self.removed.push(name.clone()),
        }
    }

    /// `None` if nothing was added.
    pub(super) fn non_empty(self) -> Option<Self> {
        let empty = self.resources.is_empty() && self.removed.is_empty();
        (!empty).then_some(self)
    }
}

/// The names that are in one layer only, or have other content.
fn differences<'a>(old: &'a Layer, new: &'a Layer) -> impl Iterator<Item = &'a Arc<str>> {
    let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                // Most names are the very same: a layer is made from the one before.
                (Some((old, _)), Some((new, _))) if Arc::ptr_eq(old, new) => Ordering::Equal,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            match order {
                Ordering::Less => return olds.next().map(|(name, _)| name),
                Ordering::Greater => return news.next().map(|(name, _)| name),
                Ordering::Equal => {
                    let ((_, old), (name, new)) = (olds.next()?, news.next()?);
                    if old.version != new.version {
                        return Some(name);
                    }
                }
            }
        }
    })
}
