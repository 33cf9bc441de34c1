//! A guard with a registry before it and a publisher behind it, on a clock of their own.

mod random;
mod scenarios;

use std::net::Ipv4Addr;

use super::*;

const HOLD: Duration = Duration::from_secs(60);
const POLICY: Policy = Policy { hold: HOLD, settle: SETTLE, window: Duration::from_secs(90) };

/// What is registered and what is published, as a source's model keeps them.
struct Fixture {
    guard: Guard,
    registered: BTreeMap<EndpointKey, Registered>,
    published: BTreeSet<EndpointKey>,
    frozen: bool,
    now: Instant,
}

fn key(service: &str, host: u8) -> EndpointKey {
    EndpointKey {
        service: service.into(),
        address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)),
        port: 80,
        port_name: "".into(),
    }
}

impl Fixture {
    fn new(policy: Policy) -> Self {
        Self {
            guard: Guard::new(policy),
            registered: BTreeMap::new(),
            published: BTreeSet::new(),
            frozen: false,
            now: tower_common::clock::monotonic(),
        }
    }

    /// With so many endpoints of the service web.
    fn with(endpoints: u8) -> Self {
        let mut fixture = Self::new(POLICY);
        fixture.register("web", 0..endpoints);
        fixture
    }

    fn tell(&mut self, key: &EndpointKey, after: Registered) {
        let before = self.registered.insert(key.clone(), after).unwrap_or_default();
        self.guard.told(key, before, after, self.now);
        match after {
            Registered::No if before == Registered::OutOfService => {
                self.published.remove(key);
            }
            Registered::No => {}
            Registered::OutOfService | Registered::InService => {
                self.published.insert(key.clone());
            }
        }
    }

    fn leave(&mut self) {
        for key in self.guard.take_leaving(self.frozen, self.now) {
            if self.registered[&key] == Registered::No {
                self.published.remove(&key);
            }
        }
    }

    fn register(&mut self, service: &str, hosts: std::ops::Range<u8>) {
        hosts.for_each(|host| self.tell(&key(service, host), Registered::InService));
        self.leave();
    }

    fn announce(&mut self, service: &str, hosts: std::ops::Range<u8>) {
        hosts.for_each(|host| self.tell(&key(service, host), Registered::OutOfService));
        self.leave();
    }

    fn deregister(&mut self, service: &str, hosts: std::ops::Range<u8>) {
        hosts.for_each(|host| self.tell(&key(service, host), Registered::No));
        self.leave();
    }

    /// Lets time pass, as the guard asks for it.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.guard.next_judgement().filter(|at| *at <= end && !self.frozen) {
            self.now = self.now.max(at);
            self.leave();
        }
        self.now = end;
        self.leave();
    }

    fn settle(&mut self) {
        self.wait(SETTLE);
    }

    fn published(&self, service: &str) -> usize {
        self.published.iter().filter(|key| *key.service == *service).count()
    }

    /// Holds, and what they hold.
    fn held(&self) -> (usize, usize) {
        self.guard.sizes()
    }

    fn reports(&self) -> Vec<HoldReport> {
        self.guard.holds("zk", Now { at: self.now, unix_ms: 1_000_000 })
    }
}
