//! What is looked at: services, hosts, sources, the log.

use clap::{Args, Subcommand, ValueEnum};

use crate::period::When;

/// `describe`.
#[derive(Debug, Subcommand)]
pub(crate) enum Describe {
    /// A service: what is active, where each field comes from, its endpoints
    Service {
        /// The service
        service: String,
    },
    /// A host: what it holds, and what its Envoys accepted
    Host {
        /// The Beacon's node id
        host: String,
        /// What was active for it then: a time such as 2026-01-31T12:00:00Z, how long ago, such as 2h, or
        /// an entry of the log, such as @17
        #[arg(long, value_name = "WHEN")]
        at: Option<When>,
    },
}

/// Which page of a long list.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// Only those whose name has this in it
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// How many at most; all of them otherwise
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,
}

/// `service`.
#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// All services
    List(Listing),
    /// What is active of a service
    Get {
        /// The service
        service: String,
    },
    /// All that is known of a service
    Describe {
        /// The service
        service: String,
    },
    /// Its instances
    Endpoints {
        /// The service
        service: String,
    },
    /// Take its document out of service: callers get what services without a document have
    Deactivate {
        /// The service
        service: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// `beacon`.
#[derive(Debug, Subcommand)]
pub(crate) enum Beacon {
    /// A row for each host: what its Envoys have accepted, by type
    Status {
        /// Only hosts with these labels, such as team=ads,zone=us-east-1a
        #[arg(short = 'l', long, value_name = "LABELS")]
        selector: Option<String>,
        /// Only hosts whose name has this in it
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
    },
    /// What a host serves its Envoys
    Config {
        /// The Beacon's node id
        host: String,
        /// What to show
        #[arg(value_enum)]
        what: Option<Served>,
    },
    /// Which hosts lack a release, why, and since when
    Lacking {
        /// The release
        release: String,
    },
}

/// Types of resources, as people call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Served {
    /// LDS.
    Listeners,
    /// RDS.
    Routes,
    /// CDS.
    Clusters,
    /// EDS.
    Endpoints,
    /// SDS.
    Secrets,
}

/// `source`.
#[derive(Debug, Subcommand)]
pub(crate) enum Source {
    /// All sources, and how they are
    List,
    /// Histories that do not go on where the last left off
    Quarantines,
    /// Believe what a source holds now
    Adopt {
        /// The source's id
        source: String,
        /// The history that was seen; `source quarantines` shows it
        #[arg(long)]
        incarnation: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// `guard`.
#[derive(Debug, Subcommand)]
pub(crate) enum Guard {
    /// What is held, and since when
    List,
    /// Let what is held go
    Release {
        /// The hold's id
        hold: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// `activity`.
#[derive(Debug, Subcommand)]
pub(crate) enum Activity {
    /// The latest, newest last
    List(ActivityFilter),
    /// What happens from now on
    Follow(ActivityFilter),
}

/// Which activity.
#[derive(Debug, Args)]
pub(crate) struct ActivityFilter {
    /// About this service
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// By this author
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    /// After this entry of the log
    #[arg(long, value_name = "INDEX")]
    pub(crate) after: Option<u64>,
    /// How many at most
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// `log`.
#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    /// Where the log stands, and whether it can be written
    Status,
}
