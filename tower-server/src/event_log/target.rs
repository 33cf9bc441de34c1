//! What `--event-log` says.

use std::{fmt, str::FromStr};

/// Where the log is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// In Tower's data folder.
    #[default]
    Embedded,
}

/// Why a value of `--event-log` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not a log: there is embedded")]
pub struct NotATarget {
    value: String,
}

impl FromStr for Target {
    type Err = NotATarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "embedded" => Ok(Self::Embedded),
            value => Err(NotATarget { value: value.to_owned() }),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
        }
    }
}
