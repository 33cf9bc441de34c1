//! Commands, a file each. A command is checked against the state and becomes events; nothing here reads a
//! clock, a log or a document: what a document says is [`Prepared`] before.

mod abort;
mod activate;
mod adopt;
mod approve;
mod deactivate;
mod edit_part;
mod end;
mod holds;
mod report;
mod retire;
mod roll_back;
mod start;
mod step;
mod tokens;
mod traffic;
mod upload;

use std::collections::BTreeMap;

use bytes::Bytes;
use tower_common::audience::Workload;
use tower_proto::v1::{self, event::Event};

pub use self::{
    abort::Abort,
    activate::Activate,
    adopt::Adopt,
    approve::Approve,
    deactivate::Deactivate,
    edit_part::EditPart,
    end::End,
    holds::{RecordHold, ReleaseHold},
    report::Report,
    retire::Retire,
    roll_back::{RollBack, Target, target},
    start::{Plan, PlannedStep, activation_id},
    step::Step,
    tokens::{IssueToken, RevokeToken},
    traffic::{Traffic, base},
    upload::Upload,
};
use super::{
    permission::{Action, may},
    refusal::{Refusal, RefusalKind},
    service::Service,
    state::State,
};

/// Longer reasons are refused.
pub const MAX_REASON_CHARS: usize = 500;

/// What somebody asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Keep a document as a version.
    Upload(Upload),
    /// Say that a version may be used.
    Approve(Approve),
    /// Say that a version is not to be used again.
    Retire(Retire),
    /// Give a version to hosts.
    Activate(Activate),
    /// Change weights, and nothing else.
    Traffic(Traffic),
    /// Go back to what stood before.
    RollBack(RollBack),
    /// Go back to no document.
    Deactivate(Deactivate),
    /// Take an activation back.
    Abort(Abort),
    /// Send an activation to its next step.
    Step(Step),
    /// Say what a Tower's Beacons made of a step.
    Report(Report),
    /// Say how an activation has ended.
    End(End),
    /// Edit a part of platform or security.
    EditPart(EditPart),
    /// Issue a token.
    IssueToken(IssueToken),
    /// Revoke a token.
    RevokeToken(RevokeToken),
    /// Say what the guard holds.
    RecordHold(RecordHold),
    /// Let go what the guard holds.
    ReleaseHold(ReleaseHold),
    /// Believe another history of a source.
    Adopt(Adopt),
}

/// Who asks, when, and why.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Who.
    pub actor: v1::Actor,
    /// When, in milliseconds since 1970.
    pub now_ms: u64,
    /// What makes the command one, however often it comes.
    pub command_id: String,
    /// Why.
    pub reason: String,
    /// The etag that the command was made for, of the service or part that it is about.
    pub if_match: Option<u64>,
    /// What was found out for the command.
    pub prepared: Prepared,
}

/// What takes documents, bodies or the fleet to find out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prepared {
    /// The document in the command, or made by it.
    pub document: Option<PreparedDocument>,
    /// The compiled release. Its version is not looked at: a new document has none yet.
    pub release: Option<v1::ReleaseMade>,
    /// The workloads of each tier that the version's document names.
    pub tiers: BTreeMap<String, Vec<Workload>>,
    /// A host to begin with: one in the audience, connected, with an Envoy.
    pub first_host: Option<String>,
}

/// A document that was parsed and checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PreparedDocument {
    /// The hash of its canonical form.
    pub hash: Vec<u8>,
    /// The hash of the body.
    pub body: Vec<u8>,
    /// Who owns it, as it says.
    pub owner: String,
}

/// What a command comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// What is to be appended; nothing, if all is as the command wants it.
    pub events: Vec<v1::Event>,
    /// What to say besides, such as why nothing is to be done; empty if nothing is.
    pub note: String,
    /// The version that the command is about.
    pub version: Option<u64>,
    /// The activation that the command has started, or is about.
    pub activation: Option<String>,
}

/// Decides a command.
///
/// # Errors
/// If it is wrong, not allowed, or the state of things is against it.
pub fn handle(state: &State, command: &Command, context: &Context) -> Result<Decision, Refusal> {
    if context.reason.chars().count() > MAX_REASON_CHARS {
        let message = format!("a reason has at most {MAX_REASON_CHARS} characters");
        return Err(Refusal::new(RefusalKind::Invalid, "reason", command.object(), message).field("reason"));
    }
    match command {
        Command::Upload(command) => upload::handle(state, command, context),
        Command::Approve(command) => approve::handle(state, command, context),
        Command::Retire(command) => retire::handle(state, command, context),
        Command::Activate(command) => activate::handle(state, command, context),
        Command::Traffic(command) => traffic::handle(state, command, context),
        Command::RollBack(command) => roll_back::handle(state, command, context),
        Command::Deactivate(command) => deactivate::handle(state, command, context),
        Command::Abort(command) => abort::handle(state, command, context),
        Command::Step(command) => step::handle(state, command, context),
        Command::Report(command) => report::handle(state, command, context),
        Command::End(command) => end::handle(state, command, context),
        Command::EditPart(command) => edit_part::handle(state, command, context),
        Command::IssueToken(command) => tokens::issue(state, command, context),
        Command::RevokeToken(command) => tokens::revoke(state, command, context),
        Command::RecordHold(command) => holds::record(state, command, context),
        Command::ReleaseHold(command) => holds::release(state, command, context),
        Command::Adopt(command) => adopt::handle(state, command, context),
    }
}

/// The entry that a decision becomes, if it has events: the one after those that the state is folded of.
pub fn entry(state: &State, command: &Command, context: &Context, events: Vec<v1::Event>) -> v1::LogEntry {
    v1::LogEntry {
        index: state.index() + 1,
        command_id: context.command_id.clone(),
        actor: Some(context.actor.clone()),
        time_ms: context.now_ms,
        reason: context.reason.clone(),
        command: command.word().to_owned(),
        events,
        asked: command.asked(),
        ..v1::LogEntry::default()
    }
}

impl Command {
    /// By this a command that comes twice is told from another one with its id. Empty for a token: its secret is
    /// another one each time.
    pub fn asked(&self) -> Bytes {
        match self {
            Self::IssueToken(_) => Bytes::new(),
            _ => Bytes::copy_from_slice(&blake3::hash(format!("{self:?}").as_bytes()).as_bytes()[..16]),
        }
    }

    /// The command in a word, as it is in the log.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Upload(_) => "upload",
            Self::Approve(_) => "approve",
            Self::Retire(_) => "retire",
            Self::Activate(_) => "activate",
            Self::Traffic(_) => "traffic",
            Self::RollBack(_) => "roll-back",
            Self::Deactivate(_) => "deactivate",
            Self::Abort(_) => "abort",
            Self::Step(_) => "step",
            Self::Report(_) => "report",
            Self::End(_) => "end",
            Self::EditPart(_) => "edit-part",
            Self::IssueToken(_) => "issue-token",
            Self::RevokeToken(_) => "revoke-token",
            Self::RecordHold(_) => "record-hold",
            Self::ReleaseHold(_) => "release-hold",
            Self::Adopt(_) => "adopt",
        }
    }

    /// The service that it is about.
    pub fn service(&self) -> Option<&str> {
        match self {
            Self::Upload(command) => Some(&command.service),
            Self::Approve(command) => Some(&command.service),
            Self::Retire(command) => Some(&command.service),
            Self::Activate(command) => Some(&command.service),
            Self::Traffic(command) => Some(&command.service),
            Self::RollBack(command) => Some(&command.service),
            Self::Deactivate(command) => Some(&command.service),
            Self::Abort(command) => Some(&command.service),
            Self::Step(command) => Some(&command.service),
            Self::Report(command) => Some(&command.service),
            Self::End(command) => Some(&command.service),
            Self::EditPart(command) => command.service.as_deref(),
            Self::IssueToken(_)
            | Self::RevokeToken(_)
            | Self::RecordHold(_)
            | Self::ReleaseHold(_)
            | Self::Adopt(_) => None,
        }
    }

    /// What it is about, in words.
    pub(super) fn object(&self) -> String {
        self.service().map_or_else(|| self.word().to_owned(), |service| format!("service {service}"))
    }
}

impl Context {
    /// Refuses whoever may not do this.
    fn may(&self, state: &State, action: Action, service: Option<&str>) -> Result<(), Refusal> {
        may(state, &self.actor.credential, action, service, self.now_ms)
    }

    /// Refuses what needs a reason and has none.
    fn needs_reason(&self, object: &str, why: &str) -> Result<(), Refusal> {
        if !self.reason.trim().is_empty() {
            return Ok(());
        }
        let refusal =
            Refusal::new(RefusalKind::Invalid, "no-reason", object, format!("{why} needs a reason"));
        Err(refusal.field("reason").next("say why"))
    }
}

impl Decision {
    /// Nothing is to be done, because of this.
    fn nothing(note: impl Into<String>) -> Self {
        Self { note: note.into(), ..Self::default() }
    }

    fn of(events: Vec<v1::Event>) -> Self {
        Self { events, ..Self::default() }
    }
}

fn event(service: &str, event: Event) -> v1::Event {
    v1::Event { service: service.to_owned(), event: Some(event) }
}

fn assigned(service: &str, assignment: v1::Assignment) -> v1::Event {
    event(service, Event::Assigned(v1::Assigned { assignment: Some(assignment) }))
}

/// How a version is called.
fn called(service: &str, number: u64) -> String {
    format!("version {service}@{number}")
}

fn known<'a>(state: &'a State, service: &str) -> Result<&'a Service, Refusal> {
    let found = state.service(service).filter(|service| !service.versions.is_empty());
    found.map(|service| &**service).ok_or_else(|| {
        let object = format!("service {service}");
        Refusal::new(RefusalKind::NotFound, "no-such-service", object, "it has no version")
            .next("upload one, or look for the name in the list of services")
    })
}

/// A version that can be used.
fn usable<'a>(name: &str, service: &'a Service, number: u64) -> Result<&'a v1::VersionRecord, Refusal> {
    let object = called(name, number);
    let Some(version) = service.version(number) else {
        let newest = service.versions.len();
        let message = format!("there is no such version; the newest is {name}@{newest}");
        return Err(Refusal::new(RefusalKind::NotFound, "no-such-version", object, message).field("version"));
    };
    if version.retired.is_some() {
        return Err(Refusal::new(RefusalKind::Blocked, "retired", object, "it is retired")
            .field("version")
            .next("upload its document again with a change, or use another version"));
    }
    Ok(version)
}
