//! What one client wants of one type: the truth table of wildcards and names.
//!
//! The rules are those of the xDS protocol's "How the client specifies what resources to return" and
//! "Unsubscribing From Resources". What the client has is another matter, and not kept here: losing all
//! resources of a subscription must not end it.

use std::{collections::BTreeSet, sync::Arc};

/// The name that stands for everything.
pub(super) const WILDCARD: &str = "*";

/// One client's subscription to one type on one stream.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    /// Whether the type knows a wildcard at all; otherwise `*` is a name like any other.
    has_wildcard: bool,
    opened: bool,
    /// Once a name was given, an empty state-of-the-world list means nothing instead of everything.
    ever_named: bool,
    wildcard: bool,
    names: BTreeSet<Arc<str>>,
}

/// What a request changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Names to be answered: newly listed (state of the world), or subscribed to, again or not (delta).
    pub(super) asked: BTreeSet<Arc<str>>,
    /// Names that were listed, and are not any more.
    pub(super) dropped: Vec<Arc<str>>,
    /// The wildcard has begun, or was asked for again: an answer is due, even an empty one.
    pub(super) wildcard_asked: bool,
    /// The wildcard has ended.
    pub(super) wildcard_ended: bool,
}

impl Change {
    /// Whether the request left the subscription as it was.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Subscription {
    /// Nothing wanted so far.
    pub(super) fn new(has_wildcard: bool) -> Self {
        Self { has_wildcard, ..Self::default() }
    }

    /// State of the world: the complete list of what is wanted. "An empty list means everything" only on
    /// a stream on which no name was ever given.
    pub(super) fn replace(&mut self, listed: Vec<String>) -> Change {
        self.opened = true;
        let mut names: BTreeSet<Arc<str>> = listed.into_iter().map(Arc::from).collect();
        self.ever_named |= !names.is_empty();
        let explicit = self.has_wildcard && names.remove(WILDCARD);
        let wildcard = explicit || (self.has_wildcard && !self.ever_named);
        let change = Change {
            asked: names.difference(&self.names).cloned().collect(),
            dropped: self.names.difference(&names).cloned().collect(),
            wildcard_asked: wildcard && !self.wildcard,
            wildcard_ended: !wildcard && self.wildcard,
        };
        self.wildcard = wildcard;
        self.names = names;
        change
    }

    /// Delta: names to add and to take away. A first message without any begins a wildcard, which lasts
    /// until `*` is unsubscribed from, whatever names are added.
    pub(super) fn alter(&mut self, subscribe: Vec<String>, unsubscribe: Vec<String>) -> Change {
        let mut change = Change::default();
        if !self.opened && self.has_wildcard && subscribe.is_empty() && unsubscribe.is_empty() {
            self.wildcard = true;
            change.wildcard_asked = true;
        }
        self.opened = true;
        // A name in both lists stays wanted, and is answered: of the two mistakes the harmless one.
        for name in unsubscribe {
            if self.has_wildcard && name == WILDCARD {
                change.wildcard_ended |= self.wildcard;
                self.wildcard = false;
            } else if let Some(name) = self.names.take(name.as_str()) {
                change.dropped.push(name);
            }
        }
        for name in subscribe {
            if self.has_wildcard && name == WILDCARD {
                self.wildcard = true;
                change.wildcard_asked = true;
            } else {
                let name: Arc<str> = name.into();
                self.names.insert(name.clone());
                change.asked.insert(name);
            }
        }
        change
    }

    /// Whether everything is wanted.
    pub(super) fn wildcard(&self) -> bool {
        self.wildcard
    }

    /// Whether nothing is wanted.
    pub(super) fn is_empty(&self) -> bool {
        !self.wildcard && self.names.is_empty()
    }

    /// The names that are wanted, besides the wildcard.
    pub(super) fn names(&self) -> &BTreeSet<Arc<str>> {
        &self.names
    }

    /// Whether this name is wanted, by itself or by the wildcard.
    pub(super) fn covers(&self, name: &str) -> bool {
        self.wildcard || self.names.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn state(subscription: &Subscription) -> String {
        let names: Vec<&str> = subscription.names.iter().map(|name| &**name).collect();
        format!("{}{}", if subscription.wildcard { "*+" } else { "" }, names.join(","))
    }

    /// Sends lists one after the other, and compares the state after each.
    fn check_sotw(has_wildcard: bool, steps: &[(&[&str], &str)]) {
        let mut subscription = Subscription::new(has_wildcard);
        for (step, (names, expected)) in steps.iter().enumerate() {
            subscription.replace(strings(names));
            assert_eq!(state(&subscription), *expected, "step {step} of {steps:?}");
        }
    }

    /// The same with (subscribe, unsubscribe, state after it).
    fn check_delta(has_wildcard: bool, steps: &[(&[&str], &[&str], &str)]) {
        let mut subscription = Subscription::new(has_wildcard);
        for (step, (subscribe, unsubscribe, expected)) in steps.iter().enumerate() {
            subscription.alter(strings(subscribe), strings(unsubscribe));
            assert_eq!(state(&subscription), *expected, "step {step} of {steps:?}");
        }
    }

    #[test]
    fn state_of_the_world() {
        // Legacy: an empty list is everything, until a name was given.
        check_sotw(true, &[(&[], "*+"), (&[], "*+"), (&["a"], "a"), (&[], ""), (&["a"], "a")]);
        // Explicit: beside names, and ended by leaving it out.
        check_sotw(true, &[(&["*"], "*+"), (&["*", "a"], "*+a"), (&["a"], "a"), (&["*"], "*+")]);
        check_sotw(true, &[(&["*"], "*+"), (&[], "")]);
        check_sotw(true, &[(&["a", "b", "a"], "a,b"), (&["b"], "b"), (&[], "")]);
        // An empty name is a name like any other.
        check_sotw(true, &[(&[""], ""), (&[], "")]);
        // Types without a wildcard: an empty list is nothing, and `*` is a name.
        check_sotw(false, &[(&[], ""), (&["a"], "a"), (&[], "")]);
        check_sotw(false, &[(&["*"], "*"), (&["*", "a"], "*,a")]);
    }

    #[test]
    fn delta() {
        // Legacy: stays when names come and go.
        check_delta(true, &[(&[], &[], "*+"), (&["a"], &[], "*+a"), (&[], &["a"], "*+"), (&[], &["*"], "")]);
        check_delta(true, &[(&["*"], &[], "*+"), (&["a"], &["*"], "a"), (&[], &[], "a")]);
        check_delta(
            true,
            &[(&["a"], &[], "a"), (&[], &[], "a"), (&["*"], &[], "*+a"), (&[], &["a", "*"], "")],
        );
        check_delta(true, &[(&["a", "*"], &[], "*+a"), (&[], &["*"], "a")]);
        // Only the very first message can begin a legacy wildcard.
        check_delta(true, &[(&["a"], &[], "a"), (&[], &["a"], ""), (&[], &[], "")]);
        check_delta(true, &[(&[], &["a"], ""), (&[], &[], "")]);
        check_delta(false, &[(&[], &[], ""), (&["*", "a"], &[], "*,a"), (&[], &["*"], "a")]);
    }

    #[test]
    fn a_name_in_both_lists_stays_wanted_and_touches_no_other() {
        check_delta(true, &[(&["a", "b"], &["a"], "a,b"), (&["a"], &["a"], "a,b")]);
    }

    #[test]
    fn changes_name_what_is_to_be_answered() {
        let mut subscription = Subscription::new(true);
        assert!(subscription.replace(vec![]).wildcard_asked);
        assert!(subscription.replace(vec![]).is_empty());
        let change = subscription.replace(strings(&["a"]));
        assert!(change.wildcard_ended && change.asked.contains("a"));
        assert_eq!(subscription.replace(vec![]).dropped, ["a".into()]);

        let mut subscription = Subscription::new(true);
        subscription.alter(strings(&["a"]), vec![]);
        let again = subscription.alter(strings(&["a"]), strings(&["unknown"]));
        assert!(again.asked.contains("a") && again.dropped.is_empty());
        assert!(subscription.alter(strings(&["*"]), vec![]).wildcard_asked);
        assert!(subscription.alter(strings(&["*"]), vec![]).wildcard_asked);
    }
}
