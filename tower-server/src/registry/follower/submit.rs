//! Adding commands to the log. Whoever else has appended meanwhile comes first: then the command is decided
//! anew, against what there is now.

use std::time::Duration;

use bytes::Bytes;
use rand::Rng;
use tower_common::{backoff::Backoff, clock};
use tower_proto::v1::{self, event::Event};
use tracing::error;

use super::{Ask, EventLog, Follower};
use crate::{
    event_log::AppendError,
    registry::{
        commands::{self, Command, Context},
        handle::{Answer, Request, SubmitError},
        prepare::Ready,
        refusal::{Refusal, RefusalKind},
    },
};

/// A command is decided anew this often, at most.
const ATTEMPTS: usize = 100;

/// How long it is tried to find out whether an entry was appended.
const DOUBT: Duration = Duration::from_secs(10);

impl Follower {
    pub(super) async fn answer(&mut self, log: &EventLog, ask: Ask) {
        let Ask { command, mut request, answer } = ask;
        if request.command_id.is_empty() {
            let random: u128 = rand::rng().random();
            request.command_id = format!("{random:032x}");
        }
        let result = self.submit(log, &command, &request).await;
        // Nobody may be waiting any more; what was decided stands.
        let _ = answer.send(result);
    }

    async fn submit(
        &mut self,
        log: &EventLog,
        command: &Command,
        request: &Request,
    ) -> Result<Answer, SubmitError> {
        for _ in 0..ATTEMPTS {
            self.follow(log).await;
            if let Some(reason) = &self.stopped {
                return Err(SubmitError::Unavailable(reason.clone()));
            }
            if !self.published {
                return Err(SubmitError::Unavailable("the event log has not been read yet".to_owned()));
            }
            let earlier = self.shared.state.read().entry_of_command(&request.command_id);
            if let Some(index) = earlier {
                return self.repeated(log, index, command, request).await;
            }
            let (events, context, ready) = match self.decide(log, command, request).await? {
                Decided::Nothing(answer) => return Ok(answer),
                Decided::Events(events, context, ready) => (events, context, ready),
            };
            let (entry, head) = {
                let state = self.shared.state.read();
                let entry = commands::entry(&state, command, &context, events);
                state.check(&entry).map_err(|error| {
                    error!(%error, ?command, "a command was decided that does not fold");
                    SubmitError::Failed(error.to_string())
                })?;
                (entry, state.index())
            };
            match self.append(log, head, entry, &ready.bodies).await {
                Ok(index) => {
                    self.follow(log).await;
                    let repeated = index != head + 1;
                    let answer = self.appended(log, index, command, request).await?;
                    return Ok(Answer { repeated, findings: ready.findings, ..answer });
                }
                Err(AppendError::Conflict { .. }) => {}
                Err(AppendError::Unknown(why)) => return Err(SubmitError::Unknown(why)),
                Err(AppendError::Unavailable(why) | AppendError::Refused(why)) => {
                    return Err(SubmitError::Unavailable(why));
                }
                Err(error @ (AppendError::TooLarge { .. } | AppendError::CommandId { .. })) => {
                    let object = command.object();
                    return Err(
                        Refusal::new(RefusalKind::Invalid, "too-large", object, error.to_string()).into()
                    );
                }
            }
        }
        Err(SubmitError::Unavailable("others keep appending to the log first".to_owned()))
    }

    async fn decide(
        &self,
        log: &EventLog,
        command: &Command,
        request: &Request,
    ) -> Result<Decided, SubmitError> {
        let state = self.shared.state.read().clone();
        let mut ready = self.shared.preparer.prepare(log, &state, command).await?;
        let context = Context {
            actor: request.actor.clone(),
            now_ms: clock::unix_millis(),
            command_id: request.command_id.clone(),
            reason: request.reason.clone(),
            if_match: request.if_match,
            prepared: std::mem::take(&mut ready.prepared),
        };
        let decision = commands::handle(&state, command, &context)?;
        if decision.events.is_empty() {
            return Ok(Decided::Nothing(Answer {
                index: state.index(),
                note: decision.note,
                version: decision.version,
                activation: decision.activation,
                findings: ready.findings,
                ..Answer::default()
            }));
        }
        Ok(Decided::Events(decision.events, Box::new(context), ready))
    }

    /// Appends, and finds out whether that was done if the log does not say.
    async fn append(
        &self,
        log: &EventLog,
        head: u64,
        entry: v1::LogEntry,
        bodies: &[Bytes],
    ) -> Result<u64, AppendError> {
        let begun = clock::monotonic();
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let mut doubt = false;
        loop {
            match log.append(head, entry.clone(), bodies).await {
                Err(AppendError::Unknown(why) | AppendError::Unavailable(why))
                    if doubt && begun.elapsed() >= DOUBT =>
                {
                    return Err(AppendError::Unknown(why));
                }
                Err(AppendError::Unknown(_)) => doubt = true,
                Err(AppendError::Unavailable(_)) if doubt => {}
                result => return result,
            }
            let wait = backoff.next_wait(&mut rand::rng());
            tokio::time::sleep(wait).await;
        }
    }

    async fn appended(
        &self,
        log: &EventLog,
        index: u64,
        command: &Command,
        request: &Request,
    ) -> Result<Answer, SubmitError> {
        if self.shared.state.read().index() < index {
            let reason = self.shared.status.borrow().reason.clone();
            return Err(SubmitError::Unknown(format!(
                "it is entry {index}, and was not read back: {reason}"
            )));
        }
        self.repeated(log, index, command, request).await
    }

    /// What has come of a command that is in the log.
    async fn repeated(
        &self,
        log: &EventLog,
        index: u64,
        command: &Command,
        request: &Request,
    ) -> Result<Answer, SubmitError> {
        let entries = log.read(index, 1).await.map_err(|error| SubmitError::Unknown(error.to_string()))?;
        let Some(entry) = entries.into_iter().next() else {
            return Err(SubmitError::Unknown(format!("entry {index} is not there")));
        };
        let credential = |actor: Option<&v1::Actor>| actor.map(|actor| actor.credential.clone());
        let same_actor = credential(entry.actor.as_ref()) == credential(Some(&request.actor));
        let about = |service: &str| entry.events.iter().any(|event| event.service == service);
        let asked = command.asked();
        let other = !entry.asked.is_empty() && !asked.is_empty() && entry.asked != asked;
        if other || entry.command != command.word() || !same_actor || !command.service().is_none_or(about) {
            let message = format!("the command id {:?} was used for another command", request.command_id);
            return Err(Refusal::new(RefusalKind::Invalid, "command-id-reused", command.object(), message)
                .field("command id")
                .next("use another one")
                .into());
        }
        let (mut version, mut activation) = (None, None);
        for event in entry.events.iter().filter_map(|event| event.event.as_ref()) {
            match event {
                Event::VersionUploaded(event) => version = Some(event.number),
                Event::VersionApproved(event) => version = Some(event.number),
                Event::VersionRetired(event) => version = Some(event.number),
                Event::ActivationStarted(event) => {
                    (version, activation) = (Some(event.version), Some(event.activation.clone()));
                }
                Event::ActivationStepped(event) => activation = Some(event.activation.clone()),
                Event::ActivationReported(event) => activation = Some(event.activation.clone()),
                Event::ActivationEnded(event) if activation.is_none() => {
                    activation = Some(event.activation.clone());
                }
                Event::ActivationEnded(_)
                | Event::ReleaseMade(_)
                | Event::Assigned(_)
                | Event::PartEdited(_)
                | Event::HoldRecorded(_)
                | Event::HoldReleased(_)
                | Event::SourceAdopted(_)
                | Event::TokenIssued(_)
                | Event::TokenRevoked(_)
                | Event::FeatureLevelRaised(_) => {}
            }
        }
        Ok(Answer { index, events: entry.events, version, activation, repeated: true, ..Answer::default() })
    }
}

enum Decided {
    Nothing(Answer),
    Events(Vec<v1::Event>, Box<Context>, Ready),
}
