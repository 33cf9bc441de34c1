//! The link to Tower: one stream at a time, to one of the Towers, for ever.

pub mod dialer;
mod flushes;
mod report;
mod secure;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tower_common::{
    FEATURE_LEVEL,
    backoff::Backoff,
    clock,
    delivery::{DeliveryError, Event, Staging},
    digest::Buckets,
};
use tower_proto::v1::{self, sync_client::SyncClient, watch_request::Request};
use tracing::{debug, info, warn};

use self::{
    dialer::{DialError, Dialer, chain},
    flushes::Flushes,
    report::Reporter,
};
use crate::{
    metrics::{EndLabels, EndReason, Metrics, Times},
    mirror::Mirror,
    xds::Clients,
};

/// How long a Tower may take to accept a stream.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);

/// Tower cuts far below this.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Reports are sent when they differ from the last, at most this often.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// What the link needs to know and to reach.
#[derive(Clone)]
pub struct Link {
    /// The Towers.
    pub towers: Vec<String>,
    /// How to connect to one.
    pub dialer: Dialer,
    /// The mesh or region.
    pub scope: String,
    /// How the Beacon introduces itself.
    pub node: v1::Node,
    /// What deliveries are applied to.
    pub mirror: Arc<Mutex<Mirror>>,
    /// Notified when the mirror's content changed.
    pub changed: Arc<Notify>,
    /// The xDS clients, for reports.
    pub clients: Clients,
    /// Where the state is shown.
    pub state: Arc<Mutex<LinkState>>,
    /// Counters.
    pub metrics: Metrics,
}

/// How the link is, for people.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LinkState {
    /// The Tower whose stream is up.
    pub connected: Option<String>,
    /// Since when it is up, or down, in milliseconds since the Unix epoch.
    pub since_unix_ms: u64,
    /// Why the last stream ended.
    pub last_end: Option<String>,
}

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Dial(#[from] DialError),
    #[error("it refuses: {}", chain(.0))]
    Refused(Status),
    #[error("it did not accept the stream within {} s", WELCOME_TIMEOUT.as_secs())]
    NotAccepted,
    #[error("the stream broke: {}", chain(.0))]
    Broken(Status),
    #[error("it ended the stream")]
    Closed,
    #[error("it was silent for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("it says goodbye: {}", .0.reason().as_str_name())]
    Goodbye(v1::Goodbye),
    #[error("{0}")]
    Invalid(#[from] DeliveryError),
}

impl End {
    fn reason(&self) -> EndReason {
        match self {
            Self::Dial(_) | Self::Refused(_) | Self::NotAccepted => EndReason::Refused,
            Self::Broken(_) | Self::Closed => EndReason::Broken,
            Self::Silent(_) => EndReason::Silent,
            Self::Goodbye(_) => EndReason::Goodbye,
            Self::Invalid(_) => EndReason::Invalid,
        }
    }
}

/// Keeps a stream to one of the Towers. Returns never.
pub async fn run(link: Link) {
    let mut rng = StdRng::from_os_rng();
    let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
    // Beacons spread over the Towers by their ids.
    let start = usize::from(blake3::hash(link.node.id.as_bytes()).as_bytes()[0]);
    for attempt in start.. {
        let tower = &link.towers[attempt % link.towers.len()];
        let mut progress = Progress::default();
        let Err(end) = follow(&link, tower, &mut progress).await;
        if progress.delivered {
            // A welcome alone proves nothing: what follows it may be what ends each stream.
            backoff.reset();
        }
        if attempt >= start + link.towers.len() - 1 {
            // None of them has answered.
            link.mirror.lock().serve_from_disk();
        }
        link.metrics.link_ends.get_or_create(&EndLabels { reason: end.reason() }).inc();
        let mut wait = backoff.next_wait(&mut rng);
        if let End::Goodbye(goodbye) = &end {
            wait += Duration::from_millis(goodbye.retry_after_ms.into()).min(LONGEST_WAIT);
        }
        warn!(tower, reason = %end, retry_ms = wait.as_millis(), "no stream from Tower");
        *link.state.lock() = LinkState {
            connected: None,
            since_unix_ms: clock::unix_millis(),
            last_end: Some(format!("{tower}: {end}")),
        };
        sleep(wait).await;
    }
}

/// How far a stream has come.
#[derive(Debug, Default)]
struct Progress {
    accepted: bool,
    delivered: bool,
}

async fn follow(link: &Link, tower: &str, progress: &mut Progress) -> Result<std::convert::Infallible, End> {
    let channel = link.dialer.connect(tower).await?;
    let (requests, receiver) = mpsc::channel(4);
    requests.try_send(hello(link)).expect("the channel is new");
    let mut client = SyncClient::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
    let call = client.watch(ReceiverStream::new(receiver));
    let mut stream = timeout(WELCOME_TIMEOUT, call)
        .await
        .map_err(|_| End::NotAccepted)?
        .map_err(End::Refused)?
        .into_inner();
    let mut staging = Staging::new();
    let mut silence_limit = WELCOME_TIMEOUT;
    let mut reporter = Reporter::new(link.clients.clone());
    let mut report_tick = interval(REPORT_INTERVAL);
    report_tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut flushes = Flushes::new();
    // Silence is measured from the last response, whatever else happens here.
    let mut deadline = Instant::now() + silence_limit;
    loop {
        let response = tokio::select! {
            response = timeout_at(deadline, stream.message()) => response
                .map_err(|_| End::Silent(silence_limit))?
                .map_err(End::Broken)?
                .ok_or(End::Closed)?,
            () = flushes.due() => {
                flushes.flush(link);
                continue;
            }
            _ = report_tick.tick() => {
                if progress.accepted
                    && let Some(report) = reporter.changed(&link.mirror)
                    && requests.try_send(request(Request::Report(report.clone()))).is_ok()
                {
                    reporter.sent(report);
                }
                continue;
            }
        };
        Times::note(&link.metrics.times.tower_heard);
        for event in staging.accept(response)? {
            match event {
                Event::Welcome(welcome) => {
                    progress.accepted = true;
                    silence_limit = Duration::from_millis(welcome.silence_limit_ms.into());
                    note_connected(link, tower, &welcome);
                    link.mirror.lock().begin(welcome);
                }
                Event::Delivery(delivery) => {
                    let revision = delivery.to_revision;
                    let changed = link.mirror.lock().deliver(delivery)?;
                    debug!(revision, changed, "applied");
                    progress.delivered = true;
                    link.metrics.deliveries.inc();
                    flushes.wanted();
                }
                Event::Heartbeat(heartbeat) => {
                    link.mirror.lock().heartbeat(heartbeat)?;
                    flushes.wanted();
                }
                Event::AskBuckets(count) => {
                    let buckets = link.mirror.lock().buckets(count.min(Buckets::MAX));
                    say(&requests, Request::Buckets(buckets)).await?;
                }
                Event::Goodbye(goodbye) => return Err(End::Goodbye(goodbye)),
            }
        }
        let comparison = link.mirror.lock().take_comparison();
        if let Some(buckets) = comparison {
            info!(tower, "the store differs from Tower's, which is asked for the difference");
            say(&requests, Request::Buckets(buckets)).await?;
        }
        deadline = Instant::now() + silence_limit;
    }
}

fn note_connected(link: &Link, tower: &str, welcome: &v1::Welcome) {
    info!(tower, run = welcome.tower, level = welcome.feature_level, "stream from Tower is up");
    link.metrics.connects.inc();
    *link.state.lock() =
        LinkState { connected: Some(tower.to_owned()), since_unix_ms: clock::unix_millis(), last_end: None };
}

fn hello(link: &Link) -> v1::WatchRequest {
    let mut hello = v1::Hello {
        node: Some(link.dialer.introduce(&link.node)),
        scope: link.scope.clone(),
        feature_level: FEATURE_LEVEL,
        interest: Some(v1::Interest { all: true, services: Vec::new() }),
        ..Default::default()
    };
    link.mirror.lock().introduce(&mut hello);
    request(Request::Hello(hello))
}

fn request(request: Request) -> v1::WatchRequest {
    v1::WatchRequest { request: Some(request) }
}

/// Says something, once there is room; what is said before is on its way.
async fn say(requests: &mpsc::Sender<v1::WatchRequest>, what: Request) -> Result<(), End> {
    requests.send(request(what)).await.map_err(|_| End::Closed)
}
