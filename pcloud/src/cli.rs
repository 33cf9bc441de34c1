//! The command line: nouns and verbs.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    context::Target,
    failure::EXIT_CODES,
    output::Output,
    period::Period,
    reference::{self, VersionRef},
};

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

/// `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// All tokens, without their secrets
    List,
    /// Make a token, and print it: it is not shown again
    Create {
        /// Whom it is for
        name: String,
        /// For whoever has a client certificate with this name, instead of a token
        #[arg(long, value_name = "NAME")]
        certificate: Option<String>,
        /// What it allows; may be repeated
        #[arg(long, value_enum, value_name = "ROLE", required = true)]
        role: Vec<Role>,
        /// Which services, for the role owner; may be repeated
        #[arg(long, value_name = "NAME")]
        service: Vec<String>,
        /// How long it lasts; for ever otherwise
        #[arg(long, value_name = "TIME")]
        ttl: Option<Period>,
    },
    /// End a token
    Revoke {
        /// Its id
        id: String,
    },
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Reading.
    Viewer,
    /// Changing named services.
    Owner,
    /// Changing the platform's parts, sources and guard.
    Platform,
    /// Changing security's parts.
    Security,
    /// Everything.
    Admin,
}

/// `auth`.
#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Store a token, read from standard input, in the context in use
    Login,
    /// Forget the stored token
    Logout,
    /// Who Tower takes you for
    Status,
}

/// `context`.
#[derive(Debug, Subcommand)]
pub(crate) enum Context {
    /// All contexts
    List,
    /// Use this one from now on
    Use {
        /// Its name
        name: String,
    },
    /// Make or change one, by --tower, --tls-ca and --tls-identity
    Set {
        /// Its name
        name: String,
    },
    /// Forget one
    Delete {
        /// Its name
        name: String,
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
