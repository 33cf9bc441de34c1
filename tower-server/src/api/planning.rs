//! What an activation would do, worked out without doing it.

use std::collections::BTreeMap;

use prost::Message;
use tower_common::{
    api::{
        Code, Problem,
        plan::{Action, Effect, Hosts, Plan, PlanFrom, ResourceEffect},
    },
    audience::{AudienceSpec, Workload, contains},
    document::{self, Document, Effective, Finding, Owner, Parsed},
    view::evaluate,
};
use tower_proto::v1::{self, Bundle, Kind, bundle::Part};

use super::{
    AppState,
    caller::{self, unreadable},
    changes, documents,
    effective::{self, OtherParts},
    error::Refused,
    told::{self, findings},
};
use crate::{
    compile::{self, plan::Connections},
    registry::{Service, State, steps},
};

/// Names of hosts that are told.
const MAX_NAMES: usize = 1000;

/// What is planned.
#[derive(Debug)]
pub enum Subject {
    /// A version, by its number.
    Version(u64),
    /// A document, and what findings call it.
    Document {
        /// The document.
        text: String,
        /// What findings call it.
        file: String,
    },
}

/// A document that was looked at: what is wrong with it, and what it compiles to if nothing is.
#[derive(Debug, Default)]
pub struct Looked {
    /// All findings.
    pub findings: Vec<Finding>,
    /// The document with the parts in force.
    pub effective: Option<Effective>,
    /// What it compiles to.
    pub bundle: Option<Bundle>,
}

/// Looks at a document with the parts in force, and with what is known of other services.
///
/// # Errors
/// If the log or the store cannot be read.
pub async fn look(state: &AppState, folded: &State, name: &str, parsed: &Parsed) -> Result<Looked, Refused> {
    let mut looked = Looked { findings: parsed.findings.clone(), ..Looked::default() };
    let parts = OtherParts::in_force(&state.registry, folded, name).await?;
    let effective = match parts.with(&parsed.document) {
        Ok(effective) => effective,
        Err(found) => {
            looked.findings.extend(found);
            return Ok(looked);
        }
    };
    let world = state.registry.world(folded, name, &effective.document).await.map_err(caller::failed)?;
    looked.findings.extend(document::check(&effective, &world));
    document::locate(&mut looked.findings, &parsed.places);
    if !document::refuses(&looked.findings) {
        match compile::compile(&effective, name) {
            Ok(bundle) => looked.bundle = Some(bundle),
            Err(found) => looked.findings.extend(found),
        }
    }
    looked.effective = Some(effective);
    Ok(looked)
}

/// What giving this to that audience would do.
///
/// # Errors
/// If there is no such version, the document is about something else, or the audience is none.
pub async fn plan(
    state: &AppState,
    name: &str,
    subject: Subject,
    audience: &AudienceSpec,
) -> Result<Plan, Refused> {
    let folded = state.registry.state();
    let none = Service::default();
    let service = folded.service(name).map_or(&none, |service| &**service);
    let version = match &subject {
        Subject::Version(number) => Some(*number),
        Subject::Document { .. } => None,
    };
    let mut plan = Plan {
        service: name.to_owned(),
        index: service.etag,
        version,
        release: None,
        audience: audience.to_string(),
        findings: Vec::new(),
        from: Vec::new(),
        hosts: Hosts::default(),
    };
    let parsed = match parse(state, name, service, subject).await? {
        Ok(parsed) => parsed,
        Err(found) => {
            plan.findings = found.iter().map(findings::finding).collect();
            return Ok(plan);
        }
    };
    check_name(name, &parsed.document)?;
    let looked = look(state, &folded, name, &parsed).await?;
    plan.findings = looked.findings.iter().map(findings::finding).collect();
    let (Some(effective), Some(bundle)) = (looked.effective, looked.bundle) else { return Ok(plan) };
    let release = told::hex(&blake3::hash(&bundle.encode_to_vec()).as_bytes()[..8]);
    let audience = resolve(name, &folded, service, audience, &effective.document)?;
    let affected = affected(state, service, &audience, &release)?;
    for (before, hosts) in &affected {
        plan.from.push(PlanFrom {
            release: told::services::release(service, before),
            hosts: hosts.len() as u64,
            ..differences(state, &folded, name, service, before, (&effective, &bundle)).await?
        });
    }
    plan.from.sort_by_key(|from| std::cmp::Reverse(from.hosts));
    let mut names: Vec<String> = affected.into_values().flatten().collect();
    names.sort();
    plan.hosts = Hosts { count: names.len() as u64, names: names.into_iter().take(MAX_NAMES).collect() };
    plan.release = Some(release);
    Ok(plan)
}

async fn parse(
    state: &AppState,
    name: &str,
    service: &Service,
    subject: Subject,
) -> Result<Result<Parsed, Vec<Finding>>, Refused> {
    match subject {
        Subject::Document { text, file } => Ok(document::parse(&file, &text, Owner::Service)),
        Subject::Version(number) => {
            let uploaded = service.version(number).and_then(|record| record.uploaded.as_ref());
            let id = format!("{name}@{number}");
            let list = format!("/api/v1/services/{name}/versions");
            let uploaded = uploaded.ok_or_else(|| Refused::no_such("version", &id, &list))?;
            let text = documents::text(&state.registry, &uploaded.body).await?;
            Ok(document::parse(&id, &text, Owner::Service))
        }
    }
}

/// Refuses a document about another service than the path.
fn check_name(name: &str, document: &Document) -> Result<(), Refused> {
    let about = &document.metadata.name;
    if about.is_empty() || about == name {
        return Ok(());
    }
    let detail = format!("the document is about {about:?}, and not {name:?}");
    Err(Problem::new(Code::Invalid, detail)
        .field("metadata.name")
        .next("send it to the service that it names, or correct the name")
        .into())
}

/// The audience that an activation would have. A percentage picks its hosts by the id that the activation would
/// get now, unless the audience has a release of its own already.
fn resolve(
    name: &str,
    folded: &State,
    service: &Service,
    audience: &AudienceSpec,
    document: &Document,
) -> Result<v1::Audience, Refused> {
    let tier = |wanted: &str| {
        let tier = document.spec.tiers.iter().find(|tier| tier.name == wanted)?;
        let workload = |cluster: &String| Workload { service: name.to_owned(), cluster: cluster.clone() };
        Some(tier.clusters.iter().map(workload).collect())
    };
    let resolved = |salt: &str| {
        let resolved = audience.resolve(salt, tier);
        resolved
            .map_err(|error| Refused::from(Problem::new(Code::Invalid, error.to_string()).field("audience")))
    };
    for held in service.firm.rules.iter().filter_map(|rule| rule.audience.as_ref()) {
        if resolved(steps::salt_of(held))? == *held {
            return Ok(held.clone());
        }
    }
    resolved(&format!("{name}-{}", folded.index() + 1))
}

/// The hosts of the audience that have another release now, by what they have.
fn affected(
    state: &AppState,
    service: &Service,
    audience: &v1::Audience,
    release: &str,
) -> Result<BTreeMap<String, Vec<String>>, Refused> {
    let unknown = |error| Refused::malformed("audience", format!("{error}"));
    let mut affected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for host in state.beacons.fleet().hosts() {
        if !contains(audience, &host.facts).map_err(unknown)? {
            continue;
        }
        // A host that cannot tell what it should have keeps what it has.
        let Ok(now) = evaluate(&service.assignment, &host.facts) else { continue };
        if now != release {
            affected.entry(now.to_owned()).or_default().push(host.facts.id.clone());
        }
    }
    Ok(affected)
}

/// How what hosts have now differs from what they would have.
async fn differences(
    state: &AppState,
    folded: &State,
    name: &str,
    service: &Service,
    before: &str,
    after: (&Effective, &Bundle),
) -> Result<PlanFrom, Refused> {
    let (mut document, mut bundle) = (None, None);
    if let Some(made) = service.release(before) {
        document = effective::of_release(&state.registry, folded, name, service, made).await?;
        let bytes = state.registry.body(&made.bundle).await.map_err(|error| unreadable(&error))?;
        bundle = Bundle::decode(bytes).ok();
    }
    let changes =
        changes::of_documents(document.as_ref().map(|before| &before.document), Some(&after.0.document));
    let effects = effects(bundle.as_ref(), after.1);
    Ok(PlanFrom { release: None, hosts: 0, changes, effects })
}

fn effects(before: Option<&Bundle>, after: &Bundle) -> Vec<ResourceEffect> {
    let told = |effect: compile::plan::Effect| {
        // Names have no spaces; kinds may.
        let (kind, name) = effect.resource.rsplit_once(' ').unwrap_or(("part", &effect.resource));
        let has = |bundle: Option<&Bundle>| {
            let is_it = |part: &Part| part.name == name && Some(part.kind()) == kind_of(kind);
            bundle.is_some_and(|bundle| bundle.parts.iter().any(is_it))
        };
        ResourceEffect {
            action: match (has(before), has(Some(after))) {
                (false, _) => Action::Add,
                (true, true) => Action::Change,
                (true, false) => Action::Remove,
            },
            kind: kind.replace(' ', "_"),
            name: name.to_owned(),
            effect: match effect.effect {
                Connections::NoDrain => Effect::NoDrain,
                Connections::PoolsReset => Effect::PoolsReset,
                Connections::ConnectionsDrained => Effect::ConnectionsDrained,
            },
            why: told::some(effect.why),
        }
    };
    compile::plan::plan(before, after).into_iter().map(told).collect()
}

/// The kind of parts that the compiler calls so.
fn kind_of(word: &str) -> Option<Kind> {
    match word {
        "cluster" => Some(Kind::Cluster),
        "virtual host" => Some(Kind::VirtualHost),
        "listener" => Some(Kind::Listener),
        "secret" => Some(Kind::SecretReference),
        "extension" => Some(Kind::Extension),
        "runtime" => Some(Kind::Runtime),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_a_resource_is_told_apart() {
        let part = |kind: Kind, name: &str, body: &'static [u8]| Part {
            kind: kind.into(),
            name: name.into(),
            body: body.into(),
        };
        let before = Bundle {
            parts: vec![part(Kind::Cluster, "web/old", b"1"), part(Kind::VirtualHost, "web", b"1")],
        };
        let after = Bundle {
            parts: vec![part(Kind::Cluster, "web/new", b"1"), part(Kind::VirtualHost, "web", b"2")],
        };
        let told: Vec<_> = effects(Some(&before), &after)
            .into_iter()
            .map(|effect| (effect.kind, effect.name, effect.action))
            .collect();
        let expected = [
            ("cluster", "web/new", Action::Add),
            ("cluster", "web/old", Action::Remove),
            ("virtual_host", "web", Action::Change),
        ];
        assert_eq!(told, expected.map(|(kind, name, action)| (kind.to_owned(), name.to_owned(), action)));
    }
}
