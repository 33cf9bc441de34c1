//! Who asks, and whom.

use clap::{Subcommand, ValueEnum};

use crate::period::Period;

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
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
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
