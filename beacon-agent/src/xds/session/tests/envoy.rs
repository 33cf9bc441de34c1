//! A client that behaves like an Envoy never has a route to a cluster that it does not have.
//!
//! It wants all clusters, asks for the endpoints of each that it gets, and answers a response about
//! clusters only when all of them have their endpoints. It may be slow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

#[derive(Debug, Clone)]
enum Event {
    /// Several services come, go (`None`) or change, at once.
    World(Vec<(usize, Option<[u32; 3]>)>),
    /// The server sends a response, if it has one.
    Send,
    /// The client takes one from the wire.
    Take,
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let revisions = prop::option::weighted(0.6, prop::array::uniform3(1_u32..3));
    let changes = prop::collection::vec((0_usize..4, revisions), 1..4);
    prop_oneof![
        2 => changes.prop_map(Event::World),
        5 => Just(Event::Send),
        5 => Just(Event::Take),
        1 => (0..600_u64).prop_map(Event::Wait),
    ]
}

struct Envoy<P> {
    conversation: Conversation<P>,
    wire: VecDeque<Read>,
    /// Its clusters, and whether they are warm.
    clusters: BTreeMap<String, (String, bool)>,
    pieces: BTreeSet<String>,
    /// Responses about clusters that are not answered while one is warming.
    muted: Vec<String>,
}

impl<P: Wire> Envoy<P> {
    fn new() -> Self {
        let mut conversation = Conversation::new();
        conversation.run("world a b\n> CDS\n> LDS\n> RDS +egress");
        Self {
            conversation,
            wire: VecDeque::new(),
            clusters: BTreeMap::new(),
            pieces: BTreeSet::new(),
            muted: Vec::new(),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::World(changes) => {
                let services = &mut self.conversation.world.services;
                for (service, revisions) in changes {
                    let name = ["a", "b", "c", "d"][service].to_owned();
                    match revisions {
                        Some(revisions) => services.insert(name, revisions),
                        None => services.remove(&name),
                    };
                }
                self.conversation.update();
            }
            Event::Send => self.wire.extend(self.conversation.read()),
            Event::Take => {
                if let Some(read) = self.wire.pop_front() {
                    self.take(&read);
                }
            }
            Event::Wait(milliseconds) => {
                self.conversation.now += std::time::Duration::from_millis(milliseconds);
            }
        }
    }

    fn take(&mut self, read: &Read) {
        match read.kind {
            ResourceType::Cluster => {
                self.take_clusters(read);
                self.muted.push(read.nonce.clone());
            }
            ResourceType::Endpoint => {
                for (name, _) in &read.resources {
                    if let Some((_, warm)) = self.clusters.get_mut(name) {
                        *warm = true;
                    }
                }
                self.answer(read.kind, &read.nonce);
            }
            ResourceType::Listener
            | ResourceType::Secret
            | ResourceType::Runtime
            | ResourceType::Extension
            | ResourceType::ScopedRoute => self.answer(read.kind, &read.nonce),
            ResourceType::Route => {
                let pieces = read.resources[0].1.trim_matches(['(', ')']);
                let names = pieces.split(',').filter(|piece| !piece.is_empty());
                self.pieces = names.map(|piece| piece.split(':').next().unwrap().to_owned()).collect();
                self.answer(read.kind, &read.nonce);
            }
        }
        let missing: Vec<&String> =
            self.pieces.iter().filter(|piece| !self.clusters.contains_key(*piece)).collect();
        assert!(missing.is_empty(), "routes to clusters that are not there: {missing:?}");
        if self.clusters.values().all(|(_, warm)| *warm) {
            for nonce in std::mem::take(&mut self.muted) {
                self.answer(ResourceType::Cluster, &nonce);
            }
        }
    }

    fn take_clusters(&mut self, read: &Read) {
        let mut gone: Vec<String> = read.removed.clone();
        if P::MODE == Mode::Sotw {
            let named = |name: &&String| !read.resources.iter().any(|(there, _)| there == *name);
            gone = self.clusters.keys().filter(named).cloned().collect();
        }
        gone.iter().for_each(|name| drop(self.clusters.remove(name)));
        let mut added = Vec::new();
        for (name, content) in &read.resources {
            match self.clusters.get_mut(name) {
                Some(held) if held.0 == *content => {}
                // It is warming, and waits for its endpoints: in delta without asking for them again.
                Some(held) => *held = (content.clone(), false),
                None => {
                    self.clusters.insert(name.clone(), (content.clone(), false));
                    added.push(name.clone());
                }
            }
        }
        self.conversation
            .say(ResourceType::Endpoint, Say { add: added, remove: gone, ..Say::default() })
            .unwrap();
    }

    fn answer(&mut self, kind: ResourceType, nonce: &str) {
        self.conversation.answer(kind, Some(nonce), false).unwrap();
    }

    fn agree(mut self) {
        let mut idle = 0;
        while idle < 3 {
            let before = self.wire.len();
            self.happen(Event::Wait(500));
            self.happen(Event::Send);
            idle = if self.wire.len() == before && before == 0 { idle + 1 } else { 0 };
            self.happen(Event::Take);
        }
        assert!(self.wire.is_empty() && self.muted.is_empty(), "not at rest, or never warm");
        let world = &self.conversation.world.services;
        assert!(self.pieces.iter().eq(world.keys()), "{:?}", self.pieces);
        let clusters = self.clusters.iter().map(|(name, (content, _))| (name.clone(), content.clone()));
        let served = world.iter().map(|(name, revisions)| (name.clone(), revisions[0].to_string()));
        assert!(clusters.eq(served), "{:?}", self.clusters);
    }
}

fn run<P: Wire>(events: Vec<Event>) {
    let mut envoy = Envoy::<P>::new();
    for event in events {
        envoy.happen(event);
    }
    envoy.agree();
}

proptest! {
    #[test]
    fn state_of_the_world_is_made_before_it_is_broken(events in prop::collection::vec(event(), 0..100)) {
        run::<Sotw>(events);
    }

    #[test]
    fn delta_is_made_before_it_is_broken(events in prop::collection::vec(event(), 0..100)) {
        run::<Delta>(events);
    }
}
