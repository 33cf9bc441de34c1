//! What is known of the services that a document refers to: whether anybody has registered them, and what
//! their own documents say.

use std::collections::{BTreeMap, BTreeSet};

use tower_common::document::{Document, Owner, ServiceFacts, World, model::Protocol};

use super::{Preparer, draft::read};
use crate::{
    event_log::EventLog,
    registry::{handle::SubmitError, service::releases_of, state::State},
    store_actor::{Describe, ListEndpoints, ListServices},
};

impl Preparer {
    /// The services that a document refers to, and itself. While Tower is still reading its sources nothing is
    /// known.
    pub(in crate::registry) async fn world(
        &self,
        log: &EventLog,
        state: &State,
        name: &str,
        document: &Document,
    ) -> Result<World, SubmitError> {
        let gone = |error: actix::MailboxError| SubmitError::Failed(format!("the store is gone: {error}"));
        if !self.store.send(Describe).await.map_err(gone)?.complete {
            return Ok(World::unknown());
        }
        let discovered = self.store.send(ListServices).await.map_err(gone)?;
        let discovered: BTreeSet<String> = discovered.into_iter().map(|service| service.service).collect();
        let mut facts = BTreeMap::new();
        for service in referred(document).into_iter().chain([name]) {
            let uploaded = state.service(service).is_some_and(|service| !service.versions.is_empty());
            if discovered.contains(service) || uploaded {
                let mut known = self.facts(log, state, service).await?;
                known.endpoints = self.endpoints(service).await?.unwrap_or_default();
                facts.insert(service.to_owned(), known);
            }
        }
        Ok(World::of(facts))
    }

    /// The labels of a service's endpoints; none if Tower is still reading its sources.
    pub(super) async fn endpoints(
        &self,
        service: &str,
    ) -> Result<Option<Vec<BTreeMap<String, String>>>, SubmitError> {
        let gone = |error: actix::MailboxError| SubmitError::Failed(format!("the store is gone: {error}"));
        if !self.store.send(Describe).await.map_err(gone)?.complete {
            return Ok(None);
        }
        let ask = ListEndpoints { service: service.to_owned() };
        let endpoints = self.store.send(ask).await.map_err(gone)?;
        Ok(Some(endpoints.into_iter().map(|(_, endpoint)| endpoint.labels).collect()))
    }

    /// What the document says that hosts have of a service.
    async fn facts(&self, log: &EventLog, state: &State, name: &str) -> Result<ServiceFacts, SubmitError> {
        let body = state.service(name).and_then(|service| {
            let release = releases_of(&service.assignment).next()?;
            let version = service.version(service.version_of(release)?)?;
            Some(version.uploaded.as_ref()?.body.clone())
        });
        let Some(body) = body else { return Ok(ServiceFacts::default()) };
        let callers = read(log, name, Owner::Service, &body).await?.document.spec.callers;
        Ok(ServiceFacts {
            subsets: callers.subsets.keys().cloned().collect(),
            tcp: callers.protocol.is_some_and(|protocol| !Protocol::is_http(protocol)),
            endpoints: Vec::new(),
        })
    }
}

/// The services that a document names.
fn referred(document: &Document) -> BTreeSet<&str> {
    let dependencies = document.spec.outbound.dependencies.iter().map(|dependency| &*dependency.service);
    let mirrors =
        document.spec.callers.routes.iter().filter_map(|route| route.mirror.as_ref()?.service.as_deref());
    dependencies.chain(mirrors).collect()
}
