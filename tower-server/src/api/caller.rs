//! Who wants a change, and the way there: from a request to the registry, and back to an answer.

use actix_web::{FromRequest, HttpRequest, dev};
use futures::future;
use tower_common::{
    api::{Changed, Code, IDEMPOTENCY_KEY, Problem},
    clock,
};
use tower_proto::v1::{self, part_edited::Owner};

use super::{
    conditions::{IfMatch, Key},
    error::Refused,
    told::{findings, some},
};
use crate::{
    auth::identity::Principal,
    event_log::ReadError,
    registry::{
        Answer, Command, Refusal, Registry, Request, SubmitError,
        permission::{Action, may},
    },
};

/// How the registry calls a command id that was used for something else.
const REUSED: &str = "command-id-reused";

/// Who wants a change, known by which key.
#[derive(Debug, Clone)]
pub struct Writer {
    principal: Principal,
    key: Option<String>,
}

/// The same, with the state that the change was made for.
#[derive(Debug, Clone)]
pub struct Caller {
    writer: Writer,
    if_match: Option<u64>,
}

impl Caller {
    /// Carries out a command, if the state is still the one that it was made for.
    ///
    /// # Errors
    /// If it is refused, or the log does not take it.
    pub async fn submit(
        &self,
        registry: &Registry,
        reason: String,
        command: Command,
    ) -> Result<Answer, Refused> {
        self.writer.submit_if(registry, reason, command, self.if_match).await
    }
}

impl Writer {
    /// Carries out a command.
    ///
    /// # Errors
    /// If it is refused, or the log does not take it.
    pub async fn submit(
        &self,
        registry: &Registry,
        reason: String,
        command: Command,
    ) -> Result<Answer, Refused> {
        self.submit_if(registry, reason, command, None).await
    }

    /// Refuses whoever may not do this, before anything is looked up for it.
    ///
    /// # Errors
    /// If they may not.
    pub fn may(&self, registry: &Registry, action: Action) -> Result<(), Refused> {
        let now = clock::unix_millis();
        let allowed = registry.read(|state| may(state, &self.principal.credential, action, None, now));
        allowed.map_err(|refusal| findings::refusal(&refusal).into())
    }

    /// Refuses whoever may not carry this out in any case, before documents are read and compiled for it. What the
    /// case is, the registry finds out.
    fn may_perhaps(&self, registry: &Registry, command: &Command) -> Result<(), Refused> {
        let now = clock::unix_millis();
        let may = |action: &Action| {
            registry.read(|state| may(state, &self.principal.credential, *action, command.service(), now))
        };
        let actions = actions(command);
        match actions.first().map(may) {
            Some(Err(refusal)) if !actions.iter().any(|action| may(action).is_ok()) => {
                Err(findings::refusal(&refusal).into())
            }
            _ => Ok(()),
        }
    }

    async fn submit_if(
        &self,
        registry: &Registry,
        reason: String,
        command: Command,
        if_match: Option<u64>,
    ) -> Result<Answer, Refused> {
        self.may_perhaps(registry, &command)?;
        let service = command.service().map(str::to_owned);
        // Each caller's keys are their own.
        let credential = &self.principal.credential;
        let request = Request {
            actor: self.principal.actor(),
            command_id: self.key.as_ref().map(|key| format!("{credential}/{key}")).unwrap_or_default(),
            reason,
            if_match,
        };
        let answer = registry.submit(command, request).await;
        answer.map_err(|error| match error {
            SubmitError::Refused(refusal) => refused(registry, &refusal, service.as_deref(), if_match),
            error => failed(error),
        })
    }
}

/// Why the registry has not done what it was asked, other than by refusing it.
#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
pub fn failed(error: SubmitError) -> Refused {
    let code = match error {
        SubmitError::Refused(_) => Code::Invalid,
        SubmitError::Unavailable(_) => Code::Unavailable,
        SubmitError::Failed(_) => Code::Internal,
        SubmitError::Unknown(_) => {
            let next = format!("ask again with the same {IDEMPOTENCY_KEY}: it tells, or does it");
            return Problem::new(Code::Unknown, error.to_string()).next(next).into();
        }
    };
    Refused::new(code, error.to_string())
}

/// What it may take to carry out a command: any of these.
fn actions(command: &Command) -> &'static [Action] {
    match command {
        Command::Upload(_) => &[Action::Upload],
        Command::Approve(_) => &[Action::Approve],
        Command::Retire(_) => &[Action::Retire],
        Command::Activate(_) | Command::RollBack(_) => &[Action::Activate, Action::Rerelease],
        Command::Traffic(_) => &[Action::Activate],
        Command::Deactivate(_) => &[Action::Deactivate],
        Command::Abort(_) => &[Action::Abort],
        Command::EditPart(edit) => match edit.owner {
            Owner::Unspecified | Owner::Platform => &[Action::EditPlatform],
            Owner::Security => &[Action::EditSecurity],
        },
        Command::IssueToken(_) => &[Action::ManageTokens],
        Command::ReleaseHold(_) => &[Action::ReleaseHold],
        Command::Adopt(_) => &[Action::Adopt],
        // One's own token may be given back; the others are Tower's, and do not come this way.
        Command::RevokeToken(_)
        | Command::Step(_)
        | Command::Report(_)
        | Command::End(_)
        | Command::RecordHold(_) => &[],
    }
}

fn refused(registry: &Registry, refusal: &Refusal, service: Option<&str>, if_match: Option<u64>) -> Refused {
    let mut problem = findings::refusal(refusal);
    if refusal.code == REUSED {
        (problem.code, problem.status) = (Code::KeyReused, Code::KeyReused.status());
        problem.title = Code::KeyReused.title().to_owned();
        problem.field = Some(IDEMPOTENCY_KEY.to_owned());
    }
    if let (Code::Stale, Some(index), Some(name)) = (problem.code, if_match, service) {
        let since = |service: &_| findings::since(service, index);
        let since = registry.read(|state| state.service(name).map(|service| since(service)));
        problem.since = since.unwrap_or_default();
    }
    problem.into()
}

/// The answer of a command for who wants to know no more. `index` is the last entry about the object.
pub fn changed(answer: &Answer, index: u64) -> Changed {
    Changed { index: if answer.events.is_empty() { index } else { answer.index }, note: some(&answer.note) }
}

/// An entry of the log.
///
/// # Errors
/// If it is not there, or cannot be read.
pub async fn entry(registry: &Registry, index: u64) -> Result<v1::LogEntry, Refused> {
    let found = registry.entries(index, 1).await.map_err(|error| unreadable(&error))?;
    let found = found.into_iter().find(|entry| entry.index == index);
    found.ok_or_else(|| Refused::no_such("entry", &index.to_string(), "/api/v1/activity"))
}

/// What cannot be read of the log is Tower's fault, not that of who asks.
pub fn unreadable(error: &ReadError) -> Refused {
    let code = match error {
        ReadError::Unavailable(_) => Code::Unavailable,
        ReadError::Entry { .. } | ReadError::Bytes { .. } => Code::Internal,
    };
    Problem::new(code, error.to_string()).object("the event log").into()
}

impl FromRequest for Writer {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let principal = Principal::from_request(request, payload).into_inner();
        let key = Key::from_request(request, payload).into_inner();
        future::ready((|| Ok(Self { principal: principal?, key: key?.0 }))())
    }
}

impl FromRequest for Caller {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let writer = Writer::from_request(request, payload).into_inner();
        let if_match = IfMatch::from_request(request, payload).into_inner();
        future::ready((|| Ok(Self { writer: writer?, if_match: if_match?.index() }))())
    }
}
