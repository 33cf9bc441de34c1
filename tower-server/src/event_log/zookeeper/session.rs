//! Keeps in touch with the ensemble for ever: one session after the other, the watches on the head and on the
//! Towers, and this Tower's own znode.
//!
//! Watches are set once for each change, on two paths. The library sets such watches again after a
//! reconnection, and servers tell then what has changed meanwhile; what it does with recursive ones is of no
//! use.

use std::{convert::Infallible, future::pending, pin::Pin, time::Duration};

use prost::Message;
use rand::{SeedableRng, rngs::StdRng};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower_common::backoff::Backoff;
use tower_proto::v1;
use zookeeper_client::{Client, CreateMode, Error, OneshotWatcher, SessionState, WatchedEvent};

use super::{
    FOLDERS, HEAD, TOWERS,
    shared::{Known, Shared},
};
use crate::{
    event_log::{FORMAT, new_incarnation},
    sources::zookeeper::connect,
};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How long the library may try to resume a session: it waits ever longer between its attempts.
const RESUME_TIMEOUT: Duration = Duration::from_secs(3);

/// A question of the session itself that takes longer is given up, and the session with it.
const ANSWER: Duration = Duration::from_secs(5);

/// Keeps in touch until it is dropped, or the log is refused.
pub(super) async fn keep(shared: &Shared) {
    let mut random = StdRng::from_os_rng();
    let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
    while shared.refused().is_none() {
        let spec = &shared.ensemble;
        let why = match connect(&spec.hosts, &spec.access, spec.session_timeout).await {
            Ok(client) => {
                tracing::info!(log = %spec, session = %client.session_id(), "connected to the event log");
                let session = Session { shared, client };
                match session.serve(&mut backoff).await {
                    Ok(never) => match never {},
                    Err(why) => why,
                }
            }
            Err(why) => why,
        };
        shared.client.send_replace(None);
        shared.unreachable(&why);
        sleep(backoff.next_wait(&mut random)).await;
    }
}

struct Session<'a> {
    shared: &'a Shared,
    client: Client,
}

/// A watch that was set and has not told anything yet.
type Watch = Pin<Box<dyn Future<Output = WatchedEvent> + Send>>;

impl Session<'_> {
    /// Follows the log through this session until that is of no more use.
    async fn serve(&self, backoff: &mut Backoff) -> Result<Infallible, String> {
        self.begin().await?;
        let mut head = self.watch_head().await?;
        let mut towers = self.watch_towers().await?;
        let mut states = self.client.state_watcher();
        let mut give_up = None;
        self.shared.client.send_replace(Some(self.client.clone()));
        self.shared.live();
        backoff.reset();
        loop {
            let late = async {
                match give_up {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                _ = &mut head => head = self.watch_head().await?,
                _ = &mut towers => towers = self.watch_towers().await?,
                state = states.changed() => match state {
                    SessionState::SyncConnected => {
                        self.check().await?;
                        give_up = None;
                        self.shared.live();
                    }
                    SessionState::Disconnected => {
                        give_up = Some(Instant::now() + RESUME_TIMEOUT);
                        self.shared.unreachable("the connection broke");
                    }
                    state => return Err(format!("the session ended: {state}")),
                },
                () = late => return Err("the connection broke, and could not be resumed".to_owned()),
            }
        }
    }

    /// Finds the log, or makes it.
    async fn begin(&self) -> Result<(), String> {
        // Servers sync paths that are not there as well.
        answered("sync", self.client.sync("/")).await?;
        let at = self.shared.path(HEAD);
        if answered("looking for the head", self.client.check_stat(&at)).await?.is_none() {
            if self.shared.known.borrow().is_some() {
                return Err(self.shared.refuse(format!("{at} is gone")));
            }
            self.make_log(&at).await?;
        }
        self.check().await
    }

    async fn make_log(&self, at: &str) -> Result<(), String> {
        let options = self.shared.options(CreateMode::Persistent);
        for folder in FOLDERS {
            let path = self.shared.path(folder);
            answered(&path, self.client.mkdir(&path, &options)).await?;
        }
        let head = v1::LogHead { format: FORMAT, incarnation: new_incarnation(), ..Default::default() };
        match timeout(ANSWER, self.client.create(at, &head.encode_to_vec(), &options)).await {
            Ok(Ok(_)) => {
                let log = &self.shared.ensemble;
                tracing::info!(%log, incarnation = head.incarnation, "a new event log");
                Ok(())
            }
            // Another Tower was first.
            Ok(Err(Error::NodeExists)) => Ok(()),
            Ok(Err(error)) => Err(format!("{at} cannot be created: {error}")),
            Err(_) => Err(format!("creating {at}: no answer within {ANSWER:?}")),
        }
    }

    /// Whether the log is still the one that was known, and has not gone back.
    async fn check(&self) -> Result<(), String> {
        let before = self.shared.known.borrow().as_ref().map_or(0, |known| known.head.index);
        answered("sync", self.client.sync("/")).await?;
        let at = self.shared.path(HEAD);
        let (data, stat) = answered("reading the head", self.client.get_data(&at)).await?;
        let found = self.known(&data, stat.version)?;
        if found.head.index < before {
            let index = found.head.index;
            return Err(self.shared.refuse(format!(
                "its newest entry is {index} where {before} was read before: it was restored from a backup"
            )));
        }
        self.shared.learn(found)
    }

    fn known(&self, data: &[u8], version: i32) -> Result<Known, String> {
        let decoded = v1::LogHead::decode(data);
        let damaged = |error| self.shared.refuse(format!("{} is damaged: {error}", self.shared.path(HEAD)));
        Ok(Known { head: decoded.map_err(damaged)?, version })
    }

    async fn watch_head(&self) -> Result<Watch, String> {
        let at = self.shared.path(HEAD);
        let (data, stat, watcher) =
            answered("watching the head", self.client.get_and_watch_data(&at)).await?;
        self.shared.learn(self.known(&data, stat.version)?)?;
        Ok(boxed(watcher))
    }

    /// Watches who is there, and makes sure that this Tower is.
    async fn watch_towers(&self) -> Result<Watch, String> {
        let at = self.shared.path(TOWERS);
        loop {
            let (mut names, _, watcher) =
                answered("watching the Towers", self.client.get_and_watch_children(&at)).await?;
            if self.shared.run.is_empty() || names.contains(&self.shared.run) {
                names.sort_unstable();
                self.shared.members.send_if_modified(|members| {
                    let changes = *members != names;
                    *members = names;
                    changes
                });
                return Ok(boxed(watcher));
            }
            drop(watcher);
            self.register(&format!("{at}/{}", self.shared.run)).await?;
        }
    }

    /// Makes this Tower's own znode. One that an earlier session has left would go with that.
    async fn register(&self, at: &str) -> Result<(), String> {
        let options = self.shared.options(CreateMode::Ephemeral);
        match timeout(ANSWER, self.client.create(at, b"", &options)).await {
            Ok(Ok(_) | Err(Error::NodeExists)) => Ok(()),
            Ok(Err(error)) => Err(format!("{at} cannot be created: {error}")),
            Err(_) => Err(format!("creating {at}: no answer within {ANSWER:?}")),
        }
    }
}

fn boxed(watcher: OneshotWatcher) -> Watch {
    Box::pin(watcher.changed())
}

async fn answered<T>(request: &str, answer: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match timeout(ANSWER, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("{request}: {error}")),
        Err(_) => Err(format!("{request}: no answer within {ANSWER:?}")),
    }
}
