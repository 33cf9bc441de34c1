//! What went wrong, for people and for scripts.

use std::{fmt, process::ExitCode};

use tower_common::api::Code;

/// What a failure means to a script: the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It failed; of `diff`: there is a difference.
    Failed = 1,
    /// The command line is wrong, or the person said no.
    Usage = 2,
    /// Not signed in, or not allowed.
    Auth = 4,
    /// The document or the request is wrong.
    Invalid = 5,
    /// It has changed since it was looked at.
    Stale = 6,
    /// It was tried, and taken back.
    RolledBack = 7,
    /// Time is up; it may have happened, or may yet.
    Unknown = 8,
    /// An approval is missing, or a freeze is on.
    Blocked = 9,
}

/// The list for `--help`.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed (diff: there is a difference); 2 wrong usage, \
     or cancelled; 4 not signed in, or not allowed; 5 invalid; 6 changed meanwhile; 7 taken back; 8 outcome \
     unknown, time is up; 9 blocked.";

/// A failure.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What it means.
    pub(crate) exit: Exit,
    /// What is wrong, with the object that is concerned.
    pub(crate) message: String,
    /// What can be done about it.
    pub(crate) next: Option<String>,
}

impl Exit {
    /// Of a refusal by Tower.
    pub(crate) fn of(code: Code) -> Self {
        match code.exit_code() {
            2 => Self::Usage,
            4 => Self::Auth,
            5 => Self::Invalid,
            6 => Self::Stale,
            8 => Self::Unknown,
            9 => Self::Blocked,
            _ => Self::Failed,
        }
    }
}

impl Failure {
    /// A failure of this kind.
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), next: None }
    }

    /// With what to do next.
    pub(crate) fn next(mut self, next: impl fmt::Display) -> Self {
        self.next = Some(next.to_string());
        self
    }

    /// A wrong command line.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.next {
            Some(next) => write!(f, "\n  next: {next}"),
            None => Ok(()),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
