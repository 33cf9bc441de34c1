//! What is to be done about an activation, by what is seen of it. Pure.

use std::time::Duration;

use tower_proto::v1;

use crate::{
    fleet::standing::{Counts, HostStanding, HostState},
    registry::service::Activation,
};

/// A host that was lost is waited for this long: it may come back, or be at another Tower.
const LOST_MS: u64 = 30_000;

/// How many hosts are named.
const NAMED: usize = 5;

/// What a Tower sees of an activation at its step.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    /// The hosts of the step and those before it, by name.
    pub hosts: Vec<HostStanding>,
    /// How many of them are how far.
    pub counts: Counts,
    /// How many were lost just now.
    just_lost: u32,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// Say in the log that all of this Tower's hosts have accepted the step.
    Report { hosts: u32, accepted: u32 },
    /// Go to this step.
    Step(u32),
    /// It is over, and well.
    Succeeded,
    /// Take it back.
    Rejected(v1::Rejection),
    /// Give up.
    TimedOut(String),
}

/// How long something has been so, by this process's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// The activation is in this step.
    pub(super) in_step: Duration,
    /// All Towers have accepted it.
    pub(super) accepted_for: Option<Duration>,
    /// It may be, without having been accepted.
    pub(super) deadline: Duration,
}

impl Sight {
    /// What is seen of these hosts at this time, in milliseconds since 1970.
    pub fn new(hosts: Vec<HostStanding>, now_ms: u64) -> Self {
        let just_lost = |host: &&HostStanding| {
            host.state == HostState::Lost && now_ms.saturating_sub(host.since_unix_ms) < LOST_MS
        };
        let just_lost = u32::try_from(hosts.iter().filter(just_lost).count()).unwrap_or(u32::MAX);
        Self { counts: Counts::of(&hosts), just_lost, hosts }
    }

    /// The first rejection, if there is one.
    fn rejection(&self) -> Option<&v1::Rejection> {
        self.hosts.iter().find_map(|host| host.rejection.as_ref())
    }

    /// Whether nobody is waited for. A tenth of the hosts may have faults of their own.
    fn is_settled(&self) -> bool {
        let counts = &self.counts;
        counts.pending == 0
            && counts.rejected == 0
            && self.just_lost == 0
            && counts.host_faults <= counts.eligible() / 10
    }

    /// Those that are waited for, the first of them by name and reason.
    fn lacking(&self) -> String {
        let lacking = self.hosts.iter().filter(|host| {
            !matches!(host.state, HostState::Accepted | HostState::Silent | HostState::NoEnvoy)
        });
        let named: Vec<String> =
            lacking.clone().take(NAMED).map(|host| format!("{} ({})", host.host, host.why)).collect();
        let more = lacking.count().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("{}{more}", named.join(", "))
    }
}

/// Whether all Towers have accepted the step, and at least one host has.
pub(super) fn is_accepted(record: &v1::ActivationRecord, members: &[String]) -> bool {
    let all = members.iter().all(|tower| record.reports.iter().any(|report| report.tower == *tower));
    all && record.reports.iter().any(|report| report.accepted > 0)
}

pub(super) fn next(record: &v1::ActivationRecord, sight: &Sight, run: &str, times: Times) -> Option<Next> {
    if let Some(rejection) = sight.rejection() {
        return Some(Next::Rejected(rejection.clone()));
    }
    let (hosts, accepted) = (sight.counts.eligible(), sight.counts.accepted);
    let reported = record.reports.iter().find(|report| report.tower == run);
    // Hosts that come or go once it was reported make no difference, unless there was none.
    let news = reported.is_none_or(|report| report.accepted == 0 && accepted > 0);
    if sight.is_settled() && news {
        return Some(Next::Report { hosts, accepted });
    }
    let Some(accepted_for) = times.accepted_for else {
        return (times.in_step >= times.deadline).then(|| Next::TimedOut(timed_out(record, sight)));
    };
    if record.is_at_last_step() {
        return Some(Next::Succeeded);
    }
    let steps = record.started.as_ref().map(|started| started.steps.as_slice()).unwrap_or_default();
    let pause = steps.get(record.step as usize + 1).map_or(0, |step| step.pause_ms);
    (accepted_for >= Duration::from_millis(pause.into())).then_some(Next::Step(record.step + 1))
}

fn timed_out(record: &v1::ActivationRecord, sight: &Sight) -> String {
    let counts = &sight.counts;
    let lacking = sight.lacking();
    let step = record.step + 1;
    if lacking.is_empty() {
        let (total, silent) = (counts.total, counts.silent);
        return format!("step {step}: no host has accepted it; of {total} hosts {silent} are silent");
    }
    format!("step {step}: {} of {} hosts have accepted it; not {lacking}", counts.accepted, counts.total)
}

/// What an activation in progress waits for, in words.
pub fn waiting(record: &v1::ActivationRecord, sight: &Sight, members: &[String]) -> String {
    if !sight.is_settled() {
        return format!("waits for {}", sight.lacking());
    }
    let missing: Vec<&str> = members
        .iter()
        .filter(|tower| !record.reports.iter().any(|report| report.tower == **tower))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        return format!("waits for the word of Tower {}", missing.join(", "));
    }
    if record.reports.iter().all(|report| report.accepted == 0) {
        return "no connected host of this step has an Envoy that could accept it".to_owned();
    }
    "has been accepted, and stands for its time before it goes on".to_owned()
}
