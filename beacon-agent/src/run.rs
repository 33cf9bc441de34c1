//! Wires the parts together, and takes them down again.

use std::{io::Write as _, net::SocketAddr, sync::Arc, time::Duration};

use actix_web::{App, HttpServer, web};
use anyhow::Context;
use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    runtime,
    signal::unix::SignalKind,
    sync::{Notify, watch},
};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::{service::Routes, transport::server::TcpIncoming};
use tower_common::{
    audience::NodeFacts, canonical_scope, snapshot::SnapshotDir, telemetry, tls::Reloading, view::Composition,
};
use tracing::{error, info, warn};

use crate::{
    admin::{self, AppState},
    bootstrap::bootstrap,
    disk, drain,
    link::{self, Link, dialer::Dialer},
    metrics::Metrics,
    mirror::Mirror,
    options::{Command, Options},
    wait,
    xds::{
        self,
        socket::{self, SocketFile},
    },
};

/// How long xDS streams have to end when the Beacon goes. Envoys keep what they have.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Does what the options say.
///
/// # Errors
/// If an option is wrong, an address is taken, or a part fails.
pub fn run(options: &Options) -> anyhow::Result<()> {
    match &options.command {
        None => {
            let mut runtime = runtime::Builder::new_multi_thread();
            runtime.worker_threads(2).enable_all().build()?.block_on(serve(options))
        }
        Some(Command::Bootstrap(bootstrap_options)) => {
            print(&serde_json::to_string_pretty(&bootstrap(bootstrap_options))?)
        }
        Some(Command::Wait(wait)) => {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(wait::until_ready(wait))?)
        }
    }
}

/// Whoever reads may stop reading.
fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(failure) if failure.kind() != std::io::ErrorKind::BrokenPipe => Err(failure.into()),
        _ => Ok(()),
    }
}

async fn serve(options: &Options) -> anyhow::Result<()> {
    let scope = canonical_scope(&options.scope).to_owned();
    let mut registry = telemetry::registry(env!("CARGO_PKG_VERSION"));
    // Files that cannot be used do not keep it from starting: it serves from its disk, says what is
    // wrong, and takes them once they are right.
    let tls = options.tls().map_err(anyhow::Error::msg)?.map(Reloading::new);
    if let Some(tls) = &tls {
        tls.watch().context("the TLS files cannot be watched")?;
        registry.register_collector(tls.collector("beacon"));
    }
    let dialer = Dialer::new(tls.clone(), options.node_id.is_some());
    let node = options.node().map_err(anyhow::Error::msg)?;
    let facts = NodeFacts::from(&dialer.introduce(&node));
    let mirror = Arc::new(Mutex::new(Mirror::new(&scope, facts)));
    let metrics = Metrics::new(&mut registry, mirror.clone());
    let xds_metrics = xds::Metrics::new(&mut registry);
    let link_state = Arc::new(Mutex::default());
    let changed = Arc::new(Notify::new());
    let stopping = CancellationToken::new();

    let snapshots = SnapshotDir::new(&options.data_dir);
    let starts = disk::Starts::new(&options.data_dir);
    let mut set_aside = disk::restore(&snapshots, &starts, &scope, &mirror, &metrics)?;
    let refusals = disk::Refusals::new(&options.data_dir, &scope);
    let (memories, unusable) = refusals.read();
    set_aside.extend(unusable);
    let clients = xds::Clients::remembering(memories);
    tokio::spawn(disk::serve_in_time(mirror.clone()));

    let xds_listener = TcpListener::bind(options.xds_listen)
        .await
        .with_context(|| format!("--xds-listen {} cannot be bound", options.xds_listen))?;
    info!(service = "xds", address = %xds_listener.local_addr()?, "listening");
    let socket = options.xds_socket.as_deref().map(socket::bind).transpose().context("--xds-socket")?;
    if let Some(path) = &options.xds_socket {
        info!(service = "xds", path = %path.display(), "listening");
    }
    tokio::spawn(warn_of_many(mirror.lock().compositions(), options.warn_services));
    let composed = mirror.lock().compositions();
    let (compositions, static_problems) = match &options.static_resources {
        Some(folder) => {
            let (compositions, problems) = xds::statics::merged(folder, composed);
            (compositions, Some(problems))
        }
        None => (composed, None),
    };
    let services = xds::services(xds::Options {
        identifier: format!("beacon/{}", dialer.introduce(&node).id),
        egress: options.egress_listen,
        compositions: drain::until(stopping.clone(), compositions),
        clients: clients.clone(),
        metrics: xds_metrics,
    });
    let mut xds_server = tokio::spawn(serve_xds(xds_listener, socket, services, stopping.clone()));

    let state = AppState {
        mirror: mirror.clone(),
        link: link_state.clone(),
        clients: clients.clone(),
        static_problems,
        warn_services: options.warn_services,
        metrics: metrics.clone(),
        tls,
        set_aside: set_aside.into(),
        registry: Arc::new(registry),
    };
    let mut admin = tokio::spawn(admin_server(options.admin_listen, state)?);

    let writer = tokio::spawn(disk::run(
        snapshots,
        scope.clone(),
        mirror.clone(),
        changed.clone(),
        metrics.clone(),
        stopping.clone(),
    ));
    let remembering = tokio::spawn(refusals.keep(clients.clone(), stopping.clone()));
    let settling = tokio::spawn(disk::settle(starts, mirror.clone(), stopping.clone()));
    let link = Link {
        towers: options.tower.clone(),
        dialer,
        scope,
        node,
        mirror,
        changed,
        clients,
        state: link_state,
        metrics,
    };
    let link = tokio::spawn(link::run(link));

    let stopped = tokio::select! {
        result = stop_signal() => result.map(|signal| info!(signal, "stopping")).map_err(Into::into),
        result = &mut xds_server => Err(anyhow::anyhow!("the xDS server stopped: {result:?}")),
        result = &mut admin => Err(anyhow::anyhow!("the admin server stopped: {result:?}")),
    };
    link.abort();
    stopping.cancel();
    if writer.await.is_err() || settling.await.is_err() || remembering.await.is_err() {
        error!("a writer of files failed");
    }
    if stopped.is_ok() && tokio::time::timeout(DRAIN_TIMEOUT, xds_server).await.is_err() {
        info!("xDS streams are cut");
    }
    stopped
}

/// Serves xDS by TCP, and on the Unix socket if there is one.
async fn serve_xds(
    listener: TcpListener,
    socket: Option<(UnixListenerStream, SocketFile)>,
    services: Routes,
    stopping: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let keepalive = xds::Keepalive::default();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let tcp = xds::serve(incoming, services.clone(), keepalive, stopping.clone());
    let unix = async {
        match socket {
            // The file is removed when nobody is served any more.
            Some((incoming, _file)) => xds::serve(incoming, services, keepalive, stopping).await,
            None => Ok(()),
        }
    };
    tokio::try_join!(tcp, unix).map(|_| ())
}

/// Each Envoy is served every service, which costs it about 75 KiB for each.
async fn warn_of_many(mut compositions: watch::Receiver<Composition>, bound: usize) {
    let mut warned = false;
    loop {
        let services = compositions.borrow_and_update().clusters.len();
        if services > bound && !warned {
            warn!(services, bound, "every Envoy of this host is served more services than is good for it");
        }
        warned = services > bound;
        if compositions.changed().await.is_err() {
            return;
        }
    }
}

fn admin_server(address: SocketAddr, state: AppState) -> anyhow::Result<actix_web::dev::Server> {
    let state = web::Data::new(state);
    let server = HttpServer::new(move || App::new().app_data(state.clone()).configure(admin::configure))
        .workers(1)
        .disable_signals()
        .bind(address)
        .with_context(|| format!("--admin-listen {address} cannot be bound"))?;
    for address in server.addrs() {
        info!(service = "admin", %address, "listening");
    }
    Ok(server.run())
}

async fn stop_signal() -> std::io::Result<&'static str> {
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let mut interrupt = tokio::signal::unix::signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
