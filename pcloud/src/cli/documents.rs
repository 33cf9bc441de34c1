//! Documents, versions and parts: what is written, before it is anywhere in effect.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::reference::VersionRef;

/// A person's word for what belongs to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Owner {
    /// The service's owner.
    Service,
    /// The infrastructure team.
    Platform,
    /// The security team.
    Security,
}

/// From which finding on a check fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Threshold {
    /// Only errors.
    Error,
    /// Warnings as well.
    Warning,
    /// Anything.
    Info,
}

/// `lint`.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Documents; `-` is standard input
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,
    /// Whose document it is
    #[arg(long, value_enum, default_value = "service")]
    pub(crate) owner: Owner,
    /// Fail from this severity on
    #[arg(long, value_enum, value_name = "SEVERITY", default_value = "error")]
    pub(crate) failure_threshold: Threshold,
}

/// A version that is there, or a document that is not uploaded yet.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Subject {
    /// A version, such as web@3
    pub(crate) version: Option<VersionRef>,
    /// A document that has not been uploaded; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// What is compared.
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// With which version of the service, instead of the one that is active
    #[arg(long, value_name = "NUMBER")]
    pub(crate) against: Option<u64>,
    /// Show a tool's difference of the two documents; PCLOUD_DIFF names it, such as "diff -u"
    #[arg(long, env = "PCLOUD_DIFF", value_name = "COMMAND")]
    pub(crate) tool: Option<String>,
}

/// Which hosts.
#[derive(Debug, Args)]
pub(crate) struct Audience {
    /// Which hosts: everyone, host=a,b, zone=us-east-1a, label:team=ads, workload=ads/canary, tier=canary, 10%.
    /// Given several times, or joined by &, all must fit
    #[arg(long, value_name = "AUDIENCE", default_value = "everyone")]
    pub(crate) audience: Vec<String>,
}

/// `plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// What would be activated.
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Where.
    #[command(flatten)]
    pub(crate) audience: Audience,
}

/// `version`.
#[derive(Debug, Subcommand)]
pub(crate) enum Version {
    /// Upload a document as a new version, which changes nothing until it is activated. Prints its id, and
    /// nothing else, on standard output
    Upload {
        /// The document; `-` is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Only if nothing has changed since
        #[arg(long, value_name = "ETAG")]
        if_match: Option<String>,
    },
    /// The versions of a service
    List {
        /// The service
        service: String,
    },
    /// A version's document, as it was uploaded
    Get {
        /// The version, such as web@3
        version: VersionRef,
    },
    /// Approve a version
    Approve {
        /// The version, such as web@3
        version: VersionRef,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Say that a version is not to be activated again
    Retire {
        /// The version, such as web@3
        version: VersionRef,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// Whose part, of which service.
#[derive(Debug, Args)]
pub(crate) struct PartName {
    /// Whose
    #[arg(value_enum)]
    pub(crate) owner: Owner,
    /// For this service; for all without
    pub(crate) service: Option<String>,
}

/// `part`.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// Print a part
    Get(PartName),
    /// Replace a part; services take it in with their next activation
    Set {
        /// Which.
        #[command(flatten)]
        name: PartName,
        /// The document; `-` is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Only if it has not changed since
        #[arg(long, value_name = "ETAG")]
        if_match: Option<String>,
    },
    /// Remove a part
    Delete {
        /// Which.
        #[command(flatten)]
        name: PartName,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}
