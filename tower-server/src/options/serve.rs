//! What `--serve` says.

use std::collections::BTreeSet;

use tower_common::served::Served;

use crate::sources::{BadServiceName, check_service_name};

/// More are not named one by one: the list is part of how each stream begins.
const MOST: usize = 5_000;

/// Why a value of `--serve` says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// A word for everything or nothing is one of several.
    #[error("--serve: {0:?} stands alone; give it, or the names of services")]
    NotAlone(&'static str),
    /// A name is not one that a service can have.
    #[error("--serve {value:?}: {fault}; give all, none, or names of services with commas between them")]
    Name {
        /// The value that it is in.
        value: String,
        /// What is wrong with it.
        fault: BadServiceName,
    },
    /// The list is too long.
    #[error(
        "--serve names {0} services, more than {MOST}; give all, and leave out what is not to be served from --discovery"
    )]
    TooMany(usize),
}

/// Reads the values of `--serve`, each `all`, `none`, or names with commas between them.
///
/// # Errors
/// Which value is wrong, and why.
pub(super) fn parse(values: &[String]) -> Result<Served, NotServed> {
    let mut services = BTreeSet::new();
    for value in values {
        for name in value.split(',').map(str::trim) {
            check_service_name(name).map_err(|fault| NotServed::Name { value: value.clone(), fault })?;
            services.insert(name.to_owned());
        }
    }
    for word in ["all", "none"] {
        if services.contains(word) && services.len() > 1 {
            return Err(NotServed::NotAlone(word));
        }
    }
    match services.len() {
        1 if services.contains("all") => Ok(Served::All),
        1 if services.contains("none") => Ok(Served::Only(BTreeSet::new())),
        0..=MOST => Ok(Served::Only(services)),
        count => Err(NotServed::TooMany(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str]) -> Result<Served, String> {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        parse(&values).map_err(|fault| fault.to_string())
    }

    #[test]
    fn words_and_lists_are_read() {
        let only = |names: &[&str]| Ok(Served::Only(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(check(&["all"]), Ok(Served::All));
        assert_eq!(check(&["none"]), only(&[]));
        assert_eq!(check(&["web"]), only(&["web"]));
        assert_eq!(check(&["web, ads", "api", "web"]), only(&["ads", "api", "web"]));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let check = |values: &[&str], words: &str| {
            let fault = check(values).unwrap_err();
            assert!(fault.contains("--serve") && fault.contains(words), "{fault:?} has no {words:?}");
        };
        check(&[""], "name is empty");
        check(&["web,,ads"], "\"web,,ads\": the service's name is empty");
        check(&["web,"], "name is empty");
        check(&["all,web"], "\"all\" stands alone");
        check(&["web", "none"], "\"none\" stands alone");
        check(&["all", "none"], "stands alone");
        check(&["a\nb"], "control characters");
        check(&[&"x".repeat(254)], "254 bytes");
        let many: Vec<String> = (0..=MOST).map(|number| number.to_string()).collect();
        check(&[&many.join(",")], "5001 services");
    }
}
