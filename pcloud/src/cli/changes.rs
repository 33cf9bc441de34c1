//! What changes hosts: activations, ways back, weights.

use clap::{Args, Subcommand};

use super::Audience;
use crate::{
    period::Period,
    reference::{self, VersionRef},
};

/// How long to stay for the outcome.
#[derive(Debug, Args)]
pub(crate) struct Waiting {
    /// Wait until every host has it, or it has been taken back
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) timeout: Period,
}

/// `activate`.
#[derive(Debug, Args)]
pub(crate) struct Activate {
    /// The version, such as web@3
    pub(crate) version: VersionRef,
    /// Where.
    #[command(flatten)]
    pub(crate) audience: Audience,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// On all hosts of the audience at once; needs a reason
    #[arg(long, requires = "reason")]
    pub(crate) at_once: bool,
    /// Take it back by itself after this time
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<Period>,
    /// Also if the version was rejected, or gone back from, before
    #[arg(long)]
    pub(crate) again: bool,
    /// Only if nothing has changed since; `plan` prints the value
    #[arg(long, value_name = "ETAG")]
    pub(crate) if_match: Option<String>,
    /// Whether to stay.
    #[command(flatten)]
    pub(crate) waiting: Waiting,
}

/// `rollback`.
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// The service
    pub(crate) service: String,
    /// To this version instead of the one before
    #[arg(long, value_name = "NUMBER")]
    pub(crate) to: Option<u64>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Whether to stay.
    #[command(flatten)]
    pub(crate) waiting: Waiting,
}

/// `activation`.
#[derive(Debug, Subcommand)]
pub(crate) enum Activation {
    /// The activations of a service
    List {
        /// The service
        service: String,
    },
    /// How one stands
    Get {
        /// Its id
        activation: String,
    },
    /// Wait for the outcome of one
    Wait {
        /// Its id
        activation: String,
        /// How long to wait
        #[arg(long, value_name = "TIME", default_value = "10m")]
        timeout: Period,
    },
    /// Stop one, and go back to what was before
    Abort {
        /// Its id
        activation: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// `traffic`.
#[derive(Debug, Subcommand)]
pub(crate) enum Traffic {
    /// How calls are split now
    Get {
        /// The service
        service: String,
    },
    /// Split calls anew: only the weights change
    Set {
        /// The service
        service: String,
        /// The weight of each subset, such as stable=90 canary=10
        #[arg(required = true, value_parser = reference::weight, value_name = "SUBSET=WEIGHT")]
        weights: Vec<(String, u32)>,
        /// Of this route alone
        #[arg(long, value_name = "NAME")]
        route: Option<String>,
        /// Take it back by itself after this time
        #[arg(long, value_name = "TIME")]
        ttl: Option<Period>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// On all hosts at once; needs a reason
        #[arg(long, requires = "reason")]
        at_once: bool,
        /// Only if nothing has changed since
        #[arg(long, value_name = "ETAG")]
        if_match: Option<String>,
        /// Whether to stay.
        #[command(flatten)]
        waiting: Waiting,
    },
}
