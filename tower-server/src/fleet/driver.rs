//! Sends activations from step to step. Each Tower looks at its own Beacons, says in the log when all of them
//! have accepted a step, and takes an activation back at the first rejection. When all Towers have said so, and
//! the step has stood for its time, whoever comes first appends the next one: the log takes only one.
//!
//! Pauses and deadlines are by this process's clock, and begin again with it. What is decided is in the log.

mod next;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tower_common::clock;
use tower_proto::v1::{self, activation_ended::Outcome, activation_started::Kind};

use self::next::{Next, Times, next};
pub use self::next::{Sight, waiting};
use super::{
    Fleet,
    standing::{Question, audiences, standing},
};
use crate::registry::{
    Command, LogState, Registry, Request, State, SubmitError,
    commands::{End, Report, Step},
    permission::TOWER,
    service::{Activation, Service},
};

/// A step that is not accepted by then has timed out.
pub const DEADLINE: Duration = Duration::from_secs(10 * 60);

/// Beacons may say much at once; it is looked at no more often than this.
const SHORTEST: Duration = Duration::from_millis(50);

/// While something is in progress, or is for a time only, it is looked at this often.
const INTERVAL: Duration = Duration::from_millis(250);

/// What the driver is made of.
pub struct Options {
    /// The registry.
    pub registry: Registry,
    /// The hosts of this Tower's Beacons.
    pub fleet: Arc<Fleet>,
    /// The name of this run of Tower, as among the log's members.
    pub run: String,
    /// A step that is not accepted by then has timed out.
    pub deadline: Duration,
}

/// Sends activations from step to step.
struct Driver {
    options: Options,
    /// Of each activation in progress: its step, and when this process saw it begin and be accepted by all.
    seen: BTreeMap<String, Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    step: u32,
    began: Instant,
    accepted: Option<Instant>,
}

/// Drives activations until the registry ends.
pub async fn run(options: Options) {
    let (mut applied, mut changes) = (options.registry.applied(), options.fleet.changes());
    let mut driver = Driver { options, seen: BTreeMap::new() };
    loop {
        let busy = driver.look().await;
        tokio::time::sleep(SHORTEST).await;
        tokio::select! {
            changed = applied.changed() => if changed.is_err() { return },
            Ok(()) = changes.changed(), if busy => {}
            () = tokio::time::sleep(INTERVAL), if busy => {}
        }
    }
}

impl Driver {
    /// Does what is to be done now. Returns whether there may be more to do without the log having changed.
    async fn look(&mut self) -> bool {
        let now = clock::monotonic();
        let mut commands = Vec::new();
        let mut busy = false;
        // Without the log nothing can be decided.
        if self.options.registry.status().borrow().state != LogState::Live {
            return true;
        }
        {
            let Self { options, seen } = self;
            let applied = *options.registry.applied().borrow();
            let members = options.registry.members();
            options.registry.read(|state| {
                // What is not published yet, no Beacon can know.
                if state.index() != applied {
                    busy = true;
                    return;
                }
                seen.retain(|id, _| state.activation(id).is_some_and(|(_, record)| record.is_running()));
                for (name, service) in state.services() {
                    if service.running().is_none() && service.temporary().is_none() {
                        continue;
                    }
                    busy = true;
                    commands.extend(decide(options, seen, &members, name, service, now));
                }
            });
        }
        for command in commands {
            self.submit(command).await;
        }
        busy
    }

    async fn submit(&self, command: Command) {
        let actor = v1::Actor { name: TOWER.into(), credential: TOWER.into(), address: String::new() };
        let word = command.word();
        match self.options.registry.submit(command, Request { actor, ..Request::default() }).await {
            Ok(answer) if answer.events.is_empty() => {}
            Ok(answer) => {
                tracing::info!(
                    command = word,
                    activation = answer.activation,
                    index = answer.index,
                    "an activation went on"
                );
            }
            // Another Tower was faster, or a person.
            Err(SubmitError::Refused(refusal)) => {
                tracing::debug!(command = word, %refusal, "an activation has gone on otherwise");
            }
            Err(error) => tracing::warn!(command = word, %error, "an activation cannot go on now"),
        }
    }
}

fn decide(
    options: &Options,
    seen: &mut BTreeMap<String, Seen>,
    members: &[String],
    name: &str,
    service: &Service,
    now: Instant,
) -> Option<Command> {
    let expired = service.temporary().filter(|record| {
        let expires_ms = record.started.as_ref().map_or(0, |started| started.expires_ms);
        expires_ms <= clock::unix_millis()
    });
    if let Some(record) = expired {
        return Some(end(name, record.id(), Outcome::Expired, None, "its time is over".into()));
    }
    let record = service.running()?;
    let seen =
        seen.entry(record.id().to_owned()).or_insert(Seen { step: record.step, began: now, accepted: None });
    if seen.step != record.step {
        *seen = Seen { step: record.step, began: now, accepted: None };
    }
    let sight = sight(&options.registry, &options.fleet, name, service, record);
    let accepted = next::is_accepted(record, members);
    seen.accepted = if accepted { seen.accepted.or(Some(now)) } else { None };
    let times = Times {
        in_step: now.saturating_duration_since(seen.began),
        accepted_for: seen.accepted.map(|since| now.saturating_duration_since(since)),
        deadline: options.deadline,
    };
    Some(match next(record, &sight, &options.run, times)? {
        Next::Report { hosts, accepted } => Command::Report(Report {
            service: name.to_owned(),
            reported: v1::ActivationReported {
                activation: record.id().to_owned(),
                step: record.step,
                tower: options.run.clone(),
                hosts,
                accepted,
            },
        }),
        Next::Step(step) => {
            Command::Step(Step { service: name.to_owned(), activation: record.id().to_owned(), step })
        }
        Next::Succeeded => end(name, record.id(), Outcome::Succeeded, None, String::new()),
        Next::Rejected(rejection) => {
            end(name, record.id(), Outcome::Rejected, Some(rejection), String::new())
        }
        Next::TimedOut(detail) => end(name, record.id(), Outcome::TimedOut, None, detail),
    })
}

fn end(
    service: &str,
    activation: &str,
    outcome: Outcome,
    rejection: Option<v1::Rejection>,
    detail: String,
) -> Command {
    let ended =
        v1::ActivationEnded { activation: activation.to_owned(), outcome: outcome.into(), rejection, detail };
    Command::End(End { service: service.to_owned(), ended })
}

/// What this Tower sees of an activation at its step.
pub fn sight(
    registry: &Registry,
    fleet: &Fleet,
    name: &str,
    service: &Service,
    record: &v1::ActivationRecord,
) -> Sight {
    let started = record.started.clone().unwrap_or_default();
    let stamp = record.stamp.as_ref();
    let question = Question {
        service: name,
        assignment: &service.assignment,
        revision: registry.revision_of(name),
        since_unix_ms: stamp.map_or(0, |stamp| stamp.time_ms),
    };
    let hosts = if started.kind() == Kind::RollBack {
        standing(fleet, question, &[v1::Audience::default()])
    } else {
        standing(fleet, question, &audiences(&started, record.step))
    };
    Sight::new(hosts, clock::unix_millis())
}

/// How an activation is: its service, what the log says of it, and what this Tower sees of its hosts. None if
/// it is not among the newest of its service.
pub fn status(
    registry: &Registry,
    fleet: &Fleet,
    state: &State,
    id: &str,
) -> Option<(String, v1::ActivationRecord, Sight, String)> {
    let (name, record) = state.activation(id)?;
    let service = state.service(name)?;
    let sight = sight(registry, fleet, name, service, record);
    let why = if record.is_running() { waiting(record, &sight, &registry.members()) } else { String::new() };
    Some((name.to_owned(), record.clone(), sight, why))
}

#[cfg(test)]
mod tests;
