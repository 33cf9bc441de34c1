//! Whatever happens, nothing panics, and in the end a client that answers has what is served.
//!
//! The client here is a wild one: it reads late, answers late or never, rejects at random and then keeps
//! a random part of what it rejected, repeats itself, and invents nonces. After that it behaves, the
//! world changes once more, and both sides have to agree.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use crate::xds::{
    delta::Delta,
    kind::{Mode, ResourceType},
    sotw::Sotw,
    testing::{
        script::Conversation,
        wire::{Read, Say, Wire},
    },
};

const SERVICES: [&str; 4] = ["a", "b", "c", "d"];

const KINDS: [ResourceType; 4] =
    [ResourceType::Cluster, ResourceType::Endpoint, ResourceType::Listener, ResourceType::Route];

/// What may happen.
#[derive(Debug, Clone)]
enum Event {
    /// A service comes, goes (`None`) or changes.
    World(usize, Option<[u32; 3]>),
    Complete(bool),
    /// The client adds and drops names.
    Say(ResourceType, Vec<usize>, Vec<usize>, Nonce),
    /// The client reads a response, if there is one.
    Read,
    /// It answers the oldest that it has read and not answered.
    Answer {
        reject: bool,
        kept: u8,
    },
    Wait(u64),
    Reconnect,
}

#[derive(Debug, Clone)]
enum Nonce {
    Right,
    None,
    Wrong(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let service = 0..SERVICES.len();
    let revisions = prop::option::weighted(0.7, prop::array::uniform3(1_u32..4));
    let kind = prop::sample::select(KINDS.to_vec());
    // An index beyond the services is the wildcard.
    let names = prop::collection::vec(0..=SERVICES.len(), 0..3);
    let nonce =
        prop_oneof![6 => Just(Nonce::Right), 1 => Just(Nonce::None), 1 => (0..9_u8).prop_map(Nonce::Wrong)];
    prop_oneof![
        4 => (service, revisions).prop_map(|(service, revisions)| Event::World(service, revisions)),
        1 => any::<bool>().prop_map(Event::Complete),
        4 => (kind, names.clone(), names, nonce).prop_map(|(kind, add, remove, nonce)| Event::Say(kind, add, remove, nonce)),
        8 => Just(Event::Read),
        6 => (any::<bool>(), any::<u8>()).prop_map(|(reject, kept)| Event::Answer { reject, kept }),
        1 => (0..600_u64).prop_map(Event::Wait),
        1 => Just(Event::Reconnect),
    ]
}

struct Client<P> {
    conversation: Conversation<P>,
    /// What it has, by type and name.
    has: BTreeMap<ResourceType, BTreeMap<String, String>>,
    /// What it has read and not answered.
    open: VecDeque<Read>,
}

impl<P: Wire> Client<P> {
    fn new() -> Self {
        Self { conversation: Conversation::new(), has: BTreeMap::new(), open: VecDeque::new() }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::World(service, revisions) => {
                let services = &mut self.conversation.world.services;
                match revisions {
                    Some(revisions) => services.insert(SERVICES[service].to_owned(), revisions),
                    None => services.remove(SERVICES[service]),
                };
                self.conversation.update();
            }
            Event::Complete(complete) => {
                self.conversation.world.complete = complete;
                self.conversation.update();
            }
            Event::Say(kind, add, remove, nonce) => self.say(kind, &add, &remove, &nonce),
            Event::Read => {
                if let Some(read) = self.conversation.read() {
                    self.open.push_back(read);
                }
            }
            Event::Answer { reject, kept } => {
                if let Some(read) = self.open.pop_front() {
                    // The listener never changes, so there is nothing that could repair it.
                    let reject = reject && read.kind != ResourceType::Listener;
                    self.answer(&read, reject.then_some(kept));
                }
            }
            Event::Wait(milliseconds) => {
                self.conversation.now += std::time::Duration::from_millis(milliseconds);
            }
            Event::Reconnect => self.reconnect(),
        }
    }

    fn say(&mut self, kind: ResourceType, add: &[usize], remove: &[usize], nonce: &Nonce) {
        let name = |index: &usize| match (kind, SERVICES.get(*index)) {
            (ResourceType::Listener | ResourceType::Route, Some(_)) => "egress".to_owned(),
            (_, Some(service)) => (*service).to_owned(),
            (_, None) => "*".to_owned(),
        };
        // A list with a wrong nonce is not heard, so the client had better keep what it drops with it until
        // it says so again: the server sends nothing that it knows to be there.
        let heard = P::MODE == Mode::Delta || !matches!(nonce, Nonce::Wrong(_));
        let nonce = match nonce {
            Nonce::Right => None,
            Nonce::None => Some(String::new()),
            Nonce::Wrong(number) => Some(number.to_string()),
        };
        let say = Say {
            add: add.iter().map(name).collect(),
            remove: remove.iter().map(name).collect(),
            nonce,
            ..Say::default()
        };
        self.conversation.say(kind, say).unwrap();
        if heard {
            self.forget(kind);
        }
    }

    fn wants(&self, kind: ResourceType, name: &str) -> bool {
        let names = self.conversation.memory.get(&kind).is_some_and(|memory| memory.names.contains(name));
        names || self.conversation.session.is_wildcard(kind)
    }

    /// What a client does not want any more it forgets, and does not take from responses on their way.
    fn forget(&mut self, kind: ResourceType) {
        let mut has = std::mem::take(self.has.entry(kind).or_default());
        has.retain(|name, _| self.wants(kind, name));
        self.has.insert(kind, has);
        let mut open = std::mem::take(&mut self.open);
        for read in open.iter_mut().filter(|read| read.kind == kind) {
            read.resources.retain(|(name, _)| self.wants(kind, name));
        }
        self.open = open;
    }

    /// Applies a response, or with `Some(kept)` an arbitrary part of it, and answers it.
    fn answer(&mut self, read: &Read, rejected: Option<u8>) {
        let has = self.has.entry(read.kind).or_default();
        let whole = P::MODE == Mode::Sotw && read.kind.is_whole();
        if whole && rejected.is_none() {
            has.clear();
        }
        let keeps = |index: usize| rejected.is_none_or(|kept| kept >> (index % 8) & 1 == 1);
        for (index, (name, content)) in read.resources.iter().enumerate() {
            if keeps(index) {
                has.insert(name.clone(), content.clone());
            }
        }
        for (index, name) in read.removed.iter().enumerate() {
            if keeps(index) {
                has.remove(name);
            }
        }
        self.conversation.answer(read.kind, Some(&read.nonce), rejected.is_some()).unwrap();
    }

    fn reconnect(&mut self) {
        self.open.clear();
        self.conversation.run("reconnect");
        let kinds: Vec<ResourceType> = self.conversation.memory.keys().copied().collect();
        for kind in kinds {
            let names = self.conversation.memory[&kind].names.iter().cloned().collect();
            let initial = match P::MODE {
                Mode::Sotw => Vec::new(),
                Mode::Delta => self.has.entry(kind).or_default().keys().cloned().collect(),
            };
            self.conversation.say(kind, Say { add: names, initial, ..Say::default() }).unwrap();
        }
    }

    /// Reads and accepts until there is nothing more.
    fn settle(&mut self) {
        for _ in 0..100 {
            while let Some(read) = self.open.pop_front() {
                self.answer(&read, None);
            }
            self.conversation.now += std::time::Duration::from_secs(1);
            match self.conversation.read() {
                Some(read) => self.open.push_back(read),
                None => return,
            }
        }
        panic!("the server does not come to rest");
    }

    /// Settles, has everything changed, and compares.
    fn agree(mut self) {
        self.conversation.world.complete = true;
        self.conversation.update();
        self.settle();
        // A list with a stale nonce has not counted.
        let kinds: Vec<ResourceType> = self.conversation.memory.keys().copied().collect();
        for kind in kinds {
            self.conversation.say(kind, Say::default()).unwrap();
            self.forget(kind);
        }
        self.settle();
        // New content repairs what was rejected, also if all that a client wants was gone.
        let before = self.conversation.world.services.clone();
        let everything = SERVICES.map(|service| (service.to_owned(), [20; 3]));
        self.conversation.world.services = everything.into();
        self.conversation.update();
        self.settle();
        // In content that nobody has rejected: what was, is not sent again.
        self.conversation.world.services = before.into_keys().map(|service| (service, [30; 3])).collect();
        self.conversation.update();
        self.settle();
        let world = &self.conversation.world.services;
        let pieces: Vec<String> = world
            .iter()
            .map(|(name, r)| match r[2] {
                1 => name.clone(),
                revision => format!("{name}:{revision}"),
            })
            .collect();
        for (kind, memory) in &self.conversation.memory {
            let served: BTreeMap<String, String> = match kind {
                ResourceType::Cluster => {
                    world.iter().map(|(name, r)| (name.clone(), r[0].to_string())).collect()
                }
                ResourceType::Endpoint => {
                    world.iter().map(|(name, r)| (name.clone(), r[1].to_string())).collect()
                }
                ResourceType::Listener => [("egress".to_owned(), "1".to_owned())].into(),
                other @ (ResourceType::Secret
                | ResourceType::Runtime
                | ResourceType::Extension
                | ResourceType::ScopedRoute) => unreachable!("{other:?} is not asked for"),
                ResourceType::Route => [("egress".to_owned(), format!("({})", pieces.join(",")))].into(),
            };
            let wildcard = self.conversation.session.is_wildcard(*kind);
            let has = self.has.entry(*kind).or_default();
            let wanted = served.iter().filter(|(name, _)| wildcard || memory.names.contains(*name));
            for (name, content) in wanted {
                assert_eq!(has.get(name), Some(content), "{kind:?} {name}");
            }
            // What is gone is gone; for some types of the state of the world there is no way to say so.
            if P::MODE == Mode::Delta || kind.is_whole() {
                let wanted = |name: &&String| wildcard || memory.names.contains(*name);
                let stale: Vec<&String> =
                    has.keys().filter(wanted).filter(|name| !served.contains_key(*name)).collect();
                assert!(stale.is_empty(), "{kind:?} {stale:?}");
            }
        }
        assert!(self.conversation.read().is_none());
    }
}

fn run<P: Wire>(events: Vec<Event>) {
    let mut client = Client::<P>::new();
    for event in events {
        client.happen(event);
    }
    client.agree();
}

proptest! {
    #[test]
    fn state_of_the_world_agrees_in_the_end(events in prop::collection::vec(event(), 0..80)) {
        run::<Sotw>(events);
    }

    #[test]
    fn delta_agrees_in_the_end(events in prop::collection::vec(event(), 0..80)) {
        run::<Delta>(events);
    }
}
