//! Clients beside each other, and messages that fit.

use beacon_agent::xds::ResourceType;
use tower_proto::envoy::{envoy::service::discovery::v3::DeltaDiscoveryRequest, google::rpc};

use crate::support::{World, composition, delta, sotw};

/// envoyproxy/xds-relay#165: a client that rejects everything, and one beside it.
#[tokio::test]
async fn b14_a_client_that_rejects_everything_starves_nobody() {
    let world = World::new(composition(&[("a", 1)])).await;
    let (mut bad, mut good) = (world.delta().await, world.delta().await);
    bad.send(delta(ResourceType::Cluster, &[])).await;
    good.send(delta(ResourceType::Cluster, &[])).await;
    for size in 2..5 {
        let response = bad.next().await;
        let error = rpc::Status { code: 13, message: "never".to_owned(), ..Default::default() };
        let nack = DeltaDiscoveryRequest {
            response_nonce: response.nonce,
            error_detail: Some(error),
            ..delta(ResourceType::Cluster, &[])
        };
        bad.send(nack).await;
        let response = good.next().await;
        assert_eq!(response.resources.len(), 1);
        let ack =
            DeltaDiscoveryRequest { response_nonce: response.nonce, ..delta(ResourceType::Cluster, &[]) };
        good.send(ack).await;
        world.clients_are(|clients| clients[0].quarantined.len() == 1).await;
        assert!(world.clients.snapshot()[1].quarantined.is_empty());
        // Its rejection is reported under its own name.
        let reports = world.clients.reports();
        let errors: Vec<&str> = reports.iter().map(|report| report.types[0].error.as_str()).collect();
        assert_eq!(errors, ["a: never", ""]);
        world.compositions.send(composition(&[("a", size)])).unwrap();
    }
}

/// grpc/grpc-go#5790, kumahq/kuma#18127: a receiver takes 4 MiB.
#[tokio::test]
async fn b26_no_message_is_larger_than_a_receiver_takes() {
    let services: Vec<String> = (0..3000).map(|number| format!("service-{number:04}")).collect();
    let sized: Vec<(&str, usize)> = services.iter().map(|service| (service.as_str(), 4096)).collect();
    let world = World::new(composition(&sized)).await;
    let names: Vec<&str> = services.iter().map(String::as_str).collect();
    // The clients of this test have gRPC's limit.
    let mut stream = world.sotw().await;
    stream.send(sotw(ResourceType::Endpoint, &names)).await;
    let mut got = 0;
    while got < services.len() {
        got += stream.next().await.resources.len();
    }
    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Cluster, &[])).await;
    let mut got = 0;
    while got < services.len() {
        got += stream.next().await.resources.len();
    }
    assert_eq!(got, services.len());
}
