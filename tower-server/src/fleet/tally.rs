//! How a host is as a whole.

use tower_proto::v1::held_release::State;

use super::Host;

/// How a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Its Beacon is not connected.
    Silent,
    /// An Envoy refuses something, or cannot take it.
    Rejected,
    /// Something is on its way to it, or its Beacon has not said yet what it has.
    Lagging,
    /// It has everything, and no Envoy that could accept it.
    NoEnvoy,
    /// Its Envoys have accepted everything that they should have.
    OnTarget,
}

/// What a host holds, by what its Beacon said on the stream that it is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Services with an assignment.
    pub services: u32,
    /// Those of them that every Envoy has accepted.
    pub accepted: u32,
    /// There, and no Envoy is connected that could accept it.
    pub no_envoy: u32,
    /// An Envoy refused it, or could not take it, or its Beacon cannot use it.
    pub rejected: u32,
}

impl Tally {
    /// Counts what a host holds.
    pub(super) fn of(host: &Host) -> Self {
        let mut tally = Self::default();
        for held in host.releases.values().filter(|held| Some(held.stream) == host.stream) {
            tally.services += 1;
            match held.held.state() {
                State::Accepted => tally.accepted += 1,
                State::Applied => tally.no_envoy += 1,
                State::Rejected | State::Host | State::Unknown => tally.rejected += 1,
                State::Pending | State::Unspecified => {}
            }
        }
        tally
    }
}

impl Host {
    /// How it is as a whole.
    pub fn condition(&self) -> Condition {
        let Tally { services, accepted, no_envoy, rejected } = self.tally;
        if self.stream.is_none() {
            Condition::Silent
        } else if rejected > 0 {
            Condition::Rejected
        } else if self.revision == 0 || accepted + no_envoy < services {
            Condition::Lagging
        } else if no_envoy > 0 {
            Condition::NoEnvoy
        } else {
            Condition::OnTarget
        }
    }

    /// What is refused, in words, if something is.
    pub fn trouble(&self) -> Option<String> {
        if self.condition() != Condition::Rejected {
            return None;
        }
        let held = self.releases.values().find(|held| {
            let bad = matches!(held.held.state(), State::Rejected | State::Host | State::Unknown);
            bad && Some(held.stream) == self.stream
        })?;
        let held = &held.held;
        Some(match held.client.as_str() {
            "" => format!("{}: {}", held.service, held.error),
            client => format!("{}: {client} refuses {}: {}", held.service, held.resource, held.error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Fleet,
            testing::{held, node, report},
        },
        *,
    };

    fn condition(revision: u64, states: &[State]) -> (Condition, bool) {
        let fleet = Fleet::default();
        fleet.connect(&node("h", "a"), 1);
        let held: Vec<_> = states
            .iter()
            .enumerate()
            .map(|(number, state)| held(&format!("s{number}"), "r", *state))
            .collect();
        fleet.report("h", 1, &report(revision, &held));
        let host = fleet.host("h").unwrap();
        (host.condition(), host.trouble().is_some())
    }

    #[test]
    fn the_worst_that_is_held_is_how_a_host_is() {
        for (states, expected) in [
            (&[][..], Condition::OnTarget),
            (&[State::Accepted, State::Accepted], Condition::OnTarget),
            (&[State::Accepted, State::Applied], Condition::NoEnvoy),
            (&[State::Applied, State::Pending], Condition::Lagging),
            (&[State::Pending, State::Rejected], Condition::Rejected),
            (&[State::Accepted, State::Host], Condition::Rejected),
            (&[State::Unknown], Condition::Rejected),
        ] {
            assert_eq!(condition(1, states), (expected, expected == Condition::Rejected), "{states:?}");
        }
        assert_eq!(condition(0, &[]).0, Condition::Lagging, "it has said nothing yet");
    }

    #[test]
    fn what_has_no_assignment_any_more_and_what_was_said_on_another_stream_does_not_count() {
        let fleet = Fleet::default();
        fleet.connect(&node("h", "a"), 1);
        let host = || fleet.host("h").unwrap();
        fleet.report(
            "h",
            1,
            &report(1, &[held("web", "r", State::Rejected), held("ads", "r", State::Accepted)]),
        );
        assert_eq!(host().trouble().unwrap(), "web: envoy refuses web: it is wrong");
        fleet.report("h", 1, &report(2, &[held("web", "", State::Unspecified)]));
        assert_eq!((host().condition(), host().tally.services), (Condition::OnTarget, 1));
        assert!(host().held("web").is_none());
        fleet.report("h", 1, &report(3, &[held("web", "r", State::Rejected)]));
        fleet.disconnect("h", 1);
        assert_eq!((host().condition(), host().trouble()), (Condition::Silent, None));
        fleet.connect(&node("h", "a"), 2);
        assert_eq!((host().condition(), host().tally), (Condition::Lagging, Tally::default()));
    }
}
