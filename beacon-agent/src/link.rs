//! The link to Tower: one stream at a time, to one of the Towers, for ever; after a goodbye the next one
//! begins before the last one ends.

pub mod dialer;
mod flushes;
mod report;
mod secure;
mod stream;
mod successor;
mod towers;

use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tower_common::{backoff::Backoff, clock, delivery::Event, digest::Buckets};
use tower_proto::v1::{self, watch_request::Request};
use tracing::{debug, info, warn};

use self::{
    dialer::Dialer,
    flushes::Flushes,
    report::Reporter,
    stream::{End, Stream, WELCOME_TIMEOUT},
    successor::Successor,
    towers::Towers,
};
use crate::{
    metrics::{EndLabels, Metrics, Times},
    mirror::Mirror,
    xds::Clients,
};

const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

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

/// Waits grow after each failure, and are different for each Beacon.
fn backoff() -> Backoff {
    Backoff::new(FIRST_WAIT, LONGEST_WAIT)
}

/// Keeps a stream to one of the Towers. Returns never.
pub async fn run(link: Link) {
    let mut rng = StdRng::from_os_rng();
    let mut backoff = backoff();
    let towers = Towers::new(link.towers.clone(), &link.node.id);
    for attempt in 1.. {
        let mut progress = Progress { tower: towers.next().to_owned(), delivered: false };
        let Err(end) = follow(&link, &towers, &mut progress).await;
        if progress.delivered {
            // A welcome alone proves nothing: what follows it may be what ends each stream.
            backoff.reset();
        }
        if attempt >= towers.len() {
            // None of them has answered.
            link.mirror.lock().serve_from_disk();
        }
        count_end(&link, &end);
        note_disconnected(&link, &progress.tower, &end);
        let wait = backoff.next_wait(&mut rng) + end.retry_after();
        warn!(tower = progress.tower, reason = %end, retry_ms = wait.as_millis(), "no stream from Tower");
        sleep(wait).await;
    }
}

/// How far it has come with a Tower.
#[derive(Debug)]
struct Progress {
    /// The Tower that is followed, or asked to be.
    tower: String,
    delivered: bool,
}

/// Follows a Tower, and after its goodbye the one that takes over from it, without a gap if there is one.
async fn follow(link: &Link, towers: &Towers, progress: &mut Progress) -> Result<Infallible, End> {
    let mut stream = Stream::open(link, &progress.tower).await?;
    let mut silence_limit = WELCOME_TIMEOUT;
    let mut accepted = false;
    let mut reporter = Reporter::new(link.clients.clone(), link.mirror.lock().compositions());
    let mut flushes = Flushes::new();
    // Silence is measured from the last response, whatever else happens here.
    let mut deadline = Instant::now() + silence_limit;
    let mut farewell: Option<Farewell<'_>> = None;
    loop {
        let events = tokio::select! {
            // First of all: a stream that has been taken over from is not read any more.
            biased;
            found = found(&mut farewell) => {
                let Farewell { goodbye, .. } = farewell.take().expect("it has found something");
                let Ok(Successor { stream: next, welcome, delivery }) = found else {
                    return Err(End::Goodbye(v1::Goodbye { retry_after_ms: 0, ..goodbye }));
                };
                count_end(link, &End::Goodbye(goodbye));
                stream = next;
                progress.tower.clone_from(&stream.tower);
                silence_limit = Duration::from_millis(welcome.silence_limit_ms.into());
                reporter = Reporter::new(link.clients.clone(), link.mirror.lock().compositions());
                note_connected(link, &stream.tower, &welcome);
                link.metrics.hand_overs.inc();
                link.metrics.deliveries.inc();
                link.mirror.lock().hand_over(welcome, delivery);
                flushes.probe = 0;
                flushes.wanted();
                Vec::new()
            }
            () = flushes.due() => {
                reporter.applied(flushes.flush(link));
                continue;
            }
            () = reporter.due() => {
                if accepted
                    && let Some(report) = reporter.changed(&link.mirror)
                    && stream.try_say(Request::Report(report.clone()))
                {
                    reporter.sent(report);
                }
                continue;
            }
            events = timeout_at(deadline, stream.next()), if !is_over(farewell.as_ref()) => {
                match (events.map_err(|_| End::Silent(silence_limit)).flatten(), &farewell) {
                    (Ok(events), _) => events,
                    (Err(end), None) => return Err(end),
                    // There is another on its way.
                    (Err(end), Some(farewell)) => {
                        debug!(tower = stream.tower, reason = %end, "the stream has ended after its goodbye");
                        note_disconnected(link, &stream.tower, &End::Goodbye(farewell.goodbye));
                        farewell.over.cancel();
                        continue;
                    }
                }
            }
        };
        Times::note(&link.metrics.times.tower_heard);
        for event in events {
            match event {
                Event::Welcome(welcome) => {
                    accepted = true;
                    silence_limit = Duration::from_millis(welcome.silence_limit_ms.into());
                    note_connected(link, &stream.tower, &welcome);
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
                    flushes.probe = flushes.probe.max(heartbeat.probe);
                    link.mirror.lock().heartbeat(heartbeat)?;
                    flushes.wanted();
                }
                Event::AskBuckets(count) => {
                    let buckets = link.mirror.lock().buckets(count.min(Buckets::MAX));
                    stream.say(Request::Buckets(buckets)).await?;
                }
                Event::Goodbye(goodbye) if progress.delivered && farewell.is_none() => {
                    info!(
                        tower = stream.tower,
                        reason = goodbye.reason().as_str_name(),
                        "Tower says goodbye"
                    );
                    farewell = Some(Farewell::new(link, towers, goodbye));
                }
                // Said once is enough.
                Event::Goodbye(_) if farewell.is_some() => {}
                Event::Goodbye(goodbye) => return Err(End::Goodbye(goodbye)),
            }
        }
        let comparison = link.mirror.lock().take_comparison();
        if let Some(buckets) = comparison {
            info!(tower = stream.tower, "the store differs from Tower's, which is asked for the difference");
            stream.say(Request::Buckets(buckets)).await?;
        }
        deadline = Instant::now() + silence_limit;
    }
}

/// What happens between a goodbye and the stream that takes over.
struct Farewell<'a> {
    goodbye: v1::Goodbye,
    /// Cancelled when the old stream has ended.
    over: CancellationToken,
    search: Pin<Box<dyn Future<Output = Result<Successor, End>> + Send + 'a>>,
}

impl<'a> Farewell<'a> {
    fn new(link: &'a Link, towers: &'a Towers, goodbye: v1::Goodbye) -> Self {
        let over = CancellationToken::new();
        let search = Box::pin(successor::find(link, towers, goodbye, over.clone()));
        Self { goodbye, over, search }
    }
}

/// Until the search for a successor has ended, if there is one.
async fn found(farewell: &mut Option<Farewell<'_>>) -> Result<Successor, End> {
    match farewell {
        Some(farewell) => farewell.search.as_mut().await,
        None => pending().await,
    }
}

fn is_over(farewell: Option<&Farewell<'_>>) -> bool {
    farewell.is_some_and(|farewell| farewell.over.is_cancelled())
}

fn note_connected(link: &Link, tower: &str, welcome: &v1::Welcome) {
    info!(tower, run = welcome.tower, level = welcome.feature_level, "stream from Tower is up");
    link.metrics.connects.inc();
    *link.state.lock() =
        LinkState { connected: Some(tower.to_owned()), since_unix_ms: clock::unix_millis(), last_end: None };
}

fn count_end(link: &Link, end: &End) {
    link.metrics.link_ends.get_or_create(&EndLabels { reason: end.reason() }).inc();
}

fn note_disconnected(link: &Link, tower: &str, end: &End) {
    *link.state.lock() = LinkState {
        connected: None,
        since_unix_ms: clock::unix_millis(),
        last_end: Some(format!("{tower}: {end}")),
    };
}

#[cfg(test)]
mod tests;
