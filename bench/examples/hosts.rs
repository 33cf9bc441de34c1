//! Thousands of hosts for a Tower that runs, so that its pages and its API can be looked at with a large fleet:
//! `cargo run --example hosts -- --tower 127.0.0.1:5870 --hosts 10000`. They speak the protocol, say that they
//! hold what they are told to, and answer probes; they hold nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::Parser;
use futures::{StreamExt, stream};
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tower_proto::v1::{self, held_release::State, sync_client::SyncClient, watch_request::Request};

/// Hosts that share a connection.
const PER_CONNECTION: usize = 200;

/// How many connect at the same time.
const AT_ONCE: usize = 64;

#[derive(Debug, Parser)]
struct Options {
    /// Where Tower listens for Beacons
    #[arg(long)]
    tower: String,
    /// How many hosts
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    /// Services of which each host says that it holds a release
    #[arg(long, default_value_t = 20)]
    services: usize,
    /// How many hosts say that an Envoy of theirs refuses one
    #[arg(long, default_value_t = 25)]
    refusing: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Arc::new(Options::parse());
    let connections: Vec<Channel> = stream::iter(0..options.hosts.div_ceil(PER_CONNECTION))
        .then(|_| connect(&options.tower))
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .collect::<Result<_>>()?;
    let (run, revision) = here(&connections[0]).await?;
    let up = Arc::new(AtomicUsize::new(0));
    let hosts = stream::iter(0..options.hosts).map(|number| {
        let channel = connections[number / PER_CONNECTION].clone();
        let (options, run, up) = (options.clone(), run.clone(), up.clone());
        async move {
            let stream = open(channel, hello(number, &run, revision)).await?;
            let count = up.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(1000) {
                eprintln!("{count} hosts");
            }
            tokio::spawn(stay(stream, number, revision, options));
            anyhow::Ok(())
        }
    });
    let outcomes: Vec<_> = hosts.buffer_unordered(AT_ONCE).collect().await;
    outcomes.into_iter().collect::<Result<Vec<_>>>()?;
    eprintln!("{} hosts are connected; Ctrl-C ends them", options.hosts);
    tokio::signal::ctrl_c().await?;
    Ok(())
}

async fn connect(tower: &str) -> Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{tower}"))?.timeout(Duration::from_secs(86_400));
    endpoint.connect().await.with_context(|| format!("no Tower at {tower}"))
}

struct Stream {
    requests: mpsc::Sender<v1::WatchRequest>,
    responses: tonic::Streaming<v1::WatchResponse>,
}

async fn open(channel: Channel, hello: v1::Hello) -> Result<Stream> {
    let (requests, receiver) = mpsc::channel(4);
    requests.send(request(Request::Hello(hello))).await?;
    let receiver = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|request| (request, receiver))
    });
    let mut client = SyncClient::new(channel).max_decoding_message_size(64 << 20);
    let responses = client.watch(receiver).await?.into_inner();
    Ok(Stream { requests, responses })
}

/// The run of the Tower, and the revision that it is at.
async fn here(channel: &Channel) -> Result<(String, u64)> {
    let mut stream = open(channel.clone(), hello(usize::MAX, "", 0)).await?;
    let mut run = String::new();
    while let Some(response) = stream.responses.message().await? {
        if let Some(welcome) = response.welcome {
            run = welcome.tower;
        }
        if let Some(commit) = response.commit {
            return Ok((run, commit.to_revision));
        }
    }
    bail!("Tower ended the stream")
}

fn hello(number: usize, tower: &str, revision: u64) -> v1::Hello {
    let letter = |of: usize| char::from(b'a' + u8::try_from(number % of).unwrap_or(0));
    let workload = v1::Workload {
        service: format!("service-{:04}", number % 40),
        cluster: format!("main-{}", letter(2)),
    };
    let labels = [
        ("rack".to_owned(), format!("r{:02}", number % 32)),
        ("tier".to_owned(), format!("t{}", number % 3)),
    ];
    let node = v1::Node {
        id: if number == usize::MAX { "scout".to_owned() } else { format!("host-{number:05}") },
        zone: format!("us-east-1{}", letter(6)),
        labels: labels.into(),
        workloads: vec![workload],
        build: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let feature_level = tower_common::FEATURE_LEVEL;
    v1::Hello { node: Some(node), tower: tower.to_owned(), revision, feature_level, ..Default::default() }
}

/// Says what it holds, and answers probes, until the stream ends.
async fn stay(mut stream: Stream, number: usize, revision: u64, options: Arc<Options>) {
    let releases = (0..options.services).map(|service| {
        let refused = service == 0 && number % (options.hosts / options.refusing.max(1)).max(1) == 7;
        let text = |text: &str| if refused { text.to_owned() } else { String::new() };
        v1::HeldRelease {
            service: format!("service-{service:04}"),
            release: "simulated".to_owned(),
            state: if refused { State::Rejected } else { State::Accepted }.into(),
            client: text("envoy"),
            type_url: text("type.googleapis.com/envoy.config.cluster.v3.Cluster"),
            resource: text("service-0000"),
            error: text("Didn't find a registered implementation for 'simulated'"),
        }
    });
    let clients = vec![v1::ClientReport { node_id: "envoy".to_owned(), types: Vec::new() }];
    let first =
        v1::Report { revision, clients: clients.clone(), releases: releases.collect(), ..Default::default() };
    let mut report = Some(first);
    let mut revision = revision;
    loop {
        if let Some(report) = report.take()
            && stream.requests.send(request(Request::Report(report))).await.is_err()
        {
            return;
        }
        let Ok(Some(response)) = stream.responses.message().await else { return };
        if let Some(commit) = response.commit {
            revision = commit.to_revision;
        }
        report = response.heartbeat.map(|heartbeat| v1::Report {
            revision,
            clients: clients.clone(),
            applied: Some(v1::Applied { heartbeat: heartbeat.number, micros_ago: 0 }),
            ..Default::default()
        });
    }
}

fn request(request: Request) -> v1::WatchRequest {
    v1::WatchRequest { request: Some(request) }
}
