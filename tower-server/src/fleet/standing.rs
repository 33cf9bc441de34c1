//! Who has the release that an assignment gives him, who has not, and why.

use serde::Serialize;
use tower_common::{
    audience::{NodeFacts, contains},
    view::evaluate,
};
use tower_proto::v1::{self, held_release::State};

use super::{Fleet, Host};
use crate::registry::steps::audience_at;

/// How far a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// Every Envoy has accepted all of it.
    Accepted,
    /// Sent, and not yet accepted by every Envoy.
    Pending,
    /// The Beacon has not said yet that it has it.
    NotReported,
    /// There, and no Envoy is connected that could accept it.
    NoEnvoy,
    /// An Envoy refused it, for its content.
    Rejected,
    /// An Envoy could not take it, for a reason of its host: a port, a file.
    HostFault,
    /// The Beacon cannot use it: parts are missing, or it does not understand the assignment.
    Unusable,
    /// The Beacon was not connected before it was assigned, and is not now.
    Silent,
    /// The Beacon has been lost since it was assigned.
    Lost,
}

/// One host, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostStanding {
    /// The host.
    pub host: String,
    /// How far it is.
    pub state: HostState,
    /// The release that it should have; empty is "default".
    pub wanted: String,
    /// The release that it has, by what it last said; empty is "default".
    pub release: String,
    /// Why it is no further; empty if there is nothing to say.
    pub why: String,
    /// Since when, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// What was refused, and by whom.
    #[serde(skip)]
    pub rejection: Option<v1::Rejection>,
}

/// How many hosts are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All that should have it.
    pub total: u32,
    /// Their Envoys have accepted it.
    pub accepted: u32,
    /// It is on its way to them.
    pub pending: u32,
    /// They have no Envoy that could accept it.
    pub no_envoy: u32,
    /// An Envoy has refused it.
    pub rejected: u32,
    /// An Envoy could not take it, for a reason of its host.
    pub host_faults: u32,
    /// Their Beacons were silent before it was assigned, and are.
    pub silent: u32,
    /// Their Beacons have been lost since.
    pub lost: u32,
}

/// What is asked about a service.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The service.
    pub service: &'a str,
    /// Its assignment.
    pub assignment: &'a v1::Assignment,
    /// The revision of the store from which on Beacons know the assignment.
    pub revision: u64,
    /// When it was assigned, in milliseconds since 1970.
    pub since_unix_ms: u64,
}

/// The hosts of a question that are in one of these audiences, by name.
pub fn standing(fleet: &Fleet, question: Question<'_>, among: &[v1::Audience]) -> Vec<HostStanding> {
    let is_among = |facts: &NodeFacts| among.iter().any(|audience| contains(audience, facts) == Ok(true));
    let hosts = fleet.hosts();
    hosts.iter().filter(|host| is_among(&host.facts)).map(|host| judge(host, question)).collect()
}

/// The audiences of an activation up to a step.
pub fn audiences(started: &v1::ActivationStarted, step: u32) -> Vec<v1::Audience> {
    (0..=step as usize).map(|step| audience_at(started, step)).collect()
}

/// How far a host is with a service.
pub fn judge(host: &Host, question: Question<'_>) -> HostStanding {
    let said = host.releases.get(question.service);
    let standing = |state, wanted: &str, why: &str, since_unix_ms| HostStanding {
        host: host.facts.id.clone(),
        state,
        wanted: wanted.to_owned(),
        release: said.map(|said| said.held.release.clone()).unwrap_or_default(),
        why: why.to_owned(),
        since_unix_ms,
        rejection: None,
    };
    let Ok(wanted) = evaluate(question.assignment, &host.facts) else {
        let why = "the assignment has a term that this Tower does not know";
        return standing(HostState::Unusable, "", why, question.since_unix_ms);
    };
    if host.stream.is_none() {
        let since = host.since_unix_ms;
        return if since < question.since_unix_ms {
            standing(HostState::Silent, wanted, "its Beacon was silent before", since)
        } else {
            standing(HostState::Lost, wanted, "its Beacon has been lost since", since)
        };
    }
    let not_reported = || {
        let why = "its Beacon has not said that it has it";
        standing(HostState::NotReported, wanted, why, question.since_unix_ms)
    };
    // What it said before it knew the assignment is about another time.
    if host.revision < question.revision {
        return not_reported();
    }
    let Some(said) = host.held(question.service) else { return not_reported() };
    let held = &said.held;
    if held.release != wanted && held.state() != State::Unknown {
        return not_reported();
    }
    let (state, why) = match held.state() {
        State::Unspecified => return not_reported(),
        State::Applied => (HostState::NoEnvoy, "no Envoy is connected that could accept it".to_owned()),
        State::Pending => (HostState::Pending, "an Envoy has not answered yet".to_owned()),
        State::Accepted => (HostState::Accepted, String::new()),
        State::Rejected | State::Host => {
            let state =
                if held.state() == State::Rejected { HostState::Rejected } else { HostState::HostFault };
            (state, format!("Envoy {} refuses {}: {}", held.client, held.resource, held.error))
        }
        State::Unknown => (HostState::Unusable, held.error.clone()),
    };
    let rejection = (state == HostState::Rejected).then(|| v1::Rejection {
        host: host.facts.id.clone(),
        client: held.client.clone(),
        type_url: held.type_url.clone(),
        resource: held.resource.clone(),
        error: held.error.clone(),
    });
    HostStanding { rejection, ..standing(state, wanted, &why, said.since_unix_ms) }
}

impl Counts {
    /// Counts hosts.
    pub fn of(hosts: &[HostStanding]) -> Self {
        let mut counts = Self::default();
        for host in hosts {
            counts.total += 1;
            let count = match host.state {
                HostState::Accepted => &mut counts.accepted,
                HostState::Pending | HostState::NotReported | HostState::Unusable => &mut counts.pending,
                HostState::NoEnvoy => &mut counts.no_envoy,
                HostState::Rejected => &mut counts.rejected,
                HostState::HostFault => &mut counts.host_faults,
                HostState::Silent => &mut counts.silent,
                HostState::Lost => &mut counts.lost,
            };
            *count += 1;
        }
        counts
    }

    /// How many hosts have an Envoy that can accept it, or may have one.
    pub fn eligible(&self) -> u32 {
        self.total - self.silent - self.lost - self.no_envoy
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{held, node, report},
        *,
    };

    fn assignment(release: &str) -> v1::Assignment {
        v1::Assignment { rules: Vec::new(), default_release: release.into() }
    }

    /// How far a host is that has reported this at this revision, where revision 5 is asked for.
    fn state(revision: u64, said: &[v1::HeldRelease]) -> HostStanding {
        let fleet = Fleet::default();
        fleet.connect(&node("h", "a"), 1);
        fleet.report("h", 1, &report(revision, said));
        ask(&fleet, 0)
    }

    fn ask(fleet: &Fleet, since_unix_ms: u64) -> HostStanding {
        let assignment = assignment("r2");
        let question = Question { service: "web", assignment: &assignment, revision: 5, since_unix_ms };
        standing(fleet, question, &[v1::Audience::default()]).remove(0)
    }

    #[test]
    fn only_what_its_envoys_have_accepted_counts() {
        for (said, expected) in [
            (State::Accepted, HostState::Accepted),
            (State::Pending, HostState::Pending),
            (State::Applied, HostState::NoEnvoy),
            (State::Rejected, HostState::Rejected),
            (State::Host, HostState::HostFault),
            (State::Unknown, HostState::Unusable),
            (State::Unspecified, HostState::NotReported),
        ] {
            let standing = state(5, &[held("web", "r2", said)]);
            assert_eq!(standing.state, expected);
            assert_eq!(standing.rejection.is_some(), expected == HostState::Rejected);
        }
        let rejected = state(7, &[held("web", "r2", State::Rejected)]);
        assert_eq!(rejected.why, "Envoy envoy refuses web: it is wrong");
    }

    #[test]
    fn what_was_said_before_or_about_something_else_does_not_count() {
        assert_eq!(state(4, &[held("web", "r2", State::Rejected)]).state, HostState::NotReported);
        assert_eq!(state(5, &[held("web", "r1", State::Accepted)]).state, HostState::NotReported);
        assert_eq!(state(5, &[held("ads", "r2", State::Accepted)]).state, HostState::NotReported);
        assert_eq!(state(5, &[]).state, HostState::NotReported);
    }

    #[test]
    fn who_was_silent_before_and_who_is_lost_since_are_told_apart() {
        let fleet = Fleet::default();
        fleet.connect(&node("h", "a"), 1);
        fleet.report("h", 1, &report(5, &[held("web", "r2", State::Accepted)]));
        assert_eq!(ask(&fleet, 0).state, HostState::Accepted);
        fleet.disconnect("h", 1);
        assert_eq!(ask(&fleet, 0).state, HostState::Lost);
        let later = fleet.host("h").unwrap().since_unix_ms + 1;
        let silent = ask(&fleet, later);
        assert_eq!((silent.state, silent.release.as_str()), (HostState::Silent, "r2"));
        let counts = Counts::of(&[silent]);
        assert_eq!((counts.total, counts.silent, counts.eligible()), (1, 1, 0));
    }

    #[test]
    fn an_unknown_audience_is_no_standing() {
        let fleet = Fleet::default();
        fleet.connect(&node("h", "a"), 1);
        let unknown = v1::Audience { terms: vec![v1::audience::Term { term: None }] };
        let rule =
            v1::assignment::Rule { audience: Some(unknown), release: "r3".into(), activation: String::new() };
        let assignment = v1::Assignment { rules: vec![rule], default_release: "r2".into() };
        let question = Question { service: "web", assignment: &assignment, revision: 0, since_unix_ms: 0 };
        assert_eq!(standing(&fleet, question, &[v1::Audience::default()])[0].state, HostState::Unusable);
    }
}
