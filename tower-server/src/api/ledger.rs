//! The registry, as handlers see it: what the log has come to, and the way to add to it.

use std::sync::Arc;

use actix_web::{FromRequest, HttpRequest, dev};
use futures::future;
use parking_lot::RwLock;
use tower_common::{
    api::{Changed, Code, Problem},
    clock,
    document::Finding,
};
use tower_proto::v1::{self, event::Event};

use super::{
    conditions::{IfMatch, Key},
    error::Refused,
    told::{findings, some},
};
use crate::{
    auth::identity::Principal,
    event_log::{AppendError, EventLog, ReadError},
    registry::{self, Command, Decision, State, permission},
};

/// Who wants a change, made for which state, and known by which key.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who.
    pub principal: Principal,
    key: Option<String>,
    if_match: Option<u64>,
}

/// What became of a command.
#[derive(Debug, Clone)]
pub struct Done {
    /// The entry of the log; none if nothing was to be done.
    pub index: Option<u64>,
    /// What it came to.
    pub decision: Decision,
    /// It was done before, with the same key.
    pub repeated: bool,
    /// Remarks about the document in it.
    pub findings: Vec<Finding>,
}

impl Done {
    /// For who wants to know no more. `otherwise` is the last entry about the object, if nothing was to be done.
    pub fn changed(&self, otherwise: u64) -> Changed {
        Changed { index: self.index.unwrap_or(otherwise), note: some(&self.decision.note) }
    }
}

/// The registry.
#[derive(Clone)]
pub struct Ledger {
    log: EventLog,
    state: Arc<RwLock<Arc<State>>>,
}

impl Ledger {
    /// Over this log.
    pub fn new(log: EventLog) -> Self {
        Self { log, state: Arc::default() }
    }

    /// What the log has come to.
    pub fn state(&self) -> Arc<State> {
        self.state.read().clone()
    }

    /// The log itself.
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// If it is refused, or the log does not take it.
    pub async fn decide(&self, caller: &Caller, reason: String, command: Command) -> Result<Done, Refused> {
        let principal = &caller.principal;
        let unique = || format!("{:032x}", rand::random::<u128>());
        let command_id = format!("{}/{}", principal.credential, caller.key.clone().unwrap_or_else(unique));
        loop {
            let state = self.state();
            let context = registry::Context {
                actor: principal.actor(),
                now_ms: clock::unix_millis(),
                command_id: command_id.clone(),
                reason: reason.clone(),
                if_match: caller.if_match,
                prepared: registry::Prepared::default(),
            };
            if let Some(index) = state.entry_of_command(&command_id) {
                return self.repeated(index, &command).await;
            }
            let decision = registry::handle(&state, &command, &context)
                .map_err(|refusal| self.refused(&refusal, caller, &command))?;
            if decision.events.is_empty() {
                return Ok(Done { index: None, decision, repeated: false, findings: Vec::new() });
            }
            let entry = registry::commands::entry(&state, &command, &context, decision.events.clone());
            match self.log.append(state.index(), entry, &[]).await {
                Ok(index) if index == state.index() + 1 => {
                    self.catch_up().await?;
                    return Ok(Done { index: Some(index), decision, repeated: false, findings: Vec::new() });
                }
                Ok(_) | Err(AppendError::Conflict { .. }) => self.catch_up().await?,
                Err(error) => return Err(not_appended(&error)),
            }
        }
    }

    /// Folds what is new in the log.
    ///
    /// # Errors
    /// If it cannot be read, or does not fold.
    pub async fn catch_up(&self) -> Result<(), Refused> {
        loop {
            let mut state = State::clone(&self.state());
            let entries = self.log.read(state.index() + 1, 1000).await.map_err(|error| unreadable(&error))?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in &entries {
                state.apply(entry).map_err(|error| Refused::new(Code::Internal, error.to_string()))?;
            }
            *self.state.write() = Arc::new(state);
        }
    }

    /// The answer to a command that was carried out before.
    async fn repeated(&self, index: u64, command: &Command) -> Result<Done, Refused> {
        let entry = self.entry(index).await?;
        let about = |name: &str| entry.events.iter().any(|event| event.service == name);
        if entry.command != command.word() || !command.service().is_none_or(about) {
            let detail = format!("entry {index} of the log has this key: {}", entry.command);
            let problem = Problem::new(Code::KeyReused, detail).field(tower_common::api::IDEMPOTENCY_KEY);
            return Err(problem.next("choose another key for each change").into());
        }
        Ok(Done { index: Some(index), decision: decision_of(&entry), repeated: true, findings: Vec::new() })
    }

    /// An entry of the log.
    ///
    /// # Errors
    /// If it is not there, or cannot be read.
    pub async fn entry(&self, index: u64) -> Result<v1::LogEntry, Refused> {
        let found = self.log.read(index, 1).await.map_err(|error| unreadable(&error))?;
        let found = found.into_iter().find(|entry| entry.index == index && index != 0);
        found.ok_or_else(|| Refused::no_such("entry", &index.to_string(), "/api/v1/activity"))
    }

    fn refused(&self, refusal: &registry::Refusal, caller: &Caller, command: &Command) -> Refused {
        let mut problem = findings::refusal(refusal);
        if let (Code::Stale, Some(index), Some(name)) = (problem.code, caller.if_match, command.service())
            && let Some(service) = self.state().service(name)
        {
            problem.since = findings::since(service, index);
        }
        problem.into()
    }
}

/// What a command that is in the log came to.
fn decision_of(entry: &v1::LogEntry) -> Decision {
    let mut decision = Decision { events: entry.events.clone(), ..Decision::default() };
    for event in entry.events.iter().filter_map(|event| event.event.as_ref()) {
        match event {
            Event::VersionUploaded(it) => decision.version = Some(it.number),
            Event::ActivationStarted(it) => {
                decision.version = Some(it.version);
                decision.activation = Some(it.activation.clone());
            }
            Event::ActivationEnded(it) if decision.activation.is_none() => {
                decision.activation = Some(it.activation.clone());
            }
            _ => {}
        }
    }
    decision
}

fn not_appended(error: &AppendError) -> Refused {
    let code = match error {
        AppendError::Unknown(_) => Code::Unknown,
        AppendError::TooLarge { .. } => Code::TooLarge,
        AppendError::CommandId { .. } => Code::Malformed,
        AppendError::Conflict { .. } | AppendError::Unavailable(_) | AppendError::Refused(_) => {
            Code::Unavailable
        }
    };
    Problem::new(code, error.to_string()).object("the event log").into()
}

/// What cannot be read of the log is Tower's fault, not that of who asks.
pub fn unreadable(error: &ReadError) -> Refused {
    let code = match error {
        ReadError::Unavailable(_) => Code::Unavailable,
        ReadError::Entry { .. } | ReadError::Bytes { .. } => Code::Internal,
    };
    Problem::new(code, error.to_string()).object("the event log").into()
}

impl Caller {
    /// Tower itself.
    pub fn tower() -> Self {
        let principal = Principal {
            name: permission::TOWER.to_owned(),
            credential: permission::TOWER.to_owned(),
            roles: Vec::new(),
            services: Vec::new(),
            expires_ms: None,
            address: String::new(),
        };
        Self { principal, key: None, if_match: None }
    }
}

impl FromRequest for Caller {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let principal = Principal::from_request(request, payload).into_inner();
        let key = Key::from_request(request, payload).into_inner();
        let if_match = IfMatch::from_request(request, payload).into_inner();
        future::ready((|| Ok(Self { principal: principal?, key: key?.0, if_match: if_match?.index() }))())
    }
}
