//! What each client was sent, for people.

use std::time::Duration;

use anyhow::ensure;
use beacon_agent::xds::{ResourceType, dump::dump};
use tower_tests::eventually;

use crate::support::{World, composition, delta, sotw};

#[tokio::test]
async fn each_stream_tells_and_one_that_does_not_read_is_named() {
    let world = World::new(composition(&[("a", 0), ("b", 0)])).await;
    let mut reading = world.sotw().await;
    reading.send(sotw(ResourceType::Cluster, &[])).await;
    reading.next().await;
    reading.send(sotw(ResourceType::Endpoint, &["a"])).await;
    reading.next().await;

    let dumped = dump(&world.clients, Some("node-1")).await;
    let resources = dumped[0].resources.as_ref().unwrap();
    let names = |kind: &str| {
        let all = resources[kind].as_array().unwrap().iter();
        all.map(|resource| resource["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names("cds"), names("eds")), (vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned()]));
    assert!(resources["cds"][0]["accepted"] == false, "it has not said so yet");
    assert!(dump(&world.clients, Some("nobody")).await.is_empty());

    // A stream whose client does not read is not polled once its connection is full.
    let large = World::new(composition(&[("a", 8 << 20)])).await;
    let stalled = large.delta().await;
    for _ in 0..8 {
        stalled.send(delta(ResourceType::Cluster, &["*"])).await;
    }
    eventually(Duration::from_secs(20), "it does not answer", async || {
        let dumped = dump(&large.clients, None).await;
        let answers: Vec<bool> = dumped.iter().map(|dump| dump.resources.is_some()).collect();
        ensure!(answers == [false], "{answers:?}");
        Ok(())
    })
    .await;
}
