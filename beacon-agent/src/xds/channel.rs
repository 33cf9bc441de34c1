//! One resource type on one stream: what is wanted, what was told, and what may be sent now.
//!
//! The types on an aggregated stream know nothing of each other (xDS protocol, "Aggregated Discovery
//! Service"); what has to keep an order between them is in the session. The rules that differ between
//! state of the world and delta are in [`super::sotw`] and [`super::delta`].

mod faults;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use tower_common::{
    resource::Version,
    view::{Layer, XdsResource},
};
use tower_proto::envoy::google::rpc::Status;

use self::faults::Fault;
use super::{
    blame::accuses,
    clients::{self, Reason},
    kind::ResourceType,
    ledger::{Entry, Ledger, Nonce},
    protocol::{Answer, Protocol},
    retry::Retry,
    selection::{Batch, Selection, differences},
    subscription::{Change, Subscription},
    triage::{Split, Suspects, Triage},
};

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
    /// What the client could not take.
    pub(super) triage: Triage,
    /// What was put on trial last.
    trying: Vec<Arc<str>>,
    /// Names that are not to be spoken of: the client may have them or not, and is not to be told more.
    muted: BTreeSet<Arc<str>>,
    /// A layer, and what the client may have of it.
    admitted: Option<(Layer, Layer)>,
    /// The client's host cannot take what it was sent: to be sent again later.
    retry: Retry,
    /// The client wants other things than before.
    resubscribed: bool,
    /// What the client does not take, and which is not kept from it.
    faults: BTreeMap<Arc<str>, Fault>,
    /// What the last request said of a response.
    pub(super) verdict: Option<Verdict>,
}

/// What a request said of a response.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Accepted.
    Accepted,
    /// Rejected, with the content that the client had never accepted before.
    Rejected { suspects: Suspects, message: String },
}

/// Under which circumstances a message is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    /// Whether absence is known, and may be told.
    pub(super) complete: bool,
}

impl Channel {
    /// A type that was not asked for yet, and what of it the client could not take before.
    pub(super) fn new(kind: ResourceType, triage: Triage) -> Self {
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
            triage,
            trying: Vec::new(),
            muted: BTreeSet::new(),
            admitted: None,
            retry: Retry::No,
            resubscribed: false,
            faults: BTreeMap::new(),
            verdict: None,
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
            self.resubscribed = true;
        }
    }

    /// Whether the client wants other things than when this was asked last.
    pub(super) fn take_resubscribed(&mut self) -> bool {
        std::mem::take(&mut self.resubscribed)
    }

    /// Takes note of the answer to a response. `None` if the nonce is not of one that waits for it.
    pub(super) fn settle(&mut self, nonce: &str, error: Option<Status>) -> Option<Answer> {
        let number = nonce.parse().ok()?;
        let settled = self.ledger.settle(number, error.is_none(), self.subscription.names())?;
        let (nonce, version) = (nonce.to_owned(), settled.version.to_string());
        Some(match error {
            None => {
                self.verdict = Some(Verdict::Accepted);
                Answer::Ack { nonce, version }
            }
            Some(status) => {
                let message = clients::shorten(&status.message).to_owned();
                let suspects = Suspects { resources: settled.suspects, certain: settled.certain };
                self.verdict = Some(Verdict::Rejected { suspects, message });
                Answer::Nack { nonce, version, status }
            }
        })
    }

    /// The response was accepted: what is on trial may be cleared.
    pub(super) fn accepted(&mut self) {
        if self.ledger.doubtful().next().is_none() {
            self.retry = Retry::No;
        }
        let ledger = &self.ledger;
        self.faults.retain(|name, fault| !ledger.has(name, fault.version));
        self.admitted = None;
    }

    /// The response was rejected, and one of these is to blame; all of them are set back, and tried again.
    /// `whole`: what a response leaves out is gone from the client.
    pub(super) fn rejected(&mut self, suspects: Suspects, message: &str, whole: bool) {
        // Whatever is found, the next trial may begin.
        self.trying.clear();
        self.admitted = None;
        let suspects = self.set_hosts_fault_aside(suspects, message);
        if suspects.resources.is_empty() {
            return;
        }
        if whole && suspects.resources.len() > 1 && !self.ledger.has_good() && !self.triage.is_trying() {
            // There is nothing to set it back to, and to leave a part out is to take it away from a client
            // that may have it from an earlier stream. If it names the culprits, the others can be tried.
            if !suspects.resources.iter().any(|suspect| accuses(message, &suspect.name)) {
                self.note_faults(&suspects.resources, Reason::Content, message);
                return;
            }
        }
        let split = if self.kind.is_whole() { Split::Halves } else { Split::Single };
        let ledger = &self.ledger;
        let refused = self.triage.reject(suspects, message, split, |name| ledger.good(name).cloned());
        if let Some(name) = refused
            && self.ledger.good(&name).is_none()
        {
            // It has nothing of this name, and is not to get anything: there is nothing to be undone.
            self.ledger.forget(&name);
            self.due.remove(&name);
        }
    }

    /// What the client may have of a layer. Takes the next suspects on trial, if it is time.
    fn admit(&mut self, layer: &Layer) -> Layer {
        if self.triage.is_idle() {
            self.admitted = None;
            self.muted.clear();
            self.trying.clear();
            return layer.clone();
        }
        if let Some((from, admitted)) = &self.admitted
            && Arc::ptr_eq(from, layer)
        {
            return admitted.clone();
        }
        let Self { subscription, ledger, .. } = self;
        self.triage.settle(|name, version| {
            subscription.covers(name)
                && layer.get(name).is_some_and(|resource| resource.version == version)
                && ledger.good(name).is_none_or(|good| good.version != version)
        });
        let (admitted, muted) = self.triage.admit(layer, |name| ledger.good(name).cloned());
        // Once for each trial: what else is answered meanwhile is no reason to send it again.
        let trying: Vec<Arc<str>> = self.triage.on_trial().cloned().collect();
        if self.trying != trying {
            self.due.extend(trying.iter().cloned());
            self.trying = trying;
        }
        self.stirred = true;
        self.muted = muted;
        self.admitted = Some((layer.clone(), admitted.clone()));
        admitted
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
        let layer = &self.admit(layer);
        self.look(layer, moment.complete);
        if self.retry.is_due(moment.now) {
            self.due.extend(self.ledger.doubtful().cloned());
            self.stirred = true;
        }
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
        let selection = match self.trial(layer, free) {
            Some(selection) => selection,
            None => P::select(self, layer, moment.complete, news.as_ref()),
        };
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

    /// A suspect by itself in its response, where each has to be tried like that; nothing, while it is not
    /// answered. `None` if there is no such trial.
    fn trial(&self, layer: &Layer, free: bool) -> Option<Option<Selection>> {
        if self.kind.is_whole() || !self.triage.is_trying() {
            return None;
        }
        // What the client asks for and is not under suspicion does not wait.
        let asked = self.due.iter().filter(|name| !self.triage.concerns(name));
        let mut selection = Selection::default();
        for name in asked {
            if let Some(resource) = layer.get(name) {
                selection.add(name, Some(resource));
            }
        }
        let asked = selection.non_empty();
        if asked.is_some() || !free {
            return Some(asked);
        }
        let mut selection = Selection::default();
        for name in self.triage.on_trial().filter(|name| self.due.contains(*name)) {
            if let Some(resource) = layer.get(name) {
                selection.add(name, Some(resource));
            }
        }
        Some(selection.non_empty())
    }

    /// The names of which the client knows something else than what is.
    fn news<P: Protocol>(&mut self, layer: &Layer) -> BTreeSet<Arc<str>> {
        let Self { subscription, ledger, agreed, muted, .. } = self;
        let differs = |name: &&Arc<str>| !muted.contains(*name) && ledger.differs(name, layer.get(*name));
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

    /// When to look again, even if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.held_until(), self.retry.deadline()].into_iter().flatten().min()
    }

    /// When held content goes out, answered or not.
    fn held_until(&self) -> Option<Instant> {
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
        // What the host could not take has its own time.
        if self.retry.is_idle() && (names.len() > asked || self.triage.is_trying()) {
            names.extend(self.ledger.doubtful());
        }
        // A name that waits for its trial is answered after it; of one that was refused the client may
        // know, if it asks, that there is nothing.
        names.retain(|name| !self.muted.contains(*name) || self.is_refused_answer(name));
        names
    }

    fn is_refused_answer(&self, name: &Arc<str>) -> bool {
        self.due.contains(name) && !self.triage.concerns(name)
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
