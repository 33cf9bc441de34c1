//! Requests that no client sends that is well: whatever comes, nothing panics, and what a session keeps is
//! bounded.

use proptest::prelude::*;
use prost::Message;
use tower_common::clock;
use tower_proto::envoy::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use crate::xds::{
    delta::Delta,
    kind::{Mode, ResourceType, Scope},
    node::Identity,
    protocol::Limits,
    session::Session,
    sotw::Sotw,
    testing::{
        composition,
        script::node,
        wire::{Memory, Say, Wire},
    },
};

/// A request with anything in it.
fn anything() -> impl Strategy<Value = (ResourceType, Say)> {
    let kind = prop::sample::select(ResourceType::ALL.to_vec());
    let name = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "egress", "*", ""]).prop_map(str::to_owned),
        1 => ".{0,20}",
    ];
    let names = prop::collection::vec(name, 0..6);
    let nonce = prop::option::of(prop_oneof![
        (0..12_u64).prop_map(|number| number.to_string()),
        Just(u64::MAX.to_string()),
        Just("-1".to_owned()),
        ".{0,8}",
    ]);
    let message = prop_oneof![
        Just(String::new()),
        Just("Address already in use".to_owned()),
        Just("Error adding/updating cluster(s) a: no, : ".to_owned()),
        ".{0,40}",
    ];
    let parts = (kind, names.clone(), names.clone(), nonce, any::<bool>(), message, names);
    parts.prop_map(|(kind, add, remove, nonce, reject, message, initial)| {
        (kind, Say { add, remove, nonce, reject, message, initial })
    })
}

/// Changes some bytes of a message, and reads it again; as a client would that is broken.
fn mutated<M: Message + Default>(message: &M, changes: &[(u16, u8)], cut: Option<u16>) -> Option<M> {
    let mut bytes = message.encode_to_vec();
    for (at, value) in changes {
        let length = bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(usize::from(*at) % length) {
            *byte = *value;
        }
    }
    if let Some(cut) = cut {
        bytes.truncate(usize::from(cut) % (bytes.len() + 1));
    }
    M::decode(bytes.as_slice()).ok()
}

struct Fuzzed<P> {
    session: Session<P>,
    memory: Memory,
}

impl<P: Wire> Fuzzed<P> {
    fn new(scope: Scope) -> Self {
        let session = Session::new(scope, &node(), Limits::default(), &composition(&["a", "b"]));
        Self { session, memory: Memory::default() }
    }

    /// Sends a request. Returns how many responses come, or why the stream ends.
    fn send(&mut self, mut request: P::Request) -> Result<usize, String> {
        let source = Scope::Aggregated.config_source(Mode::Sotw);
        let _ = Identity::read(P::take_node(&mut request), node().egress, source, false);
        if let Err(refusal) = self.session.handle(request) {
            let status = tonic::Status::from(refusal);
            assert!(!status.message().is_empty());
            return Err(status.message().to_owned());
        }
        // A request is answered by a few messages at most; there is no loop.
        let mut now = clock::monotonic();
        for responses in 0..64 {
            let Some(batch) = self.session.next_batch(now) else {
                self.session.quarantined();
                self.session.memory();
                self.session.contents();
                return Ok(responses);
            };
            P::response(batch, "beacon/test");
            now += std::time::Duration::from_millis(600);
        }
        panic!("one request is answered without end");
    }
}

type Mutation = (Vec<(u16, u8)>, Option<u16>);

fn mutation() -> impl Strategy<Value = Mutation> {
    (prop::collection::vec(any::<(u16, u8)>(), 0..4), prop::option::weighted(0.2, any::<u16>()))
}

fn run<P: Wire>(scope: Scope, requests: Vec<((ResourceType, Say), Mutation)>) {
    let mut fuzzed = Fuzzed::<P>::new(scope);
    for ((kind, say), (changes, cut)) in requests {
        let request = P::request(kind, &mut fuzzed.memory, say);
        let request = mutated(&request, &changes, cut).unwrap_or(request);
        if fuzzed.send(request).is_err() {
            // The stream has ended; the client opens another.
            fuzzed = Fuzzed::new(scope);
        }
    }
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        3 => Just(Scope::Aggregated),
        1 => prop::sample::select(ResourceType::ALL.to_vec()).prop_map(Scope::Single),
    ]
}

proptest! {
    #[test]
    fn state_of_the_world_survives_any_request(
        scope in scope(),
        requests in prop::collection::vec((anything(), mutation()), 0..60),
    ) {
        run::<Sotw>(scope, requests);
    }

    #[test]
    fn delta_survives_any_request(
        scope in scope(),
        requests in prop::collection::vec((anything(), mutation()), 0..60),
    ) {
        run::<Delta>(scope, requests);
    }

    #[test]
    fn any_bytes_are_a_request_or_none(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(request) = DiscoveryRequest::decode(bytes.as_slice()) {
            let _ = Fuzzed::<Sotw>::new(Scope::Aggregated).send(request);
        }
        if let Ok(request) = DeltaDiscoveryRequest::decode(bytes.as_slice()) {
            let _ = Fuzzed::<Delta>::new(Scope::Aggregated).send(request);
        }
    }
}

/// A stream from its first byte: requests, each with its length before it. What is served changes after each.
/// Returns how many responses each request has got, as strokes.
fn converse<P: Wire>(mut input: &[u8]) -> Result<Vec<String>, String> {
    let worlds = [composition(&["a", "c"]), composition(&["a", "b"])];
    let mut fuzzed = Fuzzed::<P>::new(Scope::Aggregated);
    let mut responses = Vec::new();
    while !input.is_empty() {
        let request = P::Request::decode_length_delimited(&mut input).map_err(|error| error.to_string())?;
        responses.push("|".repeat(fuzzed.send(request)?));
        fuzzed.session.update(&worlds[responses.len() % 2]);
    }
    Ok(responses)
}

/// What well-behaved clients say: they ask, accept, reject, and go on, for each type.
fn conversations<P: Wire>() -> Vec<Vec<u8>> {
    let nonce = |number: u64| Some(number.to_string());
    let names = || vec!["a".to_owned(), "egress".to_owned()];
    let lines = |kind: ResourceType| {
        let everything = if kind.is_whole() { Vec::new() } else { names() };
        let message = "Error adding/updating cluster(s) a: no".to_owned();
        [
            Say { add: everything, ..Say::default() },
            Say { nonce: nonce(1), ..Say::default() },
            Say { nonce: nonce(2), reject: true, message, ..Say::default() },
            Say { add: names(), nonce: nonce(3), ..Say::default() },
            Say { remove: names(), nonce: nonce(4), initial: vec!["a".to_owned()], ..Say::default() },
        ]
    };
    let conversation = |kind: &ResourceType| {
        let mut memory = Memory::default();
        let requests = lines(*kind).into_iter().map(|say| P::request(*kind, &mut memory, say));
        requests.flat_map(|request| request.encode_length_delimited_to_vec()).collect::<Vec<u8>>()
    };
    let mut all: Vec<Vec<u8>> = ResourceType::ALL.iter().map(conversation).collect();
    all.push(all.concat());
    all
}

fn fuzz<P: Wire>(name: &str) {
    let conversations = conversations::<P>();
    let seeds: Vec<&[u8]> = conversations.iter().map(Vec::as_slice).collect();
    assert!(seeds.iter().all(|seed| converse::<P>(seed).is_ok()), "they are well-behaved");
    let words: Vec<&str> =
        ResourceType::ALL.iter().map(|kind| kind.url()).chain(["*", "a", "egress", "xdstp://"]).collect();
    tower_fuzz::fuzz(name, &seeds, &words, converse::<P>);
}

#[test]
fn streams_of_any_bytes_are_survived() {
    fuzz::<Sotw>("xDS stream, state of the world");
    fuzz::<Delta>("xDS stream, delta");
}
