//! Reads of an Envoy's message of rejection whom it accuses, and whether the host is to blame.
//!
//! Messages are for people. What is read here may be wrong at no great cost: what is not accused by name is
//! found by trying, and what is taken for the host's fault is sent again.

use std::sync::Arc;

use tower_common::view::XdsResource;

use super::clients::Reason;

/// Suspects, by what a message says of them.
#[derive(Debug, Default)]
pub(super) struct Blame {
    /// Accused, and the host is to blame.
    pub(super) host: Vec<Arc<str>>,
    /// Accused for what they are.
    pub(super) content: Vec<Arc<str>>,
    /// Not accused, although others are.
    pub(super) innocent: Vec<Arc<str>>,
}

impl Blame {
    /// Reads a message about these suspects. `None` if it accuses none of them.
    pub(super) fn read(message: &str, suspects: &[XdsResource]) -> Option<Self> {
        let mut accusations: Vec<(usize, &Arc<str>)> = suspects
            .iter()
            .filter_map(|suspect| Some((accusation(message, &suspect.name)?, &suspect.name)))
            .collect();
        accusations.sort_unstable();
        if accusations.is_empty() {
            return None;
        }
        let ends = accusations.iter().skip(1).map(|(at, _)| *at).chain([message.len()]);
        let mut blame = Self::default();
        for ((at, name), end) in accusations.iter().zip(ends) {
            match Reason::of(&message[*at..end]) {
                Reason::Host => blame.host.push((*name).clone()),
                Reason::Content => blame.content.push((*name).clone()),
            }
        }
        let accused = |name: &Arc<str>| accusations.iter().any(|(_, accused)| *accused == name);
        blame.innocent =
            suspects.iter().map(|suspect| suspect.name.clone()).filter(|name| !accused(name)).collect();
        Some(blame)
    }
}

/// Whether a message accuses a name, as an Envoy's does: `Error adding/updating cluster(s) NAME: …`.
pub(super) fn accuses(message: &str, name: &str) -> bool {
    accusation(message, name).is_some()
}

fn accusation(message: &str, name: &str) -> Option<usize> {
    let accusation = format!("{name}: ");
    let mut found = message.match_indices(&accusation).map(|(at, _)| at);
    found.find(|at| *at == 0 || message[..*at].ends_with([' ', ',', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_accused_as_a_word_only() {
        assert!(accuses("Error adding/updating cluster(s) a: x, b: y", "a"));
        assert!(accuses("Error adding/updating cluster(s) a: x, b: y", "b"));
        assert!(!accuses("Error adding/updating cluster(s) beta: x", "a"));
        assert!(!accuses("a is bad", "a"));
    }

    #[test]
    fn each_is_blamed_for_what_is_said_of_it() {
        let names = ["egress", "inbound/a/80", "inbound/b/80", "inbound/c/80"];
        let suspects = names.map(|name| XdsResource::from_body(name.into(), String::new().into()));
        let message = "Error adding/updating listener(s) inbound/a/80: cannot bind '0.0.0.0:80': Address already \
                       in use\ninbound/b/80: unknown filter\n";
        let blame = Blame::read(message, &suspects).unwrap();
        assert_eq!(blame.host, ["inbound/a/80".into()]);
        assert_eq!(blame.content, ["inbound/b/80".into()]);
        assert_eq!(blame.innocent, ["egress".into(), "inbound/c/80".into()]);
        assert!(Blame::read("cannot bind: Address already in use", &suspects).is_none());
    }
}
