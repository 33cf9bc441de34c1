//! One simulated Beacon: what it holds, and what it makes of what it hears. It follows a Tower by the rules of
//! the real one's mirror, and checks more than that: that no step is missing, that no position ever goes back,
//! and that its store is Tower's after each delivery, unless there is a reason for it not to be.

use std::{
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, Instant},
};

use prost::Message as _;
use tower_common::{
    FEATURE_LEVEL, clock,
    delivery::Scope,
    standing::{Standing, standing},
};
use tower_proto::v1::{self, watch_request::Request};

use super::{
    contents::{Contents, Message},
    messages::{framed, joined},
    state::{Aside, Delivered, State},
};

/// A Beacon, connected or not.
#[derive(Debug)]
pub struct Beacon {
    id: String,
    zone: &'static str,
    state: Rc<State>,
    /// The run of a Tower and its revision to which the state is equal.
    at: Option<(String, u64)>,
    stream: Stream,
}

/// What is known of the stream that is up.
#[derive(Debug, Default)]
struct Stream {
    tower: String,
    staged: Vec<Rc<Message>>,
    revision: u64,
    /// Whether something has been delivered.
    begun: bool,
    aside: Aside,
    equal: bool,
    caught_up: bool,
    comparing: bool,
    reported: Option<(u64, Rc<State>)>,
    /// The last heartbeat, and when it was applied, until it has been reported.
    beat: Option<(u64, Instant)>,
}

/// What came of a message.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What to answer, framed for gRPC.
    pub say: Option<Vec<u8>>,
    /// A delivery was applied.
    pub applied: bool,
    /// Tower sends the Beacon away, to come back no sooner than this.
    pub leave: Option<Duration>,
}

impl Beacon {
    /// One that holds nothing, and is named by its number.
    pub fn new(number: usize, nothing: &Rc<State>) -> Self {
        let zone = ["zone-a", "zone-b", "zone-c"][number % 3];
        let id = format!("host-{number:05}.{DOMAIN}");
        Self { id, zone, state: nothing.clone(), at: None, stream: Stream::default() }
    }

    /// Whether its store is that of the Tower that it follows, as of what that said last.
    pub fn is_equal(&self) -> bool {
        self.stream.equal
    }

    /// What it holds.
    pub fn state(&self) -> &Rc<State> {
        &self.state
    }

    /// Starts with what another holds, as if it had been on disk.
    pub fn restore(&mut self, from: &Self) {
        self.state = from.state.clone();
        self.at.clone_from(&from.at);
    }

    /// The stream has ended, or is yet to begin.
    pub fn end(&mut self) {
        self.stream = Stream::default();
    }

    /// The first request of a stream, framed for gRPC.
    pub fn hello(&self) -> Vec<u8> {
        let (tower, revision) = self.at.clone().unwrap_or_default();
        let node = v1::Node {
            id: self.id.clone(),
            zone: self.zone.to_owned(),
            labels: BTreeMap::from([("pool".to_owned(), "bench".to_owned())]),
            workloads: Vec::new(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let hello = v1::Hello {
            node: Some(node),
            feature_level: FEATURE_LEVEL,
            interest: Some(v1::Interest { all: true, services: Vec::new() }),
            positions: self.state.positions(),
            digest: Some(self.state.digest().to_proto()),
            tower,
            revision,
            ..Default::default()
        };
        framed(&v1::WatchRequest { request: Some(Request::Hello(hello)) })
    }

    /// A report, framed for gRPC, if there is something to report.
    pub fn report(&mut self) -> Option<Vec<u8>> {
        let revision = self.stream.revision;
        let same = |(at, state): &(u64, Rc<State>)| *at == revision && Rc::ptr_eq(state, &self.state);
        let nothing_new = self.stream.beat.is_none() && self.stream.reported.as_ref().is_some_and(same);
        if !self.stream.begun || nothing_new {
            return None;
        }
        self.stream.reported = Some((revision, self.state.clone()));
        // What all of them say is encoded once.
        let shared = self.state.report(revision);
        let own = self.stream.beat.take().map(|(heartbeat, at)| {
            let micros_ago = u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX);
            let applied = Some(v1::Applied { heartbeat, micros_ago });
            let report = v1::Report { applied, ..Default::default() };
            v1::WatchRequest { request: Some(Request::Report(report)) }.encode_to_vec()
        });
        Some(joined(&[&shared, &own.unwrap_or_default()]))
    }

    /// Takes a message of the stream.
    ///
    /// # Errors
    /// What no Tower may say to a Beacon in this state.
    pub fn hear(&mut self, message: &Rc<Message>, contents: &mut Contents) -> Result<Outcome, String> {
        let mut outcome = Outcome::default();
        let response = &message.response;
        if let Some(welcome) = &response.welcome {
            self.stream = Stream { tower: welcome.tower.clone(), ..Stream::default() };
        } else if self.stream.tower.is_empty() && response.goodbye.is_none() {
            return Err("the first response is not a welcome".to_owned());
        }
        if response.begin.is_some() && !self.stream.staged.is_empty() {
            return Err("a delivery begins before the last one is committed".to_owned());
        }
        let is_part = response.begin.is_some() || response.commit.is_some() || !self.stream.staged.is_empty();
        if is_part {
            self.stream.staged.push(message.clone());
        }
        if response.commit.is_some() {
            let delivery = contents.delivery(&std::mem::take(&mut self.stream.staged))?;
            self.deliver(&delivery, message, contents)?;
            outcome.applied = true;
        }
        if let Some(heartbeat) = &response.heartbeat {
            self.heartbeat(heartbeat, message, contents)?;
        }
        if let Some(ask) = &response.ask_buckets {
            outcome.say = Some(self.buckets(Some(ask.count)));
        }
        if let Some(goodbye) = response.goodbye {
            outcome.leave = Some(Duration::from_millis(goodbye.retry_after_ms.into()));
        }
        let differs = !self.stream.equal && self.stream.aside.is_empty() && self.stream.begun;
        if (differs || self.stream.caught_up) && !self.stream.comparing {
            self.stream.comparing = true;
            outcome.say = Some(self.buckets(None));
        }
        Ok(outcome)
    }

    fn buckets(&self, count: Option<u32>) -> Vec<u8> {
        framed(&v1::WatchRequest { request: Some(Request::Buckets(self.state.buckets(count))) })
    }

    fn deliver(
        &mut self,
        delivery: &Delivered,
        message: &Message,
        contents: &mut Contents,
    ) -> Result<(), String> {
        let compared = matches!(delivery.scope, Scope::Everything | Scope::Buckets { .. });
        let builds_on_the_last = self.stream.begun && !compared;
        if builds_on_the_last && delivery.from != self.stream.revision {
            let (from, held) = (delivery.from, self.stream.revision);
            return Err(format!("a delivery builds on revision {from}, but the last one ended at {held}"));
        }
        let sources = &delivery.transaction.sources;
        self.stand(&delivery.scope, sources, compared);
        self.stream.begun = true;
        self.state = self.state.after(delivery, &self.stream.aside)?;
        self.stream.revision = delivery.to;
        self.settle(&delivery.digest, sources, message, contents)?;
        if compared && !self.stream.equal && self.stream.aside.is_empty() {
            let (held, expected) = (self.state.len(), delivery.digest.resources);
            return Err(format!("after all that differed {held} resources are held, Tower has {expected}"));
        }
        Ok(())
    }

    /// Decides how far each source is followed.
    fn stand(&mut self, scope: &Scope, sources: &[v1::SourceStatus], compared: bool) {
        let (stream, state) = (&mut self.stream, &self.state);
        let mut undecided = Aside::new();
        if compared || !stream.begun {
            undecided = std::mem::take(&mut stream.aside);
            stream.caught_up = false;
            stream.comparing = false;
        }
        for offered in sources {
            let newly_read = matches!(scope, Scope::Sources(read) if read.contains(&offered.source));
            let kept = stream.equal && stream.aside.contains_key(&offered.source);
            if !stream.begun || newly_read || kept || undecided.contains_key(&offered.source) {
                match standing(state.source(&offered.source), offered) {
                    Standing::Follow => stream.aside.remove(&offered.source),
                    aside @ (Standing::Keep | Standing::Ignore) => {
                        stream.aside.insert(offered.source.clone(), aside)
                    }
                };
            }
        }
        self.note_caught_up(sources);
    }

    fn heartbeat(
        &mut self,
        heartbeat: &v1::Heartbeat,
        message: &Message,
        contents: &mut Contents,
    ) -> Result<(), String> {
        if heartbeat.revision != self.stream.revision {
            let (from, held) = (heartbeat.revision, self.stream.revision);
            return Err(format!("a heartbeat is of revision {from}, but the last delivery ended at {held}"));
        }
        self.note_caught_up(&heartbeat.sources);
        let followed =
            heartbeat.sources.iter().filter(|status| !self.stream.aside.contains_key(&status.source));
        let moved = contents.sources(message, followed.cloned().collect());
        self.state = self.state.after(&moved, &Aside::new())?;
        let digest = heartbeat.digest.clone().unwrap_or_default();
        self.settle(&digest, &heartbeat.sources, message, contents)?;
        self.stream.beat = Some((heartbeat.number, clock::monotonic()));
        Ok(())
    }

    /// Notes if Tower has now read a source far enough for it to be followed.
    fn note_caught_up(&mut self, sources: &[v1::SourceStatus]) {
        if self.stream.aside.is_empty() {
            return;
        }
        for offered in sources {
            let now = standing(self.state.source(&offered.source), offered);
            self.stream.caught_up |= match self.stream.aside.get(&offered.source) {
                None => false,
                Some(Standing::Ignore) => now != Standing::Ignore,
                Some(Standing::Keep | Standing::Follow) => now == Standing::Follow,
            };
        }
    }

    /// Compares with Tower, and draws the conclusions.
    fn settle(
        &mut self,
        digest: &v1::Digest,
        sources: &[v1::SourceStatus],
        message: &Message,
        contents: &mut Contents,
    ) -> Result<(), String> {
        let stream = &mut self.stream;
        stream.equal = self.state.digest() == *digest;
        if !stream.equal {
            self.at = None;
            return Ok(());
        }
        if !stream.aside.is_empty() {
            let state = &self.state;
            let behind = |offered: &&v1::SourceStatus| {
                standing(state.source(&offered.source), offered) == Standing::Ignore
            };
            let ignored: Vec<&str> =
                sources.iter().filter(behind).map(|offered| offered.source.as_str()).collect();
            stream.aside.retain(|source, _| ignored.contains(&source.as_str()));
            let followed = sources.iter().filter(|offered| !ignored.contains(&offered.source.as_str()));
            let moved = contents.sources(message, followed.cloned().collect());
            self.state = self.state.after(&moved, &Aside::new())?;
        }
        stream.caught_up = false;
        match &mut self.at {
            Some((tower, revision)) if *tower == stream.tower => *revision = stream.revision,
            at => *at = Some((stream.tower.clone(), stream.revision)),
        }
        Ok(())
    }
}

/// The domain of all simulated hosts, so that one certificate can be for all of them.
pub const DOMAIN: &str = "bench.example";

#[cfg(test)]
mod tests {
    use tower_common::{
        resource::{Origin, Resource, ResourceKey},
        store::Transaction,
    };
    use tower_server::store_actor::{Ask, StoreCore};

    use super::*;
    use crate::swarm::marks::Marks;

    struct Bench {
        core: StoreCore,
        contents: Contents,
        marks: Marks,
        index: u64,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                core: StoreCore::new(""),
                contents: Contents::default(),
                marks: Marks::default(),
                index: 0,
            }
        }

        fn message(&mut self, response: &v1::WatchResponse) -> Rc<Message> {
            self.contents.message(&framed(response), &self.marks).unwrap()
        }

        fn welcome(&mut self, beacon: &mut Beacon, tower: &str) {
            let welcome = v1::Welcome { tower: tower.to_owned(), ..Default::default() };
            let message = self.message(&v1::WatchResponse { welcome: Some(welcome), ..Default::default() });
            beacon.hear(&message, &mut self.contents).unwrap();
        }

        /// What Tower sends when these endpoints come.
        fn change(&mut self, names: &[&str]) -> Rc<Message> {
            self.index += 1;
            let origin = Origin { source: "zk".into(), index: self.index };
            let upserts = names.iter().map(|name| {
                let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
                Resource::new(key, origin.clone(), bytes::Bytes::new())
            });
            let index = self.index;
            let position = v1::Position { source: "zk".into(), incarnation: "a".into(), index };
            let mut status =
                v1::SourceStatus { source: "zk".into(), position: Some(position), ..Default::default() };
            status.set_state(v1::SourceState::Live);
            let transaction =
                Transaction { upserts: upserts.collect(), sources: vec![status], ..Default::default() };
            let frames = self.core.apply(transaction, clock::monotonic()).unwrap();
            self.contents.message(&frames[0], &self.marks).unwrap()
        }

        fn start(&mut self) -> Rc<Message> {
            let frames = self.core.delivery_from(&tower_server::fanout::start::StartFrom::Nothing);
            self.contents.message(&frames[0], &self.marks).unwrap()
        }
    }

    #[test]
    fn follows_tower_and_reports_what_it_holds() {
        let mut bench = Bench::new();
        let mut beacon = Beacon::new(7, &State::empty());
        bench.change(&["a"]);
        bench.welcome(&mut beacon, "run");
        let start = bench.start();
        assert!(beacon.hear(&start, &mut bench.contents).unwrap().applied);
        let change = bench.change(&["b"]);
        beacon.hear(&change, &mut bench.contents).unwrap();
        assert!(beacon.is_equal());
        assert!(beacon.state().digest() == bench.core.store().digest());
        let said = v1::WatchRequest::decode(&beacon.report().unwrap()[5..]).unwrap();
        let Some(Request::Report(report)) = said.request else { panic!("{said:?}") };
        assert_eq!((report.revision, report.positions[0].index), (2, 2));
        assert!(beacon.report().is_none());
        let heartbeat = bench.core.heartbeat(9);
        let heartbeat = bench.contents.message(&heartbeat, &bench.marks).unwrap();
        beacon.hear(&heartbeat, &mut bench.contents).unwrap();
        let said = v1::WatchRequest::decode(&beacon.report().unwrap()[5..]).unwrap();
        let Some(Request::Report(report)) = said.request else { panic!("{said:?}") };
        assert_eq!((report.revision, report.applied.unwrap().heartbeat), (2, 9));
        let said = v1::WatchRequest::decode(&beacon.hello()[5..]).unwrap();
        let Some(Request::Hello(hello)) = said.request else { panic!("{said:?}") };
        assert_eq!((hello.tower.as_str(), hello.revision, hello.positions[0].index), ("run", 2, 2));
        let ask = Ask { revision: None, digest: hello.digest, positions: hello.positions };
        assert!(ask.digest.is_some_and(|digest| bench.core.store().digest() == digest));
    }

    #[test]
    fn a_missing_delivery_is_an_error() {
        let mut bench = Bench::new();
        let mut beacon = Beacon::new(0, &State::empty());
        bench.welcome(&mut beacon, "run");
        let start = bench.start();
        beacon.hear(&start, &mut bench.contents).unwrap();
        bench.change(&["a"]);
        let second = bench.change(&["b"]);
        let error = beacon.hear(&second, &mut bench.contents).unwrap_err();
        assert!(error.contains("builds on revision 1"), "{error}");
    }

    #[test]
    fn who_differs_asks_by_buckets() {
        let mut bench = Bench::new();
        let mut beacon = Beacon::new(0, &State::empty());
        bench.change(&["a"]);
        let change = bench.change(&["b"]);
        bench.welcome(&mut beacon, "run");
        // As if the start had been told too little.
        let said = beacon.hear(&change, &mut bench.contents).unwrap().say.unwrap();
        let said = v1::WatchRequest::decode(&said[5..]).unwrap();
        assert!(matches!(said.request, Some(Request::Buckets(_))), "{said:?}");
        assert!(!beacon.is_equal());
    }
}
