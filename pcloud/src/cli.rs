//! The command line: nouns and verbs.

mod access;
mod changes;
mod documents;
mod sights;

use clap::{Parser, Subcommand};

pub(crate) use self::{
    access::{Auth, Context, Role, Token},
    changes::{Activate, Activation, Rollback, Traffic, Waiting},
    documents::{Audience, Diff, Lint, Owner, Part, PartName, Plan, Subject, Threshold, Version},
    sights::{Activity, ActivityFilter, Beacon, Describe, Guard, Listing, Log, Served, Service, Source},
};
use crate::{context::Target, failure::EXIT_CODES, output::Output};

/// Changes what Tower distributes to every host, and shows what became of it.
#[derive(Debug, Parser)]
#[command(name = "pcloud", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Whom to ask.
    #[command(flatten, next_help_heading = "Tower")]
    pub(crate) target: Target,
    /// How to print.
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: Output,
}

/// Nouns, and the verbs that stand alone.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check documents, without Tower
    Lint(Lint),
    /// Show how a document or a version differs from what is active
    Diff(Diff),
    /// Show what activating a document or a version would do, and to which hosts
    Plan(Plan),
    /// Activate a version: a few hosts first, then more, back at the first rejection
    Activate(Activate),
    /// Go back to what was active before, everywhere and at once
    Rollback(Rollback),
    /// Show all that is known of something
    #[command(subcommand)]
    Describe(Describe),
    /// Services, discovered or configured
    #[command(subcommand)]
    Service(Service),
    /// Versions of service documents
    #[command(subcommand)]
    Version(Version),
    /// Activations, under way and past
    #[command(subcommand)]
    Activation(Activation),
    /// How calls are split over subsets
    #[command(subcommand)]
    Traffic(Traffic),
    /// The parts of documents that belong to platform and security
    #[command(subcommand)]
    Part(Part),
    /// The hosts' Beacons, and what their Envoys accepted
    #[command(subcommand)]
    Beacon(Beacon),
    /// Where facts come from
    #[command(subcommand)]
    Source(Source),
    /// What is held back from being removed
    #[command(subcommand)]
    Guard(Guard),
    /// Who did what, when, and why
    #[command(subcommand)]
    Activity(Activity),
    /// The event log behind all of it
    #[command(subcommand)]
    Log(Log),
    /// Tokens to sign in with
    #[command(subcommand)]
    Token(Token),
    /// Signing in
    #[command(subcommand)]
    Auth(Auth),
    /// Towers by name
    #[command(subcommand)]
    Context(Context),
    /// Print a script that completes commands in a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn something_at_once_needs_a_reason() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("pcloud activate web@1 --at-once").is_err());
        assert!(parse("pcloud activate web@1 --at-once --reason fire").is_ok());
        assert!(parse("pcloud traffic set web a=1 --at-once").is_err());
        assert!(parse("pcloud plan").is_err(), "of what?");
        assert!(parse("pcloud plan web@1 -f x").is_err());
    }
}
