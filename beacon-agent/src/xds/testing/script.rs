//! Conversations as text. A script is lines of:
//!
//! | Line | Meaning |
//! |---|---|
//! | `world a b:2 c:1.3.1` | these are the services now, with the revisions of cluster, endpoints, routes |
//! | `world a+x+y in:a:2` | … with further clusters `a/x` and `a/y`, and a listener on this host |
//! | `loading` | a source is not loaded: absence is not an answer until the next `world` |
//! | `> CDS +a -b` | the client adds and drops names (`*` is the wildcard) |
//! | … `nonce:7` `nonce:` `reject` `initial:a` | with this nonce, as a NACK, with `initial_resource_versions` |
//! | `< CDS a b:2 -c` | the next response: exactly these resources and removals |
//! | `<< CDS a` | the same, and the client accepts it |
//! | `ack CDS`, `nack CDS`, `ack CDS 3` | answers the newest response of the type, or the one with this nonce |
//! | `blame LDS MESSAGE` | a NACK with this message |
//! | `stands a accepted` | what the client has of a service: `accepted`, `pending`, `rejected`, `host` |
//! | `taken LDS` | a NACK for which the client's host is to blame, and not the content |
//! | `quiet` | nothing is to be sent |
//! | `wait 500` | milliseconds pass |
//! | `reconnect` | a new stream |
//!
//! Routes are written `egress(a,b:2)`, with their pieces.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use tower_common::{
    clock,
    view::{Composition, NodeView},
};

use super::{
    Revisions, World,
    wire::{Memory, Read, Say, Wire, name},
};
use crate::xds::{
    clients::Reason,
    delta::Delta,
    kind::{ResourceType, Scope},
    protocol::{Limits, Received},
    session::Session,
    sotw::Sotw,
    standing::{Parts, Standing},
};

/// Runs a script in both variants.
pub(in crate::xds) fn check(script: &str) {
    check_sotw(script);
    check_delta(script);
}

/// Runs a script, state of the world.
pub(in crate::xds) fn check_sotw(script: &str) {
    Conversation::<Sotw>::new().run(script);
}

/// Runs a script, delta.
pub(in crate::xds) fn check_delta(script: &str) {
    Conversation::<Delta>::new().run(script);
}

/// A client and a session.
pub(in crate::xds) struct Conversation<P> {
    pub(in crate::xds) session: Session<P>,
    pub(in crate::xds) world: World,
    pub(in crate::xds) memory: BTreeMap<ResourceType, Memory>,
    pub(in crate::xds) now: Instant,
    composition: Composition,
    nonces: BTreeSet<String>,
    standings: BTreeMap<Arc<str>, Standing>,
}

/// Where clients of the tests listen.
pub(in crate::xds) fn node() -> NodeView {
    NodeView::new("127.0.0.1:5875".parse().expect("an address"))
}

impl<P: Wire> Conversation<P> {
    /// Nothing is loaded.
    pub(in crate::xds) fn new() -> Self {
        Self::of(&node())
    }

    /// The same, for a client with this view.
    pub(in crate::xds) fn of(node: &NodeView) -> Self {
        let composition = Composition::default();
        Self {
            session: Session::new(Scope::Aggregated, node, Limits::default(), &composition),
            world: World::default(),
            memory: BTreeMap::new(),
            now: clock::monotonic(),
            composition,
            nonces: BTreeSet::new(),
            standings: BTreeMap::new(),
        }
    }

    pub(in crate::xds) fn run(&mut self, script: &str) {
        for (index, line) in script.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Err(error) = self.step(&words) {
                panic!("{} line {index}, {line:?}: {error}\n{script}", name::<P>());
            }
        }
    }

    fn step(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [] => Ok(()),
            ["world", services @ ..] => {
                let (inbound, services): (Vec<&str>, Vec<&str>) =
                    services.iter().partition(|service| service.starts_with("in:"));
                self.world.inbound = inbound.iter().map(|text| parse_inbound(text)).collect();
                self.world.subsets = services.iter().map(|service| parse_subsets(service)).collect();
                self.world.services = services.iter().map(|service| parse_service(service)).collect();
                self.world.complete = true;
                self.update();
                Ok(())
            }
            ["loading"] => {
                self.world.complete = false;
                self.update();
                Ok(())
            }
            [">", kind, rest @ ..] => self.say(parse_kind(kind), parse_say(rest)).map(|_| ()),
            ["<", kind, rest @ ..] => self.expect(kind, rest),
            ["<<", kind, rest @ ..] => {
                self.expect(kind, rest)?;
                self.answer(parse_kind(kind), None, false).map(|_| ())
            }
            ["ack", kind, nonce @ ..] => {
                self.answer(parse_kind(kind), nonce.first().copied(), false).map(|_| ())
            }
            ["nack", kind, nonce @ ..] => {
                self.answer(parse_kind(kind), nonce.first().copied(), true).map(|_| ())
            }
            ["taken", kind] => {
                let say =
                    Say { reject: true, message: "Address already in use".to_owned(), ..Say::default() };
                self.say(parse_kind(kind), say).map(|_| ())
            }
            ["blame", kind, message @ ..] => {
                let say = Say { reject: true, message: message.join(" "), ..Say::default() };
                self.say(parse_kind(kind), say).map(|_| ())
            }
            ["stands", service, expected] => match self.stands(service) {
                state if state == *expected => Ok(()),
                state => Err(format!("it stands {state}")),
            },
            ["quiet"] => match self.read() {
                None => Ok(()),
                Some(read) => Err(format!("got {}", show(&read))),
            },
            ["wait", milliseconds] => {
                self.now += Duration::from_millis(milliseconds.parse().map_err(|_| "no number")?);
                Ok(())
            }
            ["reconnect"] => {
                let memory = self.session.memory();
                self.session = Session::new(Scope::Aggregated, &node(), Limits::default(), &self.composition);
                self.session.recall(memory);
                self.memory.values_mut().for_each(|memory| memory.nonce.clear());
                self.nonces.clear();
                self.standings.clear();
                Ok(())
            }
            _ => Err("not a line of a script".to_owned()),
        }
    }

    /// Serves the world as it is now.
    pub(in crate::xds) fn update(&mut self) {
        self.composition = self.world.compose(&self.composition);
        self.session.update(&self.composition);
    }

    /// Sends a request.
    pub(in crate::xds) fn say(&mut self, kind: ResourceType, say: Say) -> Result<Received, String> {
        let request = P::request(kind, self.memory.entry(kind).or_default(), say);
        self.session.handle(request).map_err(|refusal| refusal.to_string())
    }

    /// Answers a response, by default the newest.
    pub(in crate::xds) fn answer(
        &mut self,
        kind: ResourceType,
        nonce: Option<&str>,
        reject: bool,
    ) -> Result<Received, String> {
        let memory = self.memory.entry(kind).or_default();
        let nonce = nonce.map_or_else(|| memory.nonce.clone(), str::to_owned);
        self.say(kind, Say { nonce: Some(nonce), reject, ..Say::default() })
    }

    /// Reads the next response, and checks what holds for each.
    pub(in crate::xds) fn read(&mut self) -> Option<Read> {
        let batch = self.session.next_batch(self.now)?;
        let read = P::read(P::response(batch, "beacon/test"));
        assert_eq!(read.identifier, "beacon/test");
        assert!(!read.nonce.is_empty() && self.nonces.insert(read.nonce.clone()), "each nonce is new");
        let names: Vec<&String> = read.resources.iter().map(|(name, _)| name).chain(&read.removed).collect();
        let distinct: BTreeSet<&&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "no name twice in {read:?}");
        let memory = self.memory.entry(read.kind).or_default();
        memory.nonce.clone_from(&read.nonce);
        memory.version.clone_from(&read.version);
        Some(read)
    }

    /// What the client has of a service.
    fn stands(&mut self, service: &str) -> &'static str {
        for (service, standing) in self.session.standings() {
            match standing {
                Some(standing) => self.standings.insert(service, standing),
                None => self.standings.remove(&service),
            };
        }
        let Some(standing) = self.standings.get(service) else { return "nowhere" };
        match standing.trouble.as_ref().map(|trouble| trouble.reason) {
            Some(Reason::Content) => "rejected",
            Some(Reason::Host) => "host",
            None => {
                let all = Parts::first(standing.held.parts.len());
                let done = all.minus(standing.exempt).are_in(standing.accepted);
                if done { "accepted" } else { "pending" }
            }
        }
    }

    fn expect(&mut self, kind: &str, rest: &[&str]) -> Result<(), String> {
        let expected = format!("{kind} {}", rest.join(" "));
        match self.read().map(|read| show(&read)) {
            Some(read) if read == expected.trim() => Ok(()),
            Some(read) => Err(format!("got {read:?}")),
            None => Err("got nothing".to_owned()),
        }
    }
}

fn show(read: &Read) -> String {
    let mut words = vec![read.kind.as_str().to_uppercase()];
    for (name, content) in &read.resources {
        words.push(match content.as_str() {
            "1" => name.clone(),
            pieces if pieces.starts_with('(') => format!("{name}{pieces}"),
            revision => format!("{name}:{revision}"),
        });
    }
    words.extend(read.removed.iter().map(|name| format!("-{name}")));
    words.join(" ")
}

fn parse_inbound(text: &str) -> (String, u32) {
    let text = text.trim_start_matches("in:");
    let (name, revision) = text.split_once(':').unwrap_or((text, "1"));
    (name.to_owned(), revision.parse().unwrap_or(1))
}

fn parse_subsets(text: &str) -> (String, Vec<String>) {
    let mut names = text.split(':').next().unwrap_or_default().split('+').map(str::to_owned);
    (names.next().unwrap_or_default(), names.collect())
}

fn parse_service(text: &str) -> (String, Revisions) {
    let (name, revisions) = text.split_once(':').unwrap_or((text, ""));
    let name = name.split('+').next().unwrap_or_default();
    let mut all = [1; 3];
    for (revision, text) in all.iter_mut().zip(revisions.split('.')) {
        *revision = text.parse().unwrap_or(1);
    }
    (name.to_owned(), all)
}

fn parse_kind(text: &str) -> ResourceType {
    let kind = ResourceType::ALL.into_iter().find(|kind| kind.as_str() == text.to_lowercase());
    kind.unwrap_or_else(|| panic!("{text} is no type"))
}

fn parse_say(words: &[&str]) -> Say {
    let mut say = Say::default();
    for word in words {
        if let Some(nonce) = word.strip_prefix("nonce:") {
            say.nonce = Some(nonce.to_owned());
        } else if let Some(name) = word.strip_prefix("initial:") {
            say.initial.push(name.to_owned());
        } else if let Some(name) = word.strip_prefix('+') {
            say.add.push(name.to_owned());
        } else if let Some(name) = word.strip_prefix('-') {
            say.remove.push(name.to_owned());
        } else if *word == "reject" {
            say.reject = true;
        } else {
            panic!("{word} is no part of a request");
        }
    }
    say
}
