//! Versions as people name them: `web@3`.

use std::{fmt, str::FromStr};

/// A version of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionRef {
    /// The service.
    pub(crate) service: String,
    /// 1, 2, 3, …
    pub(crate) number: u64,
}

impl FromStr for VersionRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} names no version; write the service and a number, such as web@3");
        let (service, number) = text.rsplit_once('@').ok_or_else(wrong)?;
        match number.parse() {
            Ok(number) if number > 0 && !service.is_empty() => {
                Ok(Self { service: service.to_owned(), number })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for VersionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.service, self.number)
    }
}

/// A weight of a subset: `canary=10`.
pub(crate) fn weight(text: &str) -> Result<(String, u32), String> {
    let wrong = || format!("{text:?} is no weight; write a subset and a number, such as canary=10");
    let (subset, weight) = text.split_once('=').ok_or_else(wrong)?;
    if subset.is_empty() {
        return Err(wrong());
    }
    Ok((subset.to_owned(), weight.parse().map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_a_service_and_a_number() {
        let version: VersionRef = "web@3".parse().unwrap();
        assert_eq!((version.service.as_str(), version.number), ("web", 3));
        assert_eq!(version.to_string(), "web@3");
        for text in ["web", "web@", "@3", "web@0", "web@-1", "web@x"] {
            assert!(text.parse::<VersionRef>().unwrap_err().contains("web@3"), "{text}");
        }
    }

    #[test]
    fn weights_are_a_subset_and_a_number() {
        assert_eq!(weight("canary=10"), Ok(("canary".into(), 10)));
        for text in ["canary", "=1", "canary=", "canary=-1", "canary=1.5", "canary=10%"] {
            assert!(weight(text).is_err(), "{text}");
        }
    }
}
