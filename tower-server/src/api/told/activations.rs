//! Activations.

use tower_common::api::{
    activation::{Activation, Kind, Progress, Rejection, State, Step},
    fleet::Lack,
};
use tower_proto::v1::{
    self,
    activation_ended::Outcome,
    activation_started::{self, Kind as Started},
};

use super::{audience, author, some, time};

/// An activation, with its hosts as Towers have reported them to the log.
pub fn activation(service: &str, record: &v1::ActivationRecord, lacking: Vec<Lack>) -> Activation {
    let started = record.started.clone().unwrap_or_default();
    let stamp = record.stamp.clone().unwrap_or_default();
    let ended = record.ended.as_ref();
    let stamps = [Some(&stamp), record.ended_stamp.as_ref()];
    Activation {
        kind: match started.kind() {
            Started::Unspecified | Started::Activate => Kind::Activate,
            Started::Traffic => Kind::Traffic,
            Started::RollBack => Kind::RollBack,
        },
        audience: audience(started.audience.as_ref()),
        state: ended.map_or(State::Progressing, |ended| state(ended.outcome())),
        step: u64::from(record.step),
        steps: started
            .steps
            .iter()
            .enumerate()
            .map(|(number, step)| told_step(number, step, record))
            .collect(),
        id: started.activation,
        service: service.to_owned(),
        version: started.version,
        release: started.release,
        hosts: reported(record),
        lacking,
        rejection: ended.and_then(|ended| ended.rejection.as_ref()).map(rejection),
        changes: Vec::new(),
        detail: ended.and_then(|ended| some(&ended.detail)),
        author: author(&stamp),
        reason: some(&stamp.reason),
        started_unix_ms: stamp.time_ms,
        ended_unix_ms: record.ended_stamp.as_ref().map(|stamp| stamp.time_ms),
        expires_unix_ms: time(started.expires_ms),
        index: stamps.into_iter().flatten().map(|stamp| stamp.index).max().unwrap_or(0),
    }
}

/// An Envoy's refusal.
pub fn rejection(rejection: &v1::Rejection) -> Rejection {
    Rejection {
        host: rejection.host.clone(),
        client: rejection.client.clone(),
        type_url: rejection.type_url.clone(),
        resource: rejection.resource.clone(),
        error: rejection.error.clone(),
    }
}

fn state(outcome: Outcome) -> State {
    match outcome {
        Outcome::Succeeded => State::Succeeded,
        Outcome::Rejected => State::Rejected,
        // An outcome of a newer Tower ended it, too.
        Outcome::Unspecified | Outcome::Aborted => State::Aborted,
        Outcome::Superseded => State::Superseded,
        Outcome::Expired => State::Expired,
        Outcome::TimedOut => State::TimedOut,
    }
}

/// Who has accepted the present step, by the reports in the log.
fn reported(record: &v1::ActivationRecord) -> Progress {
    let sum = |of: fn(&v1::ActivationReported) -> u32| {
        record.reports.iter().map(|report| u64::from(of(report))).sum::<u64>()
    };
    let (total, accepted) = (sum(|report| report.hosts), sum(|report| report.accepted));
    Progress { total, accepted, pending: total.saturating_sub(accepted), ..Progress::default() }
}

/// A step; of the present one, how many hosts the Towers have seen accept it.
fn told_step(number: usize, step: &activation_started::Step, record: &v1::ActivationRecord) -> Step {
    let present = number == record.step as usize && !record.reports.is_empty();
    let sum = |of: fn(&v1::ActivationReported) -> u32| {
        present.then(|| record.reports.iter().map(|report| u64::from(of(report))).sum())
    };
    Step {
        audience: audience(step.audience.as_ref()),
        title: step.title.clone(),
        pause_ms: step.pause_ms,
        hosts: sum(|report| report.hosts),
        accepted: sum(|report| report.accepted),
    }
}
