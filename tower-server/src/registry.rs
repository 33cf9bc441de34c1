//! What was decided about services: the state that the event log comes to, and the commands that add to it.
//!
//! A command is checked against the folded [`State`] and becomes events ([`commands::handle`]); these are
//! appended to the log, and applied when they come back ([`State::apply`]). Both are pure: no clock, no IO.

pub mod commands;
pub mod fold;
mod follower;
pub mod handle;
pub mod permission;
pub mod prepare;
pub mod publication;
pub mod refusal;
pub mod replay;
pub mod service;
pub mod state;
pub mod steps;

pub use self::{
    commands::{Command, Context, Decision, Prepared, handle},
    fold::{Applied, FoldError},
    follower::{Options, start},
    handle::{Answer, LogState, Registry, Request, Status, SubmitError},
    refusal::{Refusal, RefusalKind},
    service::Service,
    state::State,
};

#[cfg(test)]
pub(crate) use self::follower::tests::support as testing;
#[cfg(test)]
mod tests;
