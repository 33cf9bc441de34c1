//! What a client gets, what of it is seen, and how streams end.

use beacon_agent::xds::{self, Mode, ResourceType};
use futures::StreamExt;
use prost::Message;
use tonic::Code;
use tower_common::view::Composition;
use tower_proto::envoy::{
    envoy::{
        config::listener::v3::Listener,
        service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest},
    },
    google::{protobuf::value::Kind, rpc},
};

use crate::support::{Stream, World, composition, delta, node, sotw, within};

#[tokio::test]
async fn a_client_gets_what_it_asks_for_and_then_what_changes() {
    let world = World::new(composition(&[("a", 0), ("b", 0)])).await;
    let mut stream = world.sotw().await;
    stream.send(sotw(ResourceType::Cluster, &[])).await;
    let first = stream.next().await;
    assert_eq!((first.resources.len(), first.nonce.as_str()), (2, "1"));
    assert_eq!(first.control_plane.unwrap().identifier, "beacon/test");
    // The node is named once.
    let ack = DiscoveryRequest { response_nonce: first.nonce, ..sotw(ResourceType::Cluster, &[]) };
    stream.send(DiscoveryRequest { node: None, ..ack }).await;
    world.compositions.send(composition(&[("a", 0)])).unwrap();
    assert_eq!(stream.next().await.resources.len(), 1);

    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Endpoint, &["a", "x"])).await;
    let first = stream.next().await;
    assert_eq!((first.resources.len(), first.removed_resources), (1, vec!["x".to_owned()]));
    let ack = DeltaDiscoveryRequest { response_nonce: first.nonce, ..delta(ResourceType::Endpoint, &[]) };
    stream.send(DeltaDiscoveryRequest { node: None, ..ack }).await;
    world.compositions.send(composition(&[("a", 0), ("x", 0)])).unwrap();
    assert_eq!(stream.next().await.resources[0].name, "x");
}

#[tokio::test]
async fn a_rejection_is_seen_and_a_stream_that_ends_is_gone() {
    let world = World::new(composition(&[("a", 0)])).await;
    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Cluster, &[])).await;
    let response = stream.next().await;
    let error = rpc::Status { code: 13, message: "no such filter".to_owned(), ..Default::default() };
    let nack = DeltaDiscoveryRequest {
        response_nonce: response.nonce.clone(),
        error_detail: Some(error),
        ..delta(ResourceType::Cluster, &[])
    };
    stream.send(nack).await;
    world
        .clients_are(|clients| {
            let client = clients.first();
            let rejected = client.and_then(|c| c.types.get(&ResourceType::Cluster)?.rejected.as_ref());
            rejected.is_some_and(|rejected| {
                rejected.message == "no such filter"
                    && rejected.response.version == response.system_version_info
            })
        })
        .await;
    let client = world.clients.snapshot().remove(0);
    assert_eq!(
        (client.node_id.as_str(), client.mode, matches!(client.peer, xds::Peer::Tcp(Some(_)))),
        ("node-1", Mode::Delta, true)
    );
    assert_eq!(world.metric("xds_nacks_total{type=\"cds\",reason=\"content\"}"), "1");
    assert_eq!(world.metric("xds_streams{mode=\"delta\"}"), "1");
    drop(stream);
    world.clients_are(<[_]>::is_empty).await;
}

#[tokio::test]
async fn bad_first_requests_are_refused_by_name() {
    let world = World::new(composition(&[])).await;
    let mut stream = world.sotw().await;
    stream.send(DiscoveryRequest { node: None, ..sotw(ResourceType::Cluster, &[]) }).await;
    let status = stream.error().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("node is missing"), "{status:?}");

    let mut stream = world.delta().await;
    let untyped = DeltaDiscoveryRequest { type_url: String::new(), ..delta(ResourceType::Cluster, &[]) };
    stream.send(untyped).await;
    let status = stream.error().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("type_url is missing"), "{status:?}");
    world.clients_are(<[_]>::is_empty).await;
}

#[tokio::test]
async fn until_everything_is_loaded_envoy_waits_and_grpc_is_sent_elsewhere() {
    let world = World::new(Composition::default()).await;
    let mut envoy = world.sotw().await;
    envoy.send(sotw(ResourceType::Cluster, &[])).await;
    let mut grpc = world.sotw().await;
    let target = sotw(ResourceType::Listener, &["x"]);
    grpc.send(DiscoveryRequest { node: node("gRPC Go", None), ..target }).await;
    assert_eq!(grpc.error().await.code(), Code::Unavailable);
    world.clients_are(|clients| clients.len() == 1 && clients[0].types.len() == 1).await;
    world.compositions.send(composition(&[("a", 0)])).unwrap();
    assert_eq!(envoy.next().await.resources.len(), 1);
}

#[tokio::test]
async fn an_envoy_says_where_it_listens() {
    let world = World::new(composition(&[])).await;
    let cases = [
        (Kind::NumberValue(7001.0), "PortValue(7001)"),
        (Kind::StringValue("7002".to_owned()), "PortValue(7002)"),
        (Kind::StringValue("none".to_owned()), "PortValue(5875)"),
    ];
    for (port, expected) in cases {
        let mut stream = world.sotw().await;
        let node = node("envoy", Some(port));
        stream.send(DiscoveryRequest { node, ..sotw(ResourceType::Listener, &[]) }).await;
        let any = stream.next().await.resources.remove(0);
        let address = format!("{:?}", Listener::decode(any.value.as_slice()).unwrap().address);
        assert!(address.contains(expected), "{address}");
    }
}

#[tokio::test]
async fn a_reader_that_stops_costs_little_and_then_gets_the_newest() {
    let large = |round: usize| composition(&[("a", (1 << 20) + round)]);
    let world = World::new(large(0)).await;
    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Cluster, &[])).await;
    world.clients_are(|clients| clients.first().is_some_and(|client| !client.types.is_empty())).await;
    // It asks for all again and again, which is never held back, and reads nothing.
    for round in 1..=300 {
        stream.send(delta(ResourceType::Cluster, &["*"])).await;
        world.compositions.send(large(round)).unwrap();
    }
    let requests = |clients: &[xds::clients::Client]| clients[0].types[&ResourceType::Cluster].requests;
    world.clients_are(|clients| requests(clients) > 0).await;
    let newest = large(300).clusters["a"].version.to_string();
    let mut read = 0;
    loop {
        let response = stream.next().await;
        read += 1;
        if response.resources[0].version == newest {
            break;
        }
        let ack =
            DeltaDiscoveryRequest { response_nonce: response.nonce, ..delta(ResourceType::Cluster, &[]) };
        stream.send(ack).await;
    }
    assert!(read <= 20, "{read} responses were waiting");
}

#[tokio::test]
async fn streams_that_end_in_any_way_leave_nothing_behind() {
    let world = World::new(composition(&[("a", 0)])).await;
    for round in 0..60 {
        let mut stream = world.sotw().await;
        match round % 3 {
            0 => {
                stream.send(sotw(ResourceType::Cluster, &[])).await;
                stream.next().await;
                let Stream { requests, mut responses } = stream;
                drop(requests);
                assert!(within(responses.next()).await.is_none(), "a half-closed stream is closed");
            }
            1 => stream.send(sotw(ResourceType::Cluster, &[])).await,
            _ => {
                stream.send(DiscoveryRequest::default()).await;
                stream.error().await;
            }
        }
    }
    world.clients_are(<[_]>::is_empty).await;
    assert_eq!(world.metric("xds_streams_refused_total"), "20");
}

#[tokio::test]
async fn when_the_beacon_stops_streams_end_with_a_reason() {
    let world = World::new(composition(&[("a", 0)])).await;
    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Cluster, &[])).await;
    stream.next().await;
    drop(world.compositions);
    assert_eq!(stream.error().await.code(), Code::Unavailable);
}
