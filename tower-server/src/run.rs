//! Wires the parts together, and takes them down again.

use std::{future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use actix::{Actor, Addr, Arbiter, System};
use actix_web::{App, HttpServer, web};
use anyhow::{Context, anyhow};
use rand::Rng;
use tokio::{net::TcpSocket, runtime, signal::unix::SignalKind};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::TcpIncoming};
use tower_common::{FEATURE_LEVEL, canonical_scope, telemetry};
use tower_proto::v1;
use tracing::{error, info};

use crate::{
    fanout::{
        beacons::Beacons,
        frame,
        full::FullCache,
        log::{FrameLog, Limits},
        service::{FullSource, SyncService},
    },
    http::{self, AppState},
    metrics::{StoreMetrics, StreamCollector},
    options::Options,
    sources::{self, SourceHandle, spec},
    store_actor::{GetFull, HEARTBEAT_INTERVAL, StoreActor},
};

/// A Beacon that has heard nothing for this long moves to another Tower: three heartbeats.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// What one connection may have in the kernel's send buffer: it bounds what a Beacon costs that does not
/// read.
const SEND_BUFFER_BYTES: u32 = 128 << 10;

/// Connections that wait to be accepted, when all Beacons come at once.
const BACKLOG: u32 = 4096;

/// How long streams have to end when Tower goes.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// When Beacons shall come back after a goodbye. They add jitter.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Runs Tower until it is told to stop.
///
/// # Errors
/// If an option is wrong, an address is taken, or a part fails.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let specs = spec::parse_all(&options.discovery)?;
    // gRPC has threads of its own: thousands of streams must not hold up the actors, nor they the streams.
    let grpc_runtime = runtime::Builder::new_multi_thread().thread_name("grpc").enable_all().build()?;
    let system = System::new();
    let result = system.block_on(serve(options, specs, grpc_runtime.handle()));
    grpc_runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn serve(
    options: &Options,
    specs: Vec<spec::SourceSpec>,
    grpc_runtime: &runtime::Handle,
) -> anyhow::Result<()> {
    let scope = canonical_scope(&options.scope).to_owned();
    std::fs::create_dir_all(&options.data_dir)
        .with_context(|| format!("--data-dir {} cannot be made", options.data_dir.display()))?;
    let mut registry = telemetry::registry(env!("CARGO_PKG_VERSION"));
    let log = FrameLog::new(Limits::default());
    let fulls = Arc::new(FullCache::new(log.clone()));
    let beacons = Arc::new(Beacons::default());
    let store = {
        let (scope, log, fulls) = (scope.clone(), log.clone(), fulls.clone());
        let metrics = StoreMetrics::new(&mut registry);
        StoreActor::start_in_arbiter(&Arbiter::new().handle(), move |_| {
            StoreActor::new(&scope, log, fulls, metrics)
        })
    };
    let source_metrics = sources::Metrics::new(&mut registry);
    registry.register_collector(Box::new(StreamCollector { beacons: beacons.clone(), log: log.clone() }));

    let grpc_listener = bind_grpc(options.grpc_listen)?;
    let sources = sources::start(
        specs,
        &scope,
        &options.data_dir,
        options.guard_hold.0,
        store.clone().recipient(),
        source_metrics,
    )?;
    let sources = Arc::new(sources);
    let state = AppState {
        store: store.clone(),
        sources: sources.clone(),
        beacons: beacons.clone(),
        registry: Arc::new(registry),
    };
    let http = {
        let state = web::Data::new(state);
        HttpServer::new(move || App::new().app_data(state.clone()).configure(http::configure))
            .workers(1)
            .disable_signals()
            .bind(options.http_listen)
            .with_context(|| format!("--http-listen {} cannot be bound", options.http_listen))?
    };
    for address in http.addrs() {
        info!(service = "http", %address, "listening");
    }
    let http = http.run();
    let http_handle = http.handle();

    let address = grpc_listener.local_addr()?;
    let stopping = CancellationToken::new();
    let sync = SyncService::new(&scope, welcome(&scope), log.clone(), full_source(store, fulls), beacons);
    let grpc = grpc_runtime.spawn(serve_grpc(grpc_listener, sync, stopping.clone()));
    info!(service = "grpc", %address, "listening");

    tokio::select! {
        result = stop_signal() => info!(signal = result?, "stopping"),
        result = http => {
            result.context("the HTTP server failed")?;
            return Err(anyhow!("the HTTP server stopped"));
        }
    }
    log.append(vec![goodbye()]);
    log.close();
    stopping.cancel();
    match tokio::time::timeout(DRAIN_TIMEOUT, grpc).await {
        Ok(Ok(result)) => result.context("the gRPC server failed")?,
        Ok(Err(failure)) => return Err(failure).context("the gRPC server failed"),
        Err(_) => error!("streams did not end in time, and are cut"),
    }
    http_handle.stop(false).await;
    futures::future::join_all(sources.iter().map(SourceHandle::stop)).await;
    Ok(())
}

/// The listening socket. Accepted connections inherit the size of its send buffer.
fn bind_grpc(address: SocketAddr) -> anyhow::Result<tokio::net::TcpListener> {
    let bind = || -> io::Result<_> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().with_context(|| format!("--grpc-listen {address} cannot be bound"))
}

async fn serve_grpc(
    listener: tokio::net::TcpListener,
    sync: SyncService,
    stopping: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .add_service(sync)
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            stopping.cancelled_owned(),
        )
        .await
}

fn full_source(store: Addr<StoreActor>, fulls: Arc<FullCache>) -> FullSource {
    Arc::new(move || -> Pin<Box<dyn Future<Output = _> + Send>> {
        if let Some(full) = fulls.get() {
            return Box::pin(async move { Some(full) });
        }
        let store = store.clone();
        Box::pin(async move { store.send(GetFull).await.ok() })
    })
}

fn welcome(scope: &str) -> v1::Welcome {
    let run: u128 = rand::rng().random();
    v1::Welcome {
        tower: format!("{run:032x}"),
        feature_level: FEATURE_LEVEL,
        heartbeat_interval_ms: millis(HEARTBEAT_INTERVAL),
        silence_limit_ms: millis(SILENCE_LIMIT),
        scope: scope.to_owned(),
    }
}

fn goodbye() -> bytes::Bytes {
    let goodbye =
        v1::Goodbye { reason: v1::goodbye::Reason::Draining.into(), retry_after_ms: millis(RETRY_AFTER) };
    frame::framed(&v1::WatchResponse { goodbye: Some(goodbye), ..Default::default() })
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

async fn stop_signal() -> io::Result<&'static str> {
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let mut interrupt = tokio::signal::unix::signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
