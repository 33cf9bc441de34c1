//! What one client was told of one type, and what it said to that.
//!
//! A NACK does not tell what was applied of a response: an Envoy may apply part of what it rejects, so
//! every name in such a response is *doubtful* until it is sent again.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use tower_common::{resource::Version, view::XdsResource};

/// Responses that are waiting for their answer, at most. The two oldest are joined beyond: a client that
/// reads but never answers costs no more than this.
const MAX_UNANSWERED: usize = 16;

/// The nonces of a stream: 1, 2, …
pub(super) type Nonce = u64;

/// What was sent to one client, by name.
#[derive(Debug)]
pub(super) struct Ledger {
    told: BTreeMap<Arc<str>, Told>,
    unanswered: VecDeque<Sent>,
    newest: Option<(Nonce, Version)>,
    /// The answer to the type's first request on this stream is not complete yet.
    opening: bool,
}

#[derive(Debug, Clone)]
struct Told {
    /// `None`: that it does not exist.
    resource: Option<XdsResource>,
    /// The response with which the client came to have it.
    since: Nonce,
    /// The response with which it came to have this content.
    content_since: Nonce,
    /// The response that named it last.
    last: Nonce,
    accepted: bool,
    doubtful: bool,
    /// The content that it is known to have accepted last.
    good: Option<XdsResource>,
}

#[derive(Debug)]
struct Sent {
    nonce: Nonce,
    version: Version,
    names: Vec<Arc<str>>,
}

/// What the answer to a response says.
#[derive(Debug)]
pub(super) struct Settled {
    /// Of the response that was answered.
    pub(super) version: Version,
    /// If it was rejected: the content in it that the client has never accepted. One of these it cannot
    /// take.
    pub(super) suspects: Vec<XdsResource>,
    /// Nothing that was in it has been sent again since, or is not wanted any more: what is to blame is
    /// among the suspects.
    pub(super) certain: bool,
}

/// One response, on its way into the ledger.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) nonce: Nonce,
    pub(super) version: Version,
    pub(super) resources: &'a [XdsResource],
    pub(super) removed: &'a [Arc<str>],
    /// What it does not name is gone.
    pub(super) whole: bool,
    /// Nothing was left over for a further message.
    pub(super) complete: bool,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self { told: BTreeMap::new(), unanswered: VecDeque::new(), newest: None, opening: true }
    }

    /// Whether the client's knowledge of a name differs from what it is to know.
    pub(super) fn differs(&self, name: &str, wanted: Option<&XdsResource>) -> bool {
        let told = self.told.get(name).and_then(Told::version);
        told != wanted.map(|resource| resource.version)
    }

    /// The content of a name that the client is known to have accepted last.
    pub(super) fn good(&self, name: &str) -> Option<&XdsResource> {
        self.told.get(name)?.good.as_ref()
    }

    /// Whether the client is known to have accepted anything.
    pub(super) fn has_good(&self) -> bool {
        self.told.values().any(|told| told.good.is_some())
    }

    /// The content of a name that the client was sent last.
    pub(super) fn told(&self, name: &str) -> Option<&XdsResource> {
        self.told.get(name)?.resource.as_ref()
    }

    /// Whether the client has this content, and is known to have accepted it.
    pub(super) fn has(&self, name: &str, version: Version) -> bool {
        self.told.get(name).is_some_and(|told| told.version() == Some(version) && told.is_good())
    }

    /// What the client has, or may go back to.
    pub(super) fn in_use(&self) -> impl Iterator<Item = &XdsResource> {
        self.told.values().flat_map(|told| told.resource.iter().chain(&told.good))
    }

    /// What the client was sent, and has not been told to be gone; and whether it has accepted that.
    pub(super) fn contents(&self) -> impl Iterator<Item = (&XdsResource, bool)> {
        self.told.values().filter_map(|told| Some((told.resource.as_ref()?, told.is_good())))
    }

    /// The names that the client was told something of, be it that they do not exist.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.told.keys()
    }

    /// The names in rejected responses that were not sent again yet.
    pub(super) fn doubtful(&self) -> impl Iterator<Item = &Arc<str>> {
        self.told.iter().filter(|(_, told)| told.doubtful).map(|(name, _)| name)
    }

    /// Whether the client has this resource, and is known to have accepted it. What was in the answer to
    /// a stream's first request counts as accepted: a client that has just started asks for what refers
    /// to it only when it is ready, and one that has reconnected has had it before.
    pub(super) fn accepted(&self, name: &str) -> bool {
        self.told.get(name).is_some_and(|told| told.resource.is_some() && told.accepted)
    }

    /// Keeps these names only. The client has forgotten the others, or never knew them.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Arc<str>) -> bool) {
        self.told.retain(|name, _| keep(name));
    }

    /// Takes these for accepted, although they were in a response that was rejected: for something else, as is
    /// known.
    pub(super) fn concede<'a>(&mut self, names: impl Iterator<Item = &'a Arc<str>>) {
        for name in names {
            if let Some(told) = self.told.get_mut(name).filter(|told| told.resource.is_some()) {
                told.accepted = true;
                told.doubtful = false;
                told.good.clone_from(&told.resource);
            }
        }
    }

    /// The client need not be thought to have this any more.
    pub(super) fn forget(&mut self, name: &str) {
        self.told.remove(name);
    }

    /// The newest response, answered or not.
    pub(super) fn newest(&self) -> Option<(Nonce, Version)> {
        self.newest
    }

    /// Whether a response waits for its answer.
    pub(super) fn is_waiting(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// Notes a response. Returns the names whose content is new to the client, or perhaps is.
    pub(super) fn record(&mut self, entry: &Entry<'_>) -> BTreeSet<Arc<str>> {
        let nonce = entry.nonce;
        let mut refreshed = BTreeSet::new();
        for resource in entry.resources {
            let told = self.told.get(&resource.name);
            let same = told.is_some_and(|told| told.version() == Some(resource.version));
            if !same || told.is_some_and(|told| told.doubtful) {
                refreshed.insert(resource.name.clone());
            }
            let before = told.filter(|told| told.resource.is_some());
            let new = Told {
                resource: Some(resource.clone()),
                since: before.map_or(nonce, |told| told.since),
                content_since: before.filter(|_| same).map_or(nonce, |told| told.content_since),
                last: nonce,
                accepted: before.map_or(self.opening, |told| told.accepted),
                doubtful: false,
                good: told.and_then(|told| told.good.clone()),
            };
            self.told.insert(resource.name.clone(), new);
        }
        for name in entry.removed {
            let gone = Told {
                resource: None,
                since: nonce,
                content_since: nonce,
                last: nonce,
                accepted: false,
                doubtful: false,
                good: None,
            };
            self.told.insert(name.clone(), gone);
        }
        if entry.whole {
            self.told.retain(|_, told| told.last == nonce);
        }
        self.opening &= !entry.complete;
        self.newest = Some((nonce, entry.version));
        // Of a whole response only those count of which the answer says something new.
        let good = |name: &Arc<str>| self.told.get(name).is_some_and(Told::is_good);
        let news = |name: &&Arc<str>| {
            !entry.whole || refreshed.contains(*name) || !self.accepted(name) || !good(name)
        };
        let names = entry.resources.iter().map(|resource| &resource.name).filter(news);
        let names = names.chain(entry.removed).cloned().collect();
        self.unanswered.push_back(Sent { nonce, version: entry.version, names });
        self.bound_unanswered();
        refreshed
    }

    /// Notes the answer to a response, and to those before it that got none: answers come in order, and
    /// "a newer one supersedes". Returns `None` if this response has its answer already, or never was.
    /// `wanted` are the names that are subscribed to one by one.
    pub(super) fn settle(
        &mut self,
        nonce: Nonce,
        accepted: bool,
        wanted: &BTreeSet<Arc<str>>,
    ) -> Option<Settled> {
        let version = self.unanswered.iter().find(|sent| sent.nonce == nonce)?.version;
        let settled = self.unanswered.iter().take_while(|sent| sent.nonce <= nonce).count();
        let mut suspects = Vec::new();
        let mut certain = true;
        for sent in self.unanswered.drain(..settled) {
            for name in &sent.names {
                let Some(told) = self.told.get_mut(name) else {
                    certain = false;
                    continue;
                };
                if !accepted {
                    let current = told.last == sent.nonce;
                    certain &= current;
                    told.doubtful |= current;
                    if current && !told.is_good() {
                        suspects.extend(told.resource.clone());
                    }
                } else if told.resource.is_some() {
                    told.accepted |= told.since <= nonce;
                    if told.content_since <= nonce {
                        told.good.clone_from(&told.resource);
                    }
                } else if told.last <= nonce && !wanted.contains(name) {
                    // A removal that the client knows of needs no memory, unless it waits for the name.
                    self.told.remove(name);
                }
            }
        }
        Some(Settled { version, suspects, certain })
    }

    fn bound_unanswered(&mut self) {
        if self.unanswered.len() <= MAX_UNANSWERED {
            return;
        }
        if let (Some(oldest), Some(next)) = (self.unanswered.pop_front(), self.unanswered.front_mut()) {
            next.names.extend(oldest.names);
            next.names.sort_unstable();
            next.names.dedup();
        }
    }
}

impl Told {
    fn version(&self) -> Option<Version> {
        self.resource.as_ref().map(|resource| resource.version)
    }

    /// Whether the client has accepted just this content.
    fn is_good(&self) -> bool {
        self.good.as_ref().map(|good| good.version) == self.version()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str, body: &str) -> XdsResource {
        XdsResource::from_body(name.into(), body.to_owned().into())
    }

    fn send(
        ledger: &mut Ledger,
        nonce: Nonce,
        resources: &[XdsResource],
        removed: &[&str],
    ) -> BTreeSet<Arc<str>> {
        let removed: Vec<Arc<str>> = removed.iter().map(|&name| name.into()).collect();
        let version = Version::default();
        ledger.record(&Entry { nonce, version, resources, removed: &removed, whole: false, complete: true })
    }

    fn settle(ledger: &mut Ledger, nonce: Nonce, accepted: bool) -> bool {
        ledger.settle(nonce, accepted, &BTreeSet::new()).is_some()
    }

    #[test]
    fn what_comes_after_the_opening_is_accepted_by_an_ack_only() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 1, &[resource("a", "1")], &[]);
        assert!(ledger.accepted("a"));
        send(&mut ledger, 2, &[resource("b", "1")], &[]);
        assert!(!ledger.accepted("b"));
        settle(&mut ledger, 1, true);
        assert!(!ledger.accepted("b"));
        settle(&mut ledger, 2, false);
        assert!(!ledger.accepted("b"));
        send(&mut ledger, 3, &[resource("b", "1")], &[]);
        settle(&mut ledger, 3, true);
        assert!(ledger.accepted("b"));
    }

    #[test]
    fn an_old_ack_does_not_accept_what_was_removed_and_added_again() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 1, &[], &[]);
        send(&mut ledger, 2, &[resource("a", "1")], &[]);
        send(&mut ledger, 3, &[], &["a"]);
        send(&mut ledger, 4, &[resource("a", "1")], &[]);
        settle(&mut ledger, 3, true);
        assert!(!ledger.accepted("a"));
        settle(&mut ledger, 4, true);
        assert!(ledger.accepted("a"));
    }

    #[test]
    fn all_names_of_a_rejected_response_are_doubtful_until_sent_again() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 1, &[resource("a", "1"), resource("b", "1"), resource("x", "1")], &[]);
        settle(&mut ledger, 1, true);
        send(&mut ledger, 2, &[resource("a", "2"), resource("b", "2")], &["x"]);
        send(&mut ledger, 3, &[resource("b", "3")], &[]);
        settle(&mut ledger, 2, false);
        let doubtful: Vec<&str> = ledger.doubtful().map(|name| &**name).collect();
        assert_eq!(doubtful, ["a", "x"], "b was sent again in between");
        let refreshed = send(&mut ledger, 4, &[resource("a", "2")], &["x"]);
        assert_eq!(refreshed, ["a".into()].into(), "the version is the same, but the client may not have it");
        assert_eq!(ledger.doubtful().count(), 0);
    }

    #[test]
    fn what_was_accepted_is_kept_until_something_newer_is() {
        let mut ledger = Ledger::new();
        let good = |ledger: &Ledger| ledger.good("a").map(|good| good.body.clone());
        send(&mut ledger, 1, &[resource("a", "1")], &[]);
        assert_eq!(good(&ledger), None, "not before it is acknowledged");
        settle(&mut ledger, 1, true);
        send(&mut ledger, 2, &[resource("a", "2"), resource("b", "1")], &[]);
        let settled = ledger.settle(2, false, &BTreeSet::new()).unwrap();
        let suspects: Vec<&str> = settled.suspects.iter().map(|suspect| &*suspect.name).collect();
        assert_eq!((suspects, good(&ledger).unwrap().as_ref()), (vec!["a", "b"], &b"1"[..]));
        send(&mut ledger, 3, &[resource("a", "1"), resource("b", "1")], &[]);
        let settled = ledger.settle(3, false, &BTreeSet::new()).unwrap();
        assert_eq!(&*settled.suspects[0].name, "b", "what was good is no suspect");
        send(&mut ledger, 4, &[resource("a", "3")], &[]);
        send(&mut ledger, 5, &[resource("a", "4")], &[]);
        settle(&mut ledger, 4, true);
        assert_eq!(good(&ledger).unwrap().as_ref(), b"1", "the answer is to content that is gone");
    }

    #[test]
    fn each_response_is_settled_once() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 1, &[resource("a", "1")], &[]);
        send(&mut ledger, 2, &[resource("b", "1")], &[]);
        assert!(settle(&mut ledger, 2, true));
        assert!(
            !settle(&mut ledger, 2, true) && !settle(&mut ledger, 1, false) && !settle(&mut ledger, 9, true)
        );
        assert!(!ledger.is_waiting());
    }

    #[test]
    fn a_client_that_never_answers_costs_a_bounded_amount() {
        let mut ledger = Ledger::new();
        for nonce in 1..1000 {
            send(&mut ledger, nonce, &[resource("a", &nonce.to_string()), resource("b", "1")], &[]);
        }
        assert_eq!(ledger.unanswered.len(), MAX_UNANSWERED);
        assert!(ledger.unanswered.iter().all(|sent| sent.names.len() == 2));
        assert!(settle(&mut ledger, 999, false));
        assert_eq!(ledger.doubtful().count(), 2);
    }

    #[test]
    fn removals_are_remembered_until_they_are_acknowledged() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 1, &[], &["a", "b"]);
        assert_eq!(ledger.names().count(), 2);
        ledger.settle(1, true, &BTreeSet::from(["b".into()]));
        assert_eq!(ledger.names().map(|name| &**name).collect::<Vec<_>>(), ["b"]);
    }
}
