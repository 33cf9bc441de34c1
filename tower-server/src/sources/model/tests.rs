//! A model with a store behind it, and shorthand for what it is told.

mod contents;
mod convergence;
mod guarded;
mod names;
mod touch;
mod weights;

use std::collections::BTreeMap;

use tower_common::store::{Changes, Store};

use super::*;
use crate::sources::{
    address::{Host, HostPort},
    format::Registration,
};

const LOST_AFTER: Duration = Duration::from_secs(30);

/// A model, and the store that its transactions go to.
struct Fixture {
    model: Model,
    store: Store,
    now: Instant,
}

fn entry(path: &str, rank: u64, index: u64, addresses: &[&str]) -> Entry {
    let place = path.rsplit_once('/').unwrap().0;
    let registrations = addresses.iter().map(|address| {
        let HostPort { host, port, .. } = HostPort::parse(address).unwrap();
        Registration::new(host, port)
    });
    Entry {
        path: path.into(),
        place: place.into(),
        service: place.rsplit_once('/').unwrap().1.into(),
        rank,
        index,
        registrations: registrations.collect(),
        weights: Vec::new(),
        remarks: 0,
    }
}

fn place(path: &str, created: u64, changed: u64) -> Place {
    Place { path: path.into(), service: path.rsplit_once('/').unwrap().1.into(), created, changed }
}

fn problem(path: &str, reason: &str) -> Problem {
    Problem { path: path.into(), reason: reason.to_owned() }
}

fn load(index: u64, places: Vec<Place>, entries: Vec<Entry>, kept: Vec<Problem>) -> Load {
    Load { incarnation: Some("i1".to_owned()), index, places, entries, kept, ..Load::default() }
}

fn gone(path: &str, index: u64) -> Change {
    Change::Gone { path: path.into(), index }
}

impl Fixture {
    fn new() -> Self {
        Self::guarded(Policy { hold: Duration::ZERO, settle: Duration::ZERO, window: LOST_AFTER * 3 })
    }

    fn guarded(policy: Policy) -> Self {
        let model = Model::new("", "zk".into(), false, LOST_AFTER, policy);
        Self { model, store: Store::new(), now: tower_common::clock::monotonic() }
    }

    /// With the services web and api, and one member of web.
    fn loaded() -> Self {
        let mut fixture = Self::new();
        fixture.load(load(
            10,
            vec![place("/d/web", 2, 5), place("/d/api", 3, 3)],
            vec![entry("/d/web/a", 5, 5, &["10.0.0.1:80"])],
            vec![],
        ));
        fixture
    }

    fn take(&mut self) -> Option<Transaction> {
        self.model.take_transaction(self.now, false)
    }

    fn input(&mut self, input: Input) -> Changes {
        self.model.handle(input, self.now);
        self.take().map(|transaction| self.store.apply(transaction)).unwrap_or_default()
    }

    fn load(&mut self, load: Load) -> Changes {
        self.input(Input::Loaded(load))
    }

    fn change(&mut self, index: u64, changes: Vec<Change>) -> Changes {
        self.input(Input::Changed { changes, index, events: 1 })
    }

    fn resolved(&mut self, name: &str, addresses: Result<&[&str], &str>) -> Changes {
        let addresses = addresses
            .map(|list| list.iter().map(|address| address.parse().unwrap()).collect())
            .map_err(str::to_owned);
        self.input(Input::Resolved { name: name.into(), addresses })
    }

    fn endpoints(&self, service: &str) -> Vec<String> {
        self.store
            .of_service("", v1::Kind::Endpoint, service)
            .map(|resource| resource.key().name.to_string())
            .collect()
    }

    fn services(&self) -> Vec<String> {
        let services =
            self.store.iter().filter(|resource| resource.key().kind == i32::from(v1::Kind::Service));
        services.map(|resource| resource.key().service.to_string()).collect()
    }

    fn problems(&self) -> Vec<String> {
        self.model.problems().map(|problem| format!("{}: {}", problem.path, problem.reason)).collect()
    }

    fn state(&self) -> v1::SourceState {
        let [status] = &self.store.sources().collect::<Vec<_>>()[..] else { panic!("one source") };
        status.state()
    }

    fn reason(&self) -> String {
        self.model.state(self.now).1.unwrap_or_default().to_owned()
    }
}
