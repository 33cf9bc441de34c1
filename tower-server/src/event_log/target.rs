//! What `--event-log` says.

use std::{fmt, str::FromStr};

use crate::sources::spec::{Ensemble, EnsembleFault};

const EMBEDDED: &str = "embedded";

/// Where the log is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// In Tower's data folder.
    #[default]
    Embedded,
    /// In an ensemble.
    ZooKeeper(Ensemble),
}

/// Why a value of `--event-log` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotATarget {
    /// It is neither of the two.
    #[error("{0:?} is no log; there are embedded and zk://HOSTS/PATH")]
    Unknown(String),
    /// It is an ensemble, and one that cannot be used.
    #[error(transparent)]
    Ensemble(#[from] EnsembleFault),
}

impl FromStr for Target {
    type Err = NotATarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            EMBEDDED => Ok(Self::Embedded),
            url if url.contains("://") => Ok(Self::ZooKeeper(Ensemble::parse(url)?)),
            other => Err(NotATarget::Unknown(other.to_owned())),
        }
    }
}

/// Where it is, without how it is reached.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str(EMBEDDED),
            Self::ZooKeeper(ensemble) => ensemble.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two() {
        assert_eq!("embedded".parse(), Ok(Target::Embedded));
        let target: Target = "zk://h:2181/tower".parse().unwrap();
        assert_eq!(target.to_string(), "zk://h:2181/tower");
        let error = |text: &str| text.parse::<Target>().unwrap_err().to_string();
        assert!(error("sled").contains("\"sled\" is no log; there are embedded and zk://"));
        assert!(error("zk://h").contains("\"zk://h\": path: missing"));
    }
}
