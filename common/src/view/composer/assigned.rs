//! Which release of a service this host serves.

use std::sync::Arc;

use prost::Message;
use tower_proto::v1;

use crate::{
    audience::{NodeFacts, UnknownTerm, contains},
    resource::ResourceKey,
    store::Store,
    view::{
        domains::is_ended,
        release::{Release, fingerprint},
    },
};

/// A service with an assignment.
#[derive(Debug, Clone, Default)]
pub(super) struct Assigned {
    /// What the assignment gives to this host; `None` if that cannot be told.
    pub(super) wanted: Option<Arc<str>>,
    /// What is served; `None` is the release "default".
    pub(super) release: Option<Arc<Release>>,
    /// Why that is not what is wanted.
    pub(super) problem: Option<Arc<str>>,
}

/// What a service has before its assignment is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Before<'a> {
    /// It is new here: there is nothing to keep.
    Nothing,
    /// It is served without an assignment.
    Default,
    /// It has an assignment.
    Assigned(&'a Assigned),
}

/// The assignment of a service, unless it has none, or it has been ended. `Err` is one that cannot be read.
pub(super) fn assignment(
    store: &Store,
    scope: &str,
    service: &str,
) -> Option<Result<v1::Assignment, String>> {
    let resource = store.get(&ResourceKey::new(scope, v1::Kind::Assignment, service, ""))?;
    match v1::Assignment::decode(resource.body().clone()) {
        Ok(ended) if is_ended(&ended) => None,
        Ok(assignment) => Some(Ok(assignment)),
        Err(error) => Some(Err(format!("the assignment cannot be read: {error}"))),
    }
}

/// The release that an assignment gives to a host; empty is the release "default".
///
/// # Errors
/// If a rule that could be the first to match has a term that this build does not know.
pub fn evaluate<'a>(assignment: &'a v1::Assignment, node: &NodeFacts) -> Result<&'a str, UnknownTerm> {
    for rule in &assignment.rules {
        if matches(rule, node)? {
            return Ok(&rule.release);
        }
    }
    Ok(&assignment.default_release)
}

fn matches(rule: &v1::assignment::Rule, node: &NodeFacts) -> Result<bool, UnknownTerm> {
    rule.audience.as_ref().map_or(Ok(true), |audience| contains(audience, node))
}

/// Decides what a service serves. What cannot be evaluated changes nothing.
pub(super) fn decide(
    store: &Store,
    scope: &str,
    service: &str,
    node: &NodeFacts,
    before: Before<'_>,
) -> Option<Assigned> {
    let read = |id: &str| read(store, scope, service, id, before);
    let assignment = assignment(store, scope, service)?;
    let (wanted, problem) = match assignment.as_ref().map(|assignment| evaluate(assignment, node)) {
        Ok(Ok(id)) => match read(id) {
            Ok(release) => return Some(Assigned { wanted: Some(id.into()), release, problem: None }),
            Err(problem) => (Some(id.into()), problem),
        },
        Ok(Err(unknown)) => (None, unknown.to_string()),
        Err(problem) => (None, problem.clone()),
    };
    let release = match before {
        Before::Assigned(assigned) => assigned.release.clone(),
        Before::Default => None,
        Before::Nothing => assignment.ok().and_then(|assignment| {
            // The best guess at what it would have kept: without the rules that nobody understands here, and
            // then without any.
            let known = assignment.rules.iter().find(|rule| matches(rule, node) == Ok(true));
            let known = known.map(|rule| rule.release.as_str());
            let guesses = known.into_iter().chain([assignment.default_release.as_str()]);
            guesses.filter_map(|id| read(id).ok()).next().flatten()
        }),
    };
    Some(Assigned { wanted, release, problem: Some(problem.into()) })
}

/// A release, decoded if it is another than before.
fn read(
    store: &Store,
    scope: &str,
    service: &str,
    id: &str,
    before: Before<'_>,
) -> Result<Option<Arc<Release>>, String> {
    if id.is_empty() {
        return Ok(None);
    }
    if let Before::Assigned(Assigned { release: Some(held), .. }) = before
        && *held.id == *id
        && fingerprint(store, scope, service, id) == Some(held.fingerprint)
    {
        return Ok(Some(held.clone()));
    }
    Release::read(store, scope, service, id).map(|release| Some(Arc::new(release)))
}
