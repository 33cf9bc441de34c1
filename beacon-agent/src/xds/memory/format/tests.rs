//! What is remembered survives a restart, and a file that is not whole is no harm.

use tower_common::view::{NodeView, cluster::default_cluster, listener, route, route::default_virtual_host};
use tower_proto::envoy::envoy::config::route::v3::route_action::RequestMirrorPolicy;

use super::*;
use crate::xds::memory::Memory;

fn resource(name: &str, body: &str) -> XdsResource {
    XdsResource::from_body(name.into(), body.to_owned().into())
}

fn refused(name: &str, instead: Option<&str>) -> Refused {
    Refused {
        name: name.into(),
        version: resource(name, "bad").version,
        message: "no ".repeat(1000).into(),
        instead: instead.map(|body| resource(name, body)),
    }
}

fn triage(refused: impl IntoIterator<Item = Refused>) -> Triage {
    let mut triage = Triage::default();
    refused.into_iter().for_each(|refused| triage.refuse(refused));
    triage
}

fn sample() -> Memories {
    let mut memories = Memories::default();
    let clusters = triage([refused("a", Some("good")), refused("b", None)]);
    let secrets = triage([refused("hush", Some("a private key"))]);
    let resources = [(ResourceType::Cluster, clusters), (ResourceType::Secret, secrets)].into();
    memories.note("one", "envoy 1.40.0", Memory { resources, pieces: triage([refused("web", None)]) });
    memories.note(
        "two",
        "envoy 1.40.0",
        Memory { pieces: triage([refused("x", None)]), ..Memory::default() },
    );
    memories
}

#[test]
fn what_was_written_is_read_but_for_secrets() {
    let file = sample().encode("mesh");
    assert!(!String::from_utf8_lossy(&file).contains("private"));
    let read = Memories::decode(&file, "mesh").unwrap();
    let one = read.recall("one", "envoy 1.40.0");
    let clusters: Vec<&Refused> = one.resources[&ResourceType::Cluster].refused().collect();
    assert_eq!(clusters.len(), 2);
    assert_eq!((&*clusters[0].name, clusters[0].version), ("a", resource("a", "bad").version));
    assert_eq!(clusters[0].instead, Some(resource("a", "good")));
    assert_eq!(clusters[1].instead, None);
    assert!(clusters[0].message.starts_with("no no") && clusters[0].message.len() <= MAX_MESSAGE_BYTES);
    assert_eq!(one.pieces.refused().next().map(|piece| &*piece.name), Some("web"));
    assert!(!one.resources.contains_key(&ResourceType::Secret));
    assert!(read.recall("one", "envoy 1.41.0").resources.is_empty(), "another build may take it");
    assert_eq!(read.recall("two", "envoy 1.40.0").pieces.refused().count(), 1);
    assert_eq!(read.encode("mesh"), file, "and stays as it is");
}

#[test]
fn what_was_accepted_before_still_refers_to_its_clusters() {
    let host = default_virtual_host("web", "web");
    let mirror = RequestMirrorPolicy { cluster: "web/canary".into(), ..Default::default() };
    let mirrored = VirtualHost {
        request_mirror_policies: vec![mirror],
        ..VirtualHost::decode(host.body.clone()).unwrap()
    };
    let read = |kind: Option<ResourceType>, body: XdsResource| {
        let mut memory = Memory::default();
        let refused = triage([Refused { instead: Some(body), ..refused("web", None) }]);
        match kind {
            Some(kind) => drop(memory.resources.insert(kind, refused)),
            None => memory.pieces = refused,
        }
        let mut memories = Memories::default();
        memories.note("one", "", memory);
        let read = Memories::decode(&memories.encode(""), "").unwrap().recall("one", "");
        let triage = kind.map_or(read.pieces.clone(), |kind| read.resources[&kind].clone());
        triage.refused().next().unwrap().instead.clone().unwrap()
    };
    assert_eq!(read(None, host.clone()), host);
    let mirrored = read(None, XdsResource::new("web", &mirrored));
    assert_eq!(mirrored.clusters().map(|name| &**name).collect::<Vec<_>>(), ["web", "web/canary"]);
    let routes = read(Some(ResourceType::Route), route::compose([mirrored].iter()));
    assert_eq!(routes.clusters().count(), 2);
    let egress = listener::egress(&NodeView::new("127.0.0.1:5875".parse().unwrap()));
    let found = read(Some(ResourceType::Listener), egress).refers.unwrap();
    assert!(found.routes.contains("egress") && found.clusters.is_empty());
    assert_eq!(read(Some(ResourceType::Cluster), default_cluster("web")).refers, None);
    assert_eq!(read(Some(ResourceType::Route), resource("x", "\u{ff}")).refers, None, "no matter what it is");
}

#[test]
fn a_refusal_without_what_was_accepted_before_would_take_that_away() {
    let large = "x".repeat(MAX_INSTEAD_BYTES + 1);
    let resources = [(ResourceType::Endpoint, triage([refused("large", Some(&large)), refused("a", None)]))];
    let mut memories = Memories::default();
    memories.note("n", "envoy", Memory { resources: resources.into(), pieces: Triage::default() });
    let read = Memories::decode(&memories.encode(""), "").unwrap().recall("n", "envoy");
    let names: Vec<_> = read.resources[&ResourceType::Endpoint].refused().map(|r| &*r.name).collect();
    assert_eq!(names, ["a"]);
}

#[test]
fn the_file_is_bounded_and_who_said_something_last_is_in_it() {
    let mut memories = Memories::default();
    let body = "x".repeat(MAX_INSTEAD_BYTES);
    for number in 0..100 {
        let pieces = triage([refused("web", Some(&body))]);
        memories.note(&number.to_string(), "", Memory { pieces, ..Memory::default() });
    }
    let file = memories.encode("");
    assert!(file.len() <= MAX_FILE_BYTES, "{}", file.len());
    let read = Memories::decode(&file, "").unwrap();
    assert!(!read.recall("99", "").pieces.is_idle() && read.recall("0", "").pieces.is_idle());
}

#[test]
fn what_is_not_whole_or_of_somebody_else_is_refused_with_its_reason() {
    let file = sample().encode("mesh");
    let error = |file: &[u8], scope: &str| Memories::decode(file, scope).unwrap_err().to_string();
    assert!(error(&file, "other").contains("belongs to the scope \"mesh\""));
    assert!(error(&file[..file.len() - 1], "mesh").contains("bytes where"));
    assert!(error(b"nonsense", "mesh").contains("something else"));
    assert!(error(&vec![0; MAX_FILE_BYTES + 1], "mesh").contains("more than"));
    let broken = State {
        scope: String::new(),
        clients: vec![ClientState {
            refused: vec![RefusedState { name: "a".into(), ..Default::default() }],
            ..Default::default()
        }],
    };
    let file = KIND.seal(|file| broken.encode(file).unwrap());
    assert_eq!(error(&file, ""), "the version of \"a\" in it has 0 bytes instead of 16");
    let file = KIND.seal(|file| file.extend([0xff; 9]));
    assert!(error(&file, "").contains("decoded"));
}

#[test]
fn whatever_the_bytes_are_they_are_refusals_or_refused() {
    let file = sample().encode("");
    let clients = |memories: Memories| memories.by_client.len();
    tower_fuzz::fuzz("refusals file", &[&file], &["TOWRREFU"], |input| {
        Memories::decode(input, "").map(clients)
    });
    // Behind the checksum, which nobody guesses.
    tower_fuzz::fuzz("refusals payload", &[KIND.open(&file).unwrap()], &["envoy", "web"], |input| {
        decode_payload(input, "").map(clients)
    });
}
