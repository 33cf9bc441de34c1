//! Keeps in touch with an ensemble for ever, and reads it whenever it may have changed.
//!
//! What the client library, and servers, cannot be relied on for decides the order of things:
//! - The watch is set before the first reading, so that no change falls between the two.
//! - Events of the time without a connection never come, and version 0.11 of the library forgets to set
//!   recursive watches again. So after each reconnection the watch is set anew, and everything read again.
//! - An event says only that a znode should be looked at again. Several for one are one.
//! - An error that is not about one znode says nothing about any: everything is read again.
//! - Now and then everything is read again in any case.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::FutureExt;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use tower_common::backoff::Backoff;
use zookeeper_client::{AddWatchMode, Client, EventType, PersistentWatcher, SessionState, WatchedEvent};

use super::{
    connect::connect,
    reader::{ReadError, Reader, answered},
    tree::{Reread, Tree},
};
use crate::sources::{
    model::{Change, Input},
    spec::ZooKeeperSpec,
};

/// How long the library may try to resume a session. Ours owns nothing, so a new one is as good, and the
/// library waits ever longer between its attempts.
const RESUME_TIMEOUT: Duration = Duration::from_secs(3);

/// How long to wait after a reading that failed, if the connection seems to be good.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// After so many readings in a row that failed, another session is tried, perhaps with another server.
const MAX_FAILURES: u32 = 3;

const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Between two readings without a reason, at random.
const AUDIT_EVERY: std::ops::Range<Duration> = Duration::from_secs(300)..Duration::from_secs(600);

/// Nobody takes in what was read any more.
struct Closed;

/// Why a session ended.
enum End {
    Closed,
    Lost(String),
}

impl From<Closed> for End {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

impl From<ReadError> for End {
    fn from(error: ReadError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Reads the ensemble until nobody listens any more.
pub(in crate::sources) async fn run(spec: ZooKeeperSpec, feed: mpsc::Sender<Input>) {
    let mut keeper =
        Keeper { spec, feed, backoff: Backoff::new(FIRST_WAIT, LONGEST_WAIT), rng: StdRng::from_os_rng() };
    while keeper.session().await.is_ok() {}
}

struct Keeper {
    spec: ZooKeeperSpec,
    feed: mpsc::Sender<Input>,
    backoff: Backoff,
    rng: StdRng,
}

impl Keeper {
    /// One session, from the attempt to connect to the wait before the next one.
    async fn session(&mut self) -> Result<(), Closed> {
        let spec = &self.spec;
        let end = match connect(&spec.hosts, &spec.access, spec.session_timeout).await {
            Ok(client) => {
                tracing::info!(hosts = ?self.spec.hosts, session = %client.session_id(), "connected to ZooKeeper");
                match self.serve(&client).await {
                    Err(End::Closed) => return Err(Closed),
                    Err(End::Lost(reason)) => reason,
                    Ok(never) => match never {},
                }
            }
            Err(reason) => reason,
        };
        self.out_of_touch(end).await?;
        sleep(self.backoff.next_wait(&mut self.rng)).await;
        Ok(())
    }

    /// Follows the ensemble through one client until that is of no more use.
    async fn serve(&mut self, client: &Client) -> Result<std::convert::Infallible, End> {
        let layout = self.spec.layout.clone();
        let tree = Tree { reader: Reader(client), layout: &layout, format: self.spec.format };
        let mut watcher = watch(client, layout.root()).await?;
        let mut connected = true;
        let mut failures = 0;
        let mut incarnation = String::new();
        let mut held_back = BTreeSet::new();
        // When everything is to be read again.
        let mut reload_at = Instant::now();
        loop {
            let events = tokio::select! {
                biased;
                () = sleep_until(reload_at), if connected => {
                    match tree.load().await {
                        Ok(load) => {
                            failures = 0;
                            self.backoff.reset();
                            reload_at = Instant::now() + self.rng.random_range(AUDIT_EVERY);
                            incarnation = load.incarnation.clone().unwrap_or_default();
                            held_back = load.kept.iter().map(|problem| problem.path.clone()).collect();
                            self.feed(Input::Loaded(load)).await?;
                        }
                        Err(error) => {
                            failures += 1;
                            if failures >= MAX_FAILURES {
                                return Err(error.into());
                            }
                            self.out_of_touch(error.to_string()).await?;
                            reload_at = Instant::now() + RETRY_AFTER;
                        }
                    }
                    continue;
                }
                first = watcher.changed() => drain(first, &mut watcher),
                () = sleep(RESUME_TIMEOUT), if !connected => {
                    return Err(End::Lost("the connection broke, and could not be resumed".to_owned()));
                }
            };
            match session_event(&events) {
                Some(SessionState::SyncConnected) => {
                    // The new watch is there before the old one is dropped, so the library removes none.
                    watcher = watch(client, layout.root()).await?;
                    connected = true;
                    reload_at = Instant::now();
                    continue;
                }
                Some(SessionState::Disconnected) => {
                    connected = false;
                    self.out_of_touch("the connection broke".to_owned()).await?;
                    continue;
                }
                // Read-only servers are never asked for; one that has no quorum may be far behind.
                Some(state) => return Err(End::Lost(format!("the session ended: {state}"))),
                None => {}
            }
            // A root that comes or goes may be another one.
            if !connected || events.iter().any(|event| event.path == layout.root()) {
                reload_at = Instant::now();
                continue;
            }
            let count = events.len() as u64;
            let dirty: BTreeSet<String> =
                events.iter().filter_map(|event| layout.concerned(&event.path)).map(str::to_owned).collect();
            match tree.reread(&dirty, &incarnation).await {
                Ok(Reread::Changes { changes, index }) => {
                    // A directory that could not be listed, and now can: its members were never read.
                    if places(&changes).any(|path| held_back.contains(path)) {
                        reload_at = Instant::now();
                    }
                    held_back.extend(problems(&changes).cloned());
                    self.feed(Input::Changed { changes, index, events: count }).await?;
                }
                Ok(Reread::AnotherTree) => reload_at = Instant::now(),
                Err(error) => {
                    self.out_of_touch(error.to_string()).await?;
                    reload_at = Instant::now();
                }
            }
        }
    }

    async fn out_of_touch(&self, reason: String) -> Result<(), Closed> {
        tracing::warn!(reason, "out of touch with ZooKeeper");
        self.feed(Input::OutOfTouch { reason }).await
    }

    async fn feed(&self, input: Input) -> Result<(), Closed> {
        self.feed.send(input).await.map_err(|_| Closed)
    }
}

async fn watch(client: &Client, root: &str) -> Result<PersistentWatcher, ReadError> {
    answered("setting the watch", client.watch(root, AddWatchMode::PersistentRecursive)).await
}

/// The first event, and all that are there already. Stops at an event of the session: after some of them
/// the watcher must not be asked again.
fn drain(first: WatchedEvent, watcher: &mut PersistentWatcher) -> Vec<WatchedEvent> {
    let mut events = vec![first];
    while session_event(&events).is_none()
        && let Some(event) = watcher.changed().now_or_never()
    {
        events.push(event);
    }
    events
}

fn places(changes: &[Change]) -> impl Iterator<Item = &Arc<str>> {
    changes.iter().filter_map(|change| match change {
        Change::Place(place) => Some(&place.path),
        Change::Entry(_) | Change::Kept(_) | Change::Gone { .. } => None,
    })
}

fn problems(changes: &[Change]) -> impl Iterator<Item = &Arc<str>> {
    changes.iter().filter_map(|change| match change {
        Change::Kept(problem) => Some(&problem.path),
        Change::Place(_) | Change::Entry(_) | Change::Gone { .. } => None,
    })
}

/// The state in an event of the session, which is the last one if there is one.
fn session_event(events: &[WatchedEvent]) -> Option<SessionState> {
    events.last().filter(|event| event.event_type == EventType::Session).map(|event| event.session_state)
}
