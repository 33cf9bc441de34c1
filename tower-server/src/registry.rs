//! What was decided about services: the state that the event log comes to, and the commands that add to it.
//!
//! A command is checked against the folded [`State`] and becomes events ([`commands::handle`]); these are
//! appended to the log, and applied when they come back ([`State::apply`]). Both are pure: no clock, no IO.

pub mod commands;
pub mod fold;
pub mod permission;
pub mod refusal;
pub mod service;
pub mod state;
pub mod steps;

pub use self::{
    commands::{Command, Context, Decision, Prepared, handle},
    fold::{Applied, FoldError},
    refusal::{Refusal, RefusalKind},
    service::Service,
    state::State,
};

#[cfg(test)]
mod tests;
