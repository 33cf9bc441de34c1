//! Wires the parts together, and takes them down again.

use std::{io, sync::Arc, time::Duration};

use actix::{Actor, Addr, Arbiter, System};
use actix_web::{App, HttpServer, web};
use anyhow::{Context, anyhow};
use rand::Rng;
use tokio::{runtime, signal::unix::SignalKind};
use tokio_util::sync::CancellationToken;
use tower_common::{
    FEATURE_LEVEL, canonical_scope,
    served::Served,
    telemetry,
    tls::{Reloading, ServerFiles, server},
};
use tower_proto::v1;
use tracing::{error, info};

use crate::{
    api::{self, AppState, stream::Streams},
    auth::{connection, first, gate::Credentials},
    decisions,
    fanout::{
        admission::Admission,
        beacons::Beacons,
        body::FetchStart,
        log::{FrameLog, Limits},
        service::{self, Starts, SyncService},
    },
    fleet::driver,
    grpc,
    metrics::{StoreMetrics, StreamCollector},
    options::Options,
    registry,
    sources::{self, SourceHandle, spec},
    store_actor::{Ask, GetBuckets, GetStart, HEARTBEAT_INTERVAL, StoreActor},
};

/// A Beacon that has heard nothing for this long moves to another Tower: three heartbeats.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// What may be on its way to Beacons that start over: more would only make all of them wait longer.
const START_BYTES_UNDER_WAY: u64 = 256 << 20;

/// After so many entries of the event log a checkpoint of what it has come to is kept.
const CHECKPOINT_EVERY: u64 = 1_000;

/// How long the start waits for the log, and for the token of the first admin in it.
const FIRST_TOKEN: Duration = Duration::from_secs(5);

/// How long streams have to end when Tower goes.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a Beacon that has been said goodbye to may go on following. Less than [`DRAIN_TIMEOUT`], so that
/// streams end in good order.
const HAND_OVER: Duration = Duration::from_secs(4);

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
    let stopping = CancellationToken::new();
    let served = options.served()?;
    info!(serve = ?options.serve, "what Beacons are sent");
    std::fs::create_dir_all(&options.data_dir)
        .with_context(|| format!("--data-dir {} cannot be made", options.data_dir.display()))?;
    let mut metrics = telemetry::registry(env!("CARGO_PKG_VERSION"));
    let log = FrameLog::new(Limits::default());
    let admission = Admission::new(START_BYTES_UNDER_WAY);
    let beacons = Arc::new(Beacons::default());
    let store = {
        let (scope, served, log) = (scope.clone(), served.clone(), log.clone());
        let (of_store, warn_services) =
            (StoreMetrics::new(&mut metrics, beacons.probes().clone()), options.warn_services);
        StoreActor::start_in_arbiter(&Arbiter::new().handle(), move |_| {
            StoreActor::new(&scope, served, warn_services, log, of_store)
        })
    };
    let source_metrics = sources::Metrics::new(&mut metrics);
    metrics.register_collector(Box::new(StreamCollector {
        beacons: beacons.clone(),
        log: log.clone(),
        admission: admission.clone(),
    }));

    let tls = options.tls().map_err(anyhow::Error::msg)?.map(start_tls).transpose()?;
    if let Some(tls) = &tls {
        metrics.register_collector(tls.collector("tower"));
    }
    let grpc_listener = grpc::bind(options.grpc_listen)?;
    let sources = sources::start(
        specs,
        &scope,
        &options.data_dir,
        options.guard_hold.0,
        store.clone().recipient(),
        source_metrics,
    )?;
    let sources = Arc::new(sources);
    let run = format!("{:032x}", rand::rng().random::<u128>());
    let decided = registry::start(registry::Options {
        target: options.event_log()?,
        data_dir: options.data_dir.clone(),
        scope: scope.clone(),
        run: run.clone(),
        checkpoint_every: CHECKPOINT_EVERY,
        store: store.clone(),
        hosts: beacons.fleet().clone(),
    })
    .await?;
    actix::spawn(driver::run(driver::Options {
        registry: decided.clone(),
        fleet: beacons.fleet().clone(),
        run: run.clone(),
        deadline: driver::DEADLINE,
    }));
    let first = actix::spawn(first::see_to(decided.clone(), options.data_dir.clone()));
    // Where the log is at hand, whoever finds Tower listening finds the token, too.
    let _ = tokio::time::timeout(FIRST_TOKEN, first).await;
    let state = AppState {
        registry: decided.clone(),
        log_target: options.event_log.clone(),
        streams: Streams::new(stopping.clone()),
        store: store.clone(),
        carried_out: decisions::follow(decided.clone(), sources.clone()),
        sources: sources.clone(),
        beacons: beacons.clone(),
        tls: tls.clone(),
        scope: scope.clone(),
        costly: Arc::default(),
        served: served.clone(),
        warn_services: options.warn_services,
        metrics: Arc::new(metrics),
    };
    let http = {
        let state = web::Data::new(state);
        let credentials = web::Data::new(Credentials::of(decided));
        let app = move || {
            App::new().app_data(state.clone()).app_data(credentials.clone()).configure(api::configure)
        };
        let http = HttpServer::new(app).on_connect(connection::note).workers(1).disable_signals();
        match tls.as_ref().filter(|_| !options.http_listen.ip().is_loopback()) {
            Some(tls) => http.bind_rustls_0_23(options.http_listen, server::http_config(tls)),
            None => http.bind(options.http_listen),
        }
        .with_context(|| format!("--http-listen {} cannot be bound", options.http_listen))?
    };
    for address in http.addrs() {
        info!(service = "http", %address, "listening");
    }
    let http = http.run();
    let http_handle = http.handle();

    let address = grpc_listener.local_addr()?;
    let sync = SyncService::new(service::Options {
        welcome: welcome(run, &scope, &served),
        scope,
        log: log.clone(),
        starts: Arc::new(StoreStarts(store.clone())),
        admission,
        beacons: beacons.clone(),
        stream_age: options.stream_age.0,
        hand_over: HAND_OVER,
        stopping: stopping.clone(),
    });
    let grpc = grpc_runtime.spawn(grpc::serve(grpc_listener, tls, beacons, sync, stopping.clone()));
    info!(service = "grpc", %address, "listening");

    tokio::select! {
        result = stop_signal() => info!(signal = result?, "stopping"),
        result = http => {
            result.context("the HTTP server failed")?;
            return Err(anyhow!("the HTTP server stopped"));
        }
    }
    // Sources and store go on: what happens meanwhile reaches the Beacons that are still here.
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

/// Files that cannot be used at the start are a failure: nobody could connect.
fn start_tls(files: ServerFiles) -> anyhow::Result<Reloading<ServerFiles>> {
    let tls = Reloading::new(files);
    tls.current().map_err(anyhow::Error::msg)?;
    tls.watch().context("the TLS files cannot be watched")?;
    Ok(tls)
}

/// The store actor, as streams see it.
struct StoreStarts(Addr<StoreActor>);

impl Starts for StoreStarts {
    fn start(&self, ask: Ask) -> FetchStart {
        let answer = self.0.send(GetStart(ask));
        Box::pin(async move { answer.await.ok() })
    }

    fn buckets(&self, buckets: v1::Buckets, at_least: u64) -> FetchStart {
        let answer = self.0.send(GetBuckets { buckets, at_least });
        Box::pin(async move { answer.await.ok() })
    }
}

fn welcome(run: String, scope: &str, served: &Served) -> v1::Welcome {
    v1::Welcome {
        tower: run,
        feature_level: FEATURE_LEVEL,
        heartbeat_interval_ms: millis(HEARTBEAT_INTERVAL),
        silence_limit_ms: millis(SILENCE_LIMIT),
        scope: scope.to_owned(),
        served: served.to_proto(),
    }
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
