//! Keeps in touch with the ensemble for ever: one session after the other, the watches on the head and on the
//! Towers, and this Tower's own znode.
//!
//! Watches are set once for each change, on two paths. The library sets such watches again after a
//! reconnection, and servers tell then what has changed meanwhile; what it does with recursive ones is of no
//! use.

use std::{convert::Infallible, future::pending, pin::Pin, time::Duration};

use parking_lot::Mutex;
use prost::Message;
use rand::{SeedableRng, rngs::StdRng};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tower_common::{backoff::Backoff, clock};
use tower_proto::v1;
use zookeeper_client::{Client, CreateMode, Error, OneshotWatcher, SessionState, WatchedEvent};

use super::{FOLDERS, HEAD, TOWERS};
use crate::{
    event_log::{FORMAT, State, new_incarnation},
    sources::{spec::Ensemble, zookeeper::connect},
};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How long the library may try to resume a session: it waits ever longer between its attempts.
const RESUME_TIMEOUT: Duration = Duration::from_secs(3);

/// A question of the session itself that takes longer is given up, and the session with it.
const ANSWER: Duration = Duration::from_secs(5);

/// What all that use a session have in common.
pub(super) struct Shared {
    pub(super) ensemble: Ensemble,
    run: String,
    pub(super) client: watch::Sender<Option<Client>>,
    pub(super) known: watch::Sender<Option<Known>>,
    pub(super) newest: watch::Sender<u64>,
    pub(super) members: watch::Sender<Vec<String>>,
    pub(super) state: watch::Sender<State>,
    /// Whoever has it changes what is known.
    knowing: Mutex<()>,
}

/// The head that is known, and the version of its znode.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) head: v1::LogHead,
    pub(super) version: i32,
}

impl Shared {
    pub(super) fn new(ensemble: Ensemble, run: String) -> Self {
        let state = State::Unreachable {
            why: format!("{ensemble} has not answered yet"),
            since_ms: clock::unix_millis(),
        };
        Self {
            ensemble,
            run,
            client: watch::Sender::new(None),
            known: watch::Sender::new(None),
            newest: watch::Sender::new(0),
            members: watch::Sender::new(Vec::new()),
            state: watch::Sender::new(state),
            knowing: Mutex::new(()),
        }
    }

    /// A path as the ensemble knows it.
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.ensemble.path)
    }

    /// Takes in a head that a server has told. One that is behind what is known says nothing: answers
    /// overtake one another.
    ///
    /// # Errors
    /// If it is not of this log.
    pub(super) fn learn(&self, found: Known) -> Result<(), String> {
        let _knowing = self.knowing.lock();
        let problem = match &*self.known.borrow() {
            _ if found.head.format != FORMAT => {
                let format = found.head.format;
                Some(format!("it has format {format}, and this build reads format {FORMAT}"))
            }
            Some(known) if known.head.incarnation != found.head.incarnation => Some(format!(
                "its incarnation is {} where {} was read before: it was replaced",
                found.head.incarnation, known.head.incarnation
            )),
            Some(known) if known.head.index == found.head.index && known.head.hash != found.head.hash => {
                Some(format!("entry {} is another one than it was", found.head.index))
            }
            Some(known) if known.version > found.version => return Ok(()),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(self.refuse(problem));
        }
        self.adopt_locked(found);
        Ok(())
    }

    /// Takes in a head whatever was known.
    pub(super) fn adopt(&self, found: Known) {
        let _knowing = self.knowing.lock();
        self.adopt_locked(found);
    }

    fn adopt_locked(&self, found: Known) {
        let index = found.head.index;
        self.known.send_replace(Some(found));
        self.newest.send_if_modified(|newest| std::mem::replace(newest, index) != index);
    }

    /// From now on nothing of this log is believed.
    pub(super) fn refuse(&self, why: String) -> String {
        tracing::error!(log = %self.ensemble, why, "the event log is refused");
        self.state.send_replace(State::Refused { why: why.clone() });
        why
    }

    pub(super) fn refused(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Refused { why } => Some(why.clone()),
            State::Live | State::Unreachable { .. } => None,
        }
    }

    fn live(&self) {
        self.state.send_if_modified(|state| {
            let changes = matches!(state, State::Unreachable { .. });
            if changes {
                *state = State::Live;
            }
            changes
        });
    }

    fn unreachable(&self, why: &str) {
        tracing::warn!(log = %self.ensemble, why, "out of touch with the event log");
        self.state.send_if_modified(|state| {
            let since_ms = match state {
                State::Refused { .. } => return false,
                State::Unreachable { since_ms, .. } => *since_ms,
                State::Live => clock::unix_millis(),
            };
            *state = State::Unreachable { why: why.to_owned(), since_ms };
            true
        });
    }
}

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
