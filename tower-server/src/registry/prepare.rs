//! What has to be found out before a command can be decided: what documents say, what they compile to, and
//! which hosts there are.

mod draft;
mod parts;
#[cfg(test)]
mod tests;
mod world;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use tower_common::{
    audience::Workload,
    document::{self, Document, Finding, Owner, World},
};
use tower_proto::v1::{self, part_edited};

pub use self::draft::Draft;
use self::draft::{kept, named, refuse, wrong};
pub(super) use self::parts::Revisions;
use super::{
    commands::{self, Command, Plan, Prepared, Target},
    handle::SubmitError,
    refusal::{Refusal, RefusalKind},
    state::State,
};
use crate::{
    compile,
    event_log::{EventLog, ReadError},
    store_actor::StoreActor,
};

/// Which hosts there are.
pub trait Hosts: Send + Sync {
    /// A connected host of this audience with an Envoy, to begin with; with another salt another one.
    fn first_of(&self, audience: &v1::Audience, salt: &str) -> Option<String>;
}

/// Finds things out.
#[derive(Clone)]
pub(super) struct Preparer {
    pub(super) store: actix::Addr<StoreActor>,
    pub(super) hosts: Arc<dyn Hosts>,
}

/// What was found out, and what has to be kept with the command.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) prepared: Prepared,
    pub(super) bodies: Vec<Bytes>,
    /// What is remarkable about the document; no errors.
    pub(super) findings: Vec<Finding>,
}

/// A document: a version, or a text that is none yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A version of the service.
    Version(u64),
    /// A text.
    Text {
        /// The name of the file that it comes from, for messages.
        file: String,
        /// The document.
        text: String,
    },
}

impl From<ReadError> for SubmitError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable(why) => Self::Unavailable(why),
            error @ (ReadError::Entry { .. } | ReadError::Bytes { .. }) => Self::Failed(error.to_string()),
        }
    }
}

impl Preparer {
    /// Finds out what a command takes. What it names and is not there is left to the decision.
    pub(super) async fn prepare(
        &self,
        log: &EventLog,
        state: &State,
        command: &Command,
    ) -> Result<Ready, SubmitError> {
        let name = command.service().unwrap_or_default();
        let service = state.service(name).map(|service| &**service);
        match command {
            Command::Upload(upload) => {
                let source = Source::Text { file: upload.file.clone(), text: upload.text.clone() };
                let draft = self.draft(log, state, name, &source, &Revisions::latest(state, name)).await?;
                draft.must_hold()?;
                Ok(Ready { findings: draft.findings, ..kept(&draft.parsed.document, &upload.text) })
            }
            Command::Activate(activate) => {
                let source = Source::Version(activate.version);
                if service.and_then(|service| service.version(activate.version)).is_none() {
                    return Ok(Ready::default());
                }
                let draft = self.draft(log, state, name, &source, &Revisions::latest(state, name)).await?;
                let mut ready = draft.release(activate.version)?;
                self.first_host(state, name, &activate.plan, &mut ready.prepared);
                Ok(ready)
            }
            Command::Traffic(traffic) => {
                let base = service.and_then(|it| commands::base(name, it, &traffic.plan.audience).ok());
                let Some(made) = base else { return Ok(Ready::default()) };
                let source = Source::Version(made.version);
                let revisions = Revisions::of(state, name, made);
                let mut draft = self.draft(log, state, name, &source, &revisions).await?;
                let object = format!("service {name}");
                let document =
                    document::set_weights(&draft.parsed.document, traffic.route.as_deref(), &traffic.weights)
                        .map_err(|finding| wrong(&object, vec![*finding], "the weights cannot be set"))?;
                self.have_endpoints(name, &document, &traffic.weights).await?;
                draft.replace(document, &World::unknown())?;
                let document = &draft.parsed.document;
                let kept = kept(document, &document.to_text());
                let mut ready = draft.release(0)?;
                ready.prepared.document = kept.prepared.document;
                ready.bodies.extend(kept.bodies);
                self.first_host(state, name, &traffic.plan, &mut ready.prepared);
                Ok(ready)
            }
            Command::RollBack(command) => {
                let target = service.map(|service| commands::target(name, service, command.to));
                let Some(Ok(Target::Version(number))) = target else { return Ok(Ready::default()) };
                let revisions = Revisions::in_force(state, name);
                let draft = self.compose(log, state, name, &Source::Version(number), &revisions).await?;
                Ok(draft.release(number)?)
            }
            Command::EditPart(edit) => {
                let Some(text) = &edit.text else { return Ok(Ready::default()) };
                let owner = match edit.owner {
                    part_edited::Owner::Unspecified | part_edited::Owner::Platform => Owner::Platform,
                    part_edited::Owner::Security => Owner::Security,
                };
                let object = format!("{owner} part");
                let parsed = document::parse(&edit.file, text, owner)
                    .map_err(|findings| wrong(&object, findings, "the document is wrong"))?;
                named(&object, &parsed.document, edit.service.as_deref())?;
                let mut findings = document::check_part(&parsed, &World::unknown());
                findings.extend(compile::check_patches(&parsed.document));
                document::locate(&mut findings, &parsed.places);
                refuse(&object, &findings)?;
                Ok(Ready { findings, ..kept(&parsed.document, text) })
            }
            Command::Approve(_)
            | Command::Retire(_)
            | Command::Deactivate(_)
            | Command::Abort(_)
            | Command::Step(_)
            | Command::Report(_)
            | Command::End(_)
            | Command::IssueToken(_)
            | Command::RevokeToken(_)
            | Command::RecordHold(_)
            | Command::ReleaseHold(_)
            | Command::Adopt(_) => Ok(Ready::default()),
        }
    }

    fn first_host(&self, state: &State, name: &str, plan: &Plan, prepared: &mut Prepared) {
        let id = commands::activation_id(state, name);
        let tier = |tier: &str| prepared.tiers.get(tier).cloned();
        let audience = plan.audience.resolve(&id, tier);
        prepared.first_host = audience.ok().and_then(|audience| self.hosts.first_of(&audience, &id));
    }

    /// Refuses to send traffic where nobody is.
    async fn have_endpoints(
        &self,
        name: &str,
        document: &Document,
        weights: &BTreeMap<String, u32>,
    ) -> Result<(), SubmitError> {
        let Some(endpoints) = self.endpoints(name).await? else { return Ok(()) };
        let weighed = |subset: &&String| weights.get(*subset).is_some_and(|weight| *weight > 0);
        for subset in weights.keys().filter(weighed) {
            let wanted = document.spec.callers.subsets.get(subset).cloned().unwrap_or_default();
            let fits = |labels: &BTreeMap<String, String>| {
                wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
            };
            if !endpoints.iter().any(fits) {
                let message = format!("no endpoint of {name} is in the subset {subset:?}");
                let object = format!("service {name}");
                return Err(Refusal::new(RefusalKind::Blocked, "empty-subset", object, message)
                    .field(format!("weights.{subset}"))
                    .next("register endpoints with the labels of the subset first")
                    .into());
            }
        }
        Ok(())
    }
}

/// The workloads of each tier. A cluster's name is that of its workloads, after the service's.
fn tiers(service: &str, document: &Document) -> BTreeMap<String, Vec<Workload>> {
    let workload = |cluster: &String| Workload { service: service.to_owned(), cluster: cluster.clone() };
    let tiers = document.spec.tiers.iter();
    tiers.map(|tier| (tier.name.clone(), tier.clusters.iter().map(workload).collect())).collect()
}
