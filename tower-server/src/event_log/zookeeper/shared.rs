//! What is known of a log in an ensemble, and the session through which more is learned.

use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::sync::watch;
use tower_common::clock;
use tower_proto::v1;
use zookeeper_client::Client;

use crate::{
    event_log::{FORMAT, State},
    sources::spec::Ensemble,
};

/// What all that use a session have in common.
pub(super) struct Shared {
    pub(super) ensemble: Ensemble,
    pub(super) run: String,
    pub(super) client: watch::Sender<Option<Client>>,
    pub(super) known: watch::Sender<Option<Known>>,
    pub(super) newest: watch::Sender<u64>,
    pub(super) members: watch::Sender<Vec<String>>,
    pub(super) state: watch::Sender<State>,
    /// Whoever has it changes what is known.
    knowing: Mutex<()>,
    /// The incarnation that this process itself gives to the log, if it does.
    own: OnceLock<String>,
}

/// The head that is known, and the version of its znode.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) head: v1::LogHead,
    pub(super) version: i32,
}

impl Shared {
    /// `known` is what an earlier run of this Tower knew.
    pub(super) fn new(ensemble: Ensemble, run: String, known: Option<v1::LogHead>) -> Self {
        let state = State::Unreachable {
            why: format!("{ensemble} has not answered yet"),
            since_ms: clock::unix_millis(),
        };
        Self {
            ensemble,
            run,
            client: watch::Sender::new(None),
            known: watch::Sender::new(known.map(|head| Known { head, version: -1 })),
            newest: watch::Sender::new(0),
            members: watch::Sender::new(Vec::new()),
            state: watch::Sender::new(state),
            knowing: Mutex::new(()),
            own: OnceLock::new(),
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
            Some(known)
                if known.head.incarnation != found.head.incarnation
                    && self.own.get() != Some(&found.head.incarnation) =>
            {
                Some(format!(
                    "its incarnation is {} where {} was read before: it was replaced",
                    found.head.incarnation, known.head.incarnation
                ))
            }
            Some(known) if known.head.index == found.head.index && known.head.hash != found.head.hash => {
                Some(format!("entry {} is another one than it was", found.head.index))
            }
            Some(known) if known.version > found.version => return Ok(()),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(self.refuse(problem));
        }
        let index = found.head.index;
        self.known.send_replace(Some(found));
        self.newest.send_if_modified(|newest| std::mem::replace(newest, index) != index);
        Ok(())
    }

    /// From now on this incarnation is that of the log as well.
    pub(super) fn expect(&self, incarnation: &str) {
        self.own.get_or_init(|| incarnation.to_owned());
    }

    /// From now on nothing of this log is believed.
    pub(super) fn refuse(&self, why: String) -> String {
        tracing::error!(log = %self.ensemble, why, "the event log is refused");
        self.state.send_replace(State::Refused { why: why.clone() });
        why
    }

    /// Why nothing is believed, if so.
    pub(super) fn refused(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Refused { why } => Some(why.clone()),
            State::Live | State::Unreachable { .. } => None,
        }
    }

    /// It answers.
    pub(super) fn live(&self) {
        self.state.send_if_modified(|state| {
            let changes = matches!(state, State::Unreachable { .. });
            if changes {
                *state = State::Live;
            }
            changes
        });
    }

    /// It does not.
    pub(super) fn unreachable(&self, why: &str) {
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
