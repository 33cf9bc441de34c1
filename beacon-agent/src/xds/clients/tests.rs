//! What is listed and reported.

use tower_common::view::NodeView;
use tower_proto::envoy::google::rpc::Status;

use super::*;

fn identity(node_id: &str) -> Identity {
    Identity {
        node_id: node_id.to_owned(),
        cluster: "edge".to_owned(),
        user_agent: "envoy 1.40.0".to_owned(),
        view: NodeView::new("127.0.0.1:5875".parse().unwrap()),
        complaint: None,
    }
}

fn received(answer: Answer) -> Received {
    Received::Known { kind: ResourceType::Cluster, answer: Some(answer), wildcard: true, names: 0 }
}

fn nack(message: &str) -> Received {
    let status = Status { message: message.to_owned(), ..Default::default() };
    received(Answer::Nack { nonce: "7".into(), version: "v".into(), status })
}

#[test]
fn streams_of_one_node_are_listed_apart_and_only_while_they_live() {
    let clients = Clients::new();
    let first = clients.connect(&identity("n"), Mode::Delta, Scope::Aggregated, Peer::Tcp(None));
    let second = clients.connect(&identity("n"), Mode::Sotw, Scope::Aggregated, Peer::Tcp(None));
    let modes: Vec<Mode> = clients.snapshot().iter().map(|client| client.mode).collect();
    assert_eq!(modes, [Mode::Delta, Mode::Sotw]);
    drop(first);
    assert_eq!(clients.snapshot().len(), 1);
    drop(second);
    assert!(clients.snapshot().is_empty());
}

#[test]
fn a_rejection_is_shown_until_something_is_accepted() {
    let clients = Clients::new();
    let mut changes = clients.changes();
    let connection = clients.connect(&identity("n"), Mode::Delta, Scope::Aggregated, Peer::Tcp(None));
    connection.received(&nack("unknown field"));
    let state = clients.snapshot().remove(0).types.remove(&ResourceType::Cluster).unwrap();
    let rejection = state.rejected.unwrap();
    assert_eq!(
        (rejection.message.as_str(), rejection.response.nonce.as_str(), rejection.reason),
        ("unknown field", "7", Reason::Content)
    );
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    connection.received(&received(Answer::Stale));
    assert!(clients.snapshot()[0].types[&ResourceType::Cluster].rejected.is_some());
    connection.received(&received(Answer::Ack { nonce: "8".into(), version: "w".into() }));
    let state = clients.snapshot().remove(0).types.remove(&ResourceType::Cluster).unwrap();
    assert_eq!((state.rejected, state.accepted.unwrap().version.as_str()), (None, "w"));
    assert_eq!(state.requests, 3);
    assert!(changes.has_changed().unwrap());
}

#[test]
fn a_long_message_is_cut() {
    let clients = Clients::new();
    let connection = clients.connect(&identity("n"), Mode::Delta, Scope::Aggregated, Peer::Tcp(None));
    connection.received(&nack(&"ä".repeat(1 << 20)));
    let client = clients.snapshot().remove(0);
    let kept = client.types[&ResourceType::Cluster].rejected.as_ref().unwrap().message.len();
    assert_eq!(kept, MESSAGE_BYTES);
}

#[test]
fn a_taken_port_is_the_hosts_fault() {
    let taken =
        "Error adding/updating listener(s) egress: cannot bind '127.0.0.1:5875': Address already in use";
    assert_eq!(Reason::of(taken), Reason::Host);
    assert_eq!(Reason::of("Proto constraint validation failed"), Reason::Content);
}

#[test]
fn a_report_tells_what_was_accepted_and_what_was_rejected_since() {
    let clients = Clients::new();
    let connection = clients.connect(&identity("n"), Mode::Delta, Scope::Aggregated, Peer::Tcp(None));
    connection.received(&received(Answer::Ack { nonce: "6".into(), version: "u".into() }));
    connection.received(&nack("no"));
    let expected = v1::TypeReport {
        type_url: ResourceType::Cluster.url().to_owned(),
        accepted_version: "u".to_owned(),
        rejected_version: "v".to_owned(),
        error: "no".to_owned(),
        ..Default::default()
    };
    assert_eq!(clients.reports(), [v1::ClientReport { node_id: "n".into(), types: vec![expected] }]);
}

#[test]
fn what_is_kept_from_a_client_is_reported_until_it_is_not() {
    let clients = Clients::new();
    let connection = clients.connect(&identity("n"), Mode::Delta, Scope::Aggregated, Peer::Tcp(None));
    let kept = Quarantined {
        r#type: ResourceType::Cluster,
        name: "a".to_owned(),
        version: "x".to_owned(),
        message: "bad".to_owned(),
    };
    connection.quarantined(&[kept], Memory::default());
    connection.received(&received(Answer::Ack { nonce: "6".into(), version: "u".into() }));
    let report = clients.reports().remove(0).types.remove(0);
    assert_eq!((report.error.as_str(), report.rejected_version.as_str()), ("a: bad", "x"));
    assert_eq!(report.quarantined[0].name, "a");
    connection.quarantined(&[], Memory::default());
    assert!(clients.reports()[0].types[0].error.is_empty());
}

#[test]
fn no_answer_is_no_acceptance() {
    let clients = Clients::new();
    let connection = clients.connect(&identity("n"), Mode::Delta, Scope::Aggregated, Peer::Tcp(None));
    let state = || clients.snapshot()[0].types[&ResourceType::Cluster].state;
    let send = |nonce| {
        connection.sent(&Batch {
            kind: ResourceType::Cluster,
            nonce,
            version: Default::default(),
            resources: Vec::new(),
            removed: Vec::new(),
            refreshed: Default::default(),
        });
    };
    send(1);
    assert_eq!(state(), SyncState::Waiting);
    send(2);
    connection.received(&received(Answer::Ack { nonce: "1".into(), version: "u".into() }));
    assert_eq!(state(), SyncState::Waiting, "that was the one before");
    connection.received(&received(Answer::Ack { nonce: "2".into(), version: "u".into() }));
    assert_eq!(state(), SyncState::Accepted);
}

#[test]
fn a_snapshot_is_plain_json() {
    let clients = Clients::new();
    let connection = clients.connect(&identity("n"), Mode::Delta, Scope::Aggregated, Peer::Tcp(None));
    connection.received(&nack("no"));
    let json = serde_json::to_value(clients.snapshot()).unwrap();
    assert_eq!(json[0]["node_id"], "n");
    assert_eq!(json[0]["mode"], "delta");
    assert_eq!(json[0]["egress"], "127.0.0.1:5875");
    assert_eq!(json[0]["types"]["cds"]["rejected"]["nonce"], "7");
    assert_eq!(json[0]["types"]["cds"]["rejected"]["reason"], "content");
}
