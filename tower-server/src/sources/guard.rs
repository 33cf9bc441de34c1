//! The guard: what a source reads no more is not always gone.
//!
//! It stands between what a source reads and what it publishes, and decides when an endpoint that is
//! registered no more may leave. Additions and changes do not ask it.
//!
//! - An endpoint that was out of service when it went had announced that, and leaves at once.
//! - Any other waits a moment: deleted and created again within that time is no removal.
//! - If by then its service, or the whole source, has shrunk beyond the limit, compared with the largest
//!   set within the window, it is held. What shrank by less leaves.
//! - What is held leaves when its time is over, when as many others have come as were lost, when its
//!   address registers for another service, or when an operator says so. It is held no more when it
//!   registers again.
//! - While the source is out of touch nothing leaves by time: its silence says nothing.
//!
//! Plain logic: no IO, and times are arguments.

mod hold;
mod kept;
mod sizes;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;

pub use self::hold::HoldReport;
pub(super) use self::hold::{Now, Record};
use self::{
    hold::{Hold, Scope},
    sizes::{Shrink, Sizes},
};
use super::model::EndpointKey;

/// A removal waits so long for the same endpoint to come back.
pub(super) const SETTLE: Duration = Duration::from_millis(500);

/// The window is so many times as long as sessions live.
pub(super) const WINDOW_SESSIONS: u32 = 3;

/// How a guard judges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    /// How long a shrink is held; zero holds nothing.
    pub(super) hold: Duration,
    /// How long a single removal waits.
    pub(super) settle: Duration,
    /// Sets are compared with the largest one of this time. So long after the source came back from being
    /// out of touch nothing leaves a hold by time: those who register need time to come back, too.
    pub(super) window: Duration,
}

/// Whether an endpoint is registered, and takes traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Registered {
    #[default]
    No,
    OutOfService,
    InService,
}

/// Endpoints that were held, by what became of them, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// All that were ever held.
    pub held: u64,
    /// Registered again.
    pub returned: u64,
    /// As many others had come.
    pub replaced: u64,
    /// Their time was over.
    pub expired: u64,
    /// An operator let them go.
    pub released: u64,
    /// Their address registered for another service.
    pub dropped: u64,
}

/// The guard of one source.
#[derive(Debug)]
pub(super) struct Guard {
    policy: Policy,
    services: BTreeMap<Arc<str>, Sizes>,
    whole: Sizes,
    missing: BTreeMap<EndpointKey, Missing>,
    addresses: BTreeMap<(IpAddr, u16), BTreeSet<EndpointKey>>,
    holds: BTreeMap<u64, Hold>,
    holding: BTreeMap<Scope, u64>,
    next_id: u64,
    grace_until: Option<Instant>,
    /// Nothing is to be judged before.
    due: Option<Instant>,
    /// What shrank before, is held, and has grown since it was last looked at.
    grown: BTreeSet<Scope>,
    /// What need not be judged any more.
    leaving: Vec<EndpointKey>,
    /// Whether all that is missing may leave.
    accepted: bool,
    /// What left a hold since the last snapshot on disk, and since the one that is being written.
    left: BTreeSet<EndpointKey>,
    left_before: BTreeSet<EndpointKey>,
    /// Whether what is kept on disk has changed.
    dirty: bool,
    counters: Counters,
}

/// An endpoint that is published, and not registered.
#[derive(Debug)]
enum Missing {
    /// For so short a time that nothing follows from it yet.
    Waiting {
        since: Instant,
    },
    Held {
        hold: u64,
    },
}

impl Guard {
    /// A guard of a source of which nothing is known.
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            services: BTreeMap::new(),
            whole: Sizes::default(),
            missing: BTreeMap::new(),
            addresses: BTreeMap::new(),
            holds: BTreeMap::new(),
            holding: BTreeMap::new(),
            next_id: 1,
            grace_until: None,
            due: None,
            grown: BTreeSet::new(),
            leaving: Vec::new(),
            accepted: false,
            left: BTreeSet::new(),
            left_before: BTreeSet::new(),
            dirty: false,
            counters: Counters::default(),
        }
    }

    /// A published endpoint is registered in another way than before. What went is told before what came:
    /// then an address that moved is seen to have moved.
    pub(super) fn told(&mut self, key: &EndpointKey, before: Registered, after: Registered, now: Instant) {
        let appears = before == Registered::No && after != Registered::No;
        let was_missing = appears && self.returned(key);
        if appears && !was_missing {
            self.drop_elsewhere(key);
        }
        let service = self.services.entry(key.service.clone()).or_default();
        match (before, after) {
            (Registered::InService, Registered::No) => {
                service.lose(now);
                self.whole.lose(now);
                self.miss(key, Missing::Waiting { since: now });
                self.judge_at(now + self.policy.settle);
            }
            (Registered::InService, Registered::OutOfService) => {
                service.announce();
                self.whole.announce();
            }
            (Registered::No | Registered::OutOfService, Registered::InService) => {
                service.grow();
                self.whole.grow();
                if !self.holds.is_empty() {
                    self.grown.extend([Scope::Service(key.service.clone()), Scope::Source]);
                }
            }
            (Registered::No, Registered::OutOfService) if was_missing => self.excuse(key),
            (Registered::No, Registered::OutOfService)
            | (Registered::OutOfService, Registered::No)
            | (Registered::No, Registered::No)
            | (Registered::OutOfService, Registered::OutOfService)
            | (Registered::InService, Registered::InService) => {}
        }
    }

    /// The missing endpoints that leave now. If the guard is `frozen`, none does by time.
    pub(super) fn take_leaving(&mut self, frozen: bool, now: Instant) -> Vec<EndpointKey> {
        if self.accepted {
            self.accept_all();
        } else if !frozen {
            self.end_replaced(now);
            if self.due.is_some_and(|due| due <= now) {
                self.judge_waiting(now);
                self.end_expired(now);
                self.due = self.next_due();
            }
        }
        std::mem::take(&mut self.leaving)
    }

    /// When there may be something to judge, if nothing is told before.
    pub(super) fn next_judgement(&self) -> Option<Instant> {
        self.due
    }

    /// The source was out of touch, and has been read in full again.
    pub(super) fn reconnected(&mut self, now: Instant) {
        let grace = now + self.policy.window;
        self.grace_until = Some(grace);
        for until in self.holds.values_mut().flat_map(|hold| hold.endpoints.values_mut()) {
            *until = (*until).max(grace);
            self.dirty = true;
        }
    }

    /// Whatever differs from what was published is meant to.
    pub(super) fn accept(&mut self) {
        self.accepted = true;
    }

    /// Lets go what one hold holds. Returns how many endpoints those are, or none if there is no such hold.
    pub(super) fn release(&mut self, id: u64) -> Option<usize> {
        let scope = self.holds.get(&id)?.scope.clone();
        let keys = self.keys_of(id);
        for key in &keys {
            self.excuse(key);
            self.leave(key);
        }
        match &scope {
            Scope::Service(service) => self.services.entry(service.clone()).or_default().accept(),
            Scope::Source => {
                self.whole.accept();
                self.services.values_mut().for_each(Sizes::accept);
            }
        }
        self.counters.released += keys.len() as u64;
        Some(keys.len())
    }

    /// Forgets services that are gone for longer than the window.
    pub(super) fn tidy(&mut self, now: Instant) {
        let (window, holding) = (self.policy.window, &self.holding);
        self.services.retain(|service, sizes| {
            let pinned = holding.contains_key(&Scope::Service(service.clone()));
            sizes.shrink(now, window, pinned);
            pinned || !sizes.is_forgettable()
        });
    }

    /// The hold with this id, as reports name it.
    pub(super) fn id_of(&self, source: &str, name: &str) -> Option<u64> {
        let id = name.strip_prefix(source)?.strip_prefix('-')?.parse().ok()?;
        self.holds.contains_key(&id).then_some(id)
    }

    /// What is held.
    pub(super) fn holds(&self, source: &str, now: Now) -> Vec<HoldReport> {
        self.holds.iter().map(|(id, hold)| hold.report(source, *id, now)).collect()
    }

    /// How many holds there are, and how many endpoints they hold.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.holds.len(), self.holds.values().map(|hold| hold.endpoints.len()).sum())
    }

    /// Totals since the start.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    fn judge_waiting(&mut self, now: Instant) {
        let settled = |missing: &Missing| match missing {
            Missing::Waiting { since } => now.saturating_duration_since(*since) >= self.policy.settle,
            Missing::Held { .. } => false,
        };
        let settled: Vec<EndpointKey> =
            self.missing.iter().filter(|(_, missing)| settled(missing)).map(|(key, _)| key.clone()).collect();
        let mut whole: Option<Shrink> = None;
        let mut service: Option<(Arc<str>, Shrink)> = None;
        for key in settled {
            let shrink = match &service {
                Some((name, shrink)) if *name == key.service => *shrink,
                Some(_) | None => self.shrink(&Scope::Service(key.service.clone()), now),
            };
            service = Some((key.service.clone(), shrink));
            let whole = *whole.get_or_insert_with(|| self.shrink(&Scope::Source, now));
            if self.policy.hold.is_zero() {
                self.leave(&key);
            } else if shrink.is_beyond_limit() {
                self.hold(key.clone(), Scope::Service(key.service), shrink, now);
            } else if whole.is_beyond_limit() {
                self.hold(key, Scope::Source, whole, now);
            } else {
                self.leave(&key);
            }
        }
    }

    fn hold(&mut self, key: EndpointKey, scope: Scope, shrink: Shrink, now: Instant) {
        let since = match self.missing.get(&key) {
            Some(Missing::Waiting { since }) => *since,
            Some(Missing::Held { .. }) | None => now,
        };
        let until = (since + self.policy.hold).max(self.grace_until.unwrap_or(since));
        let id = self.holding.get(&scope).copied().unwrap_or_else(|| {
            let id = self.next_id;
            self.next_id += 1;
            self.holding.insert(scope.clone(), id);
            self.holds.insert(id, Hold::new(scope, now, shrink));
            id
        });
        self.missing.insert(key.clone(), Missing::Held { hold: id });
        self.judge_at(until);
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.endpoints.insert(key, until);
        }
        self.counters.held += 1;
        self.dirty = true;
    }

    /// Of a shrink that was made good by others nothing is held any more.
    fn end_replaced(&mut self, now: Instant) {
        for scope in std::mem::take(&mut self.grown) {
            let Some(id) = self.holding.get(&scope).copied() else { continue };
            if self.shrink(&scope, now).lost() == 0 {
                let keys = self.keys_of(id);
                self.counters.replaced += keys.len() as u64;
                keys.iter().for_each(|key| self.leave(key));
            }
        }
    }

    fn end_expired(&mut self, now: Instant) {
        let expired: Vec<EndpointKey> = self
            .holds
            .values()
            .flat_map(|hold| &hold.endpoints)
            .filter(|(_, until)| **until <= now)
            .map(|(key, _)| key.clone())
            .collect();
        self.counters.expired += expired.len() as u64;
        for key in expired {
            self.excuse(&key);
            self.leave(&key);
        }
    }

    fn accept_all(&mut self) {
        self.accepted = false;
        let missing: Vec<EndpointKey> = self.missing.keys().cloned().collect();
        missing.iter().for_each(|key| self.leave(key));
        self.whole.accept();
        self.services.values_mut().for_each(Sizes::accept);
    }

    /// The same address for another service: whoever was there is gone, and traffic for it would reach
    /// somebody else.
    fn drop_elsewhere(&mut self, newcomer: &EndpointKey) {
        let Some(same) = self.addresses.get(&(newcomer.address, newcomer.port)) else { return };
        let others: Vec<EndpointKey> =
            same.iter().filter(|other| other.service != newcomer.service).cloned().collect();
        for key in others {
            if matches!(self.missing.get(&key), Some(Missing::Held { .. })) {
                self.counters.dropped += 1;
            }
            self.excuse(&key);
            self.leave(&key);
        }
    }

    /// An endpoint leaves; what becomes of it is told to whoever asks next.
    fn leave(&mut self, key: &EndpointKey) {
        if self.forget_missing(key) {
            self.left.insert(key.clone());
        }
        self.leaving.push(key.clone());
    }

    /// If it was missing, it is not any more. Returns whether it was.
    fn returned(&mut self, key: &EndpointKey) -> bool {
        self.dirty |= self.left.remove(key) | self.left_before.remove(key);
        let missing = self.missing.contains_key(key);
        if self.forget_missing(key) {
            self.counters.returned += 1;
        }
        missing
    }

    /// Returns whether it was held.
    fn forget_missing(&mut self, key: &EndpointKey) -> bool {
        let address = (key.address, key.port);
        if let Some(same) = self.addresses.get_mut(&address) {
            same.remove(key);
            if same.is_empty() {
                self.addresses.remove(&address);
            }
        }
        let Some(Missing::Held { hold: id }) = self.missing.remove(key) else { return false };
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.endpoints.remove(key);
            if hold.endpoints.is_empty() {
                self.holding.remove(&hold.scope);
                self.holds.remove(&id);
            }
        }
        self.dirty = true;
        true
    }

    fn excuse(&mut self, key: &EndpointKey) {
        self.services.entry(key.service.clone()).or_default().excuse();
        self.whole.excuse();
    }

    fn shrink(&mut self, scope: &Scope, now: Instant) -> Shrink {
        // As long as a shrink is held it is compared with what was there before, however long ago.
        let pinned = self.holding.contains_key(scope);
        let sizes = match scope {
            Scope::Service(service) => self.services.entry(service.clone()).or_default(),
            Scope::Source => &mut self.whole,
        };
        sizes.shrink(now, self.policy.window, pinned)
    }

    fn keys_of(&self, hold: u64) -> Vec<EndpointKey> {
        self.holds.get(&hold).map(|hold| hold.endpoints.keys().cloned().collect()).unwrap_or_default()
    }

    fn miss(&mut self, key: &EndpointKey, missing: Missing) {
        self.missing.insert(key.clone(), missing);
        self.addresses.entry((key.address, key.port)).or_default().insert(key.clone());
    }

    fn judge_at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn next_due(&self) -> Option<Instant> {
        let waiting = self.missing.values().filter_map(|missing| match missing {
            Missing::Waiting { since } => Some(*since + self.policy.settle),
            Missing::Held { .. } => None,
        });
        let held = self.holds.values().flat_map(|hold| hold.endpoints.values().copied());
        waiting.chain(held).min()
    }
}

#[cfg(test)]
mod tests;
