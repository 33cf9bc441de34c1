//! What many clients, and bad ones, cost in memory. A program of its own, because it measures its own.

mod slow_reader;
#[path = "../xds_grpc/support.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod support;

use std::time::Duration;

use anyhow::ensure;
use beacon_agent::xds::ResourceType;
use futures::future::join_all;
use tokio::runtime::Handle;
use tonic::{
    Code,
    transport::{Channel, Endpoint},
};
use tower_proto::envoy::{
    envoy::service::discovery::v3::{
        DiscoveryRequest, aggregated_discovery_service_client::AggregatedDiscoveryServiceClient,
    },
    google::rpc,
};
use tower_tests::eventually;

use crate::support::{World, composition, sotw, within};

const SOON: Duration = Duration::from_secs(20);

/// One test at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

type Client = AggregatedDiscoveryServiceClient<Channel>;

/// Of all ways to end a stream, the one with this number.
async fn come_and_go(mut client: Client, way: usize) {
    let request = match way % 4 {
        // Rejected: it does not say who it is, or what it wants.
        0 if way.is_multiple_of(8) => DiscoveryRequest { node: None, ..sotw(ResourceType::Cluster, &[]) },
        0 => DiscoveryRequest { type_url: String::new(), ..sotw(ResourceType::Cluster, &[]) },
        _ => sotw(ResourceType::Cluster, &[]),
    };
    let (requests, receiver) = tokio::sync::mpsc::channel(2);
    requests.send(request).await.unwrap();
    let requested = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut responses = client.stream_aggregated_resources(requested).await.unwrap().into_inner();
    let first = within(responses.message()).await;
    match way % 4 {
        0 => assert_eq!(first.unwrap_err().code(), Code::InvalidArgument),
        // Closed: no more requests, and then no more responses.
        1 => {
            drop(requests);
            assert!(within(responses.message()).await.unwrap().is_none());
        }
        // Rejects what it gets, and is reset.
        2 => {
            let error_detail = Some(rpc::Status { code: 13, message: "no".into(), ..Default::default() });
            let nonce = first.unwrap().unwrap().nonce;
            let nack = DiscoveryRequest { response_nonce: nonce, error_detail, ..Default::default() };
            let type_url = ResourceType::Cluster.url().to_owned();
            requests.send(DiscoveryRequest { type_url, ..nack }).await.unwrap();
        }
        // Reset.
        _ => {}
    }
}

async fn streams(world: &World, count: usize) {
    const CONNECTIONS: usize = 10;
    const AT_ONCE: usize = 100;
    for round in 0..count / (CONNECTIONS * AT_ONCE) {
        let connections = (0..CONNECTIONS).map(|connection| async move {
            let url = format!("http://{}", world.address);
            let client = Client::new(Endpoint::from_shared(url).unwrap().connect().await.unwrap());
            let way = |number| round + connection + number;
            join_all((0..AT_ONCE).map(|number| come_and_go(client.clone(), way(number)))).await;
        });
        join_all(connections).await;
    }
    eventually(SOON, "nobody is connected", async || {
        let clients = world.clients.snapshot().len();
        let streams = world.metric("xds_streams{mode=\"sotw\"}");
        ensure!(clients == 0 && streams == "0", "{clients} clients, {streams} streams");
        Ok(())
    })
    .await;
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// istio/istio#10822, envoyproxy/go-control-plane#570, hashicorp/consul#23231
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b19_twenty_thousand_streams_leave_nothing_behind() {
    let _alone = ALONE.lock().await;
    let world = World::new(composition(&[("a", 100), ("b", 100)])).await;
    // Pools and allocators have their fill after some.
    streams(&world, 4000).await;
    let (memory, tasks) = (resident_kib(), Handle::current().metrics().num_alive_tasks());
    streams(&world, 20_000).await;
    eventually(SOON, "no task is left", async || {
        let now = Handle::current().metrics().num_alive_tasks();
        ensure!(now <= tasks + 4, "{now} tasks, and {tasks} before");
        Ok(())
    })
    .await;
    let now = resident_kib();
    assert!(now <= memory + memory / 10 + 4096, "{now} KiB, and {memory} KiB before");
    assert!(world.metric("xds_quarantined") == "0");
}
