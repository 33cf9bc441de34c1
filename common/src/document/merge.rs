//! What the parts of a document amount to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Document, Finding, Owner,
    owners::{FIELDS, below},
    places::{child, item},
    rules,
};

/// Fields that are taken from one part with all that is in them.
const WHOLE: [&str; 3] =
    ["spec.callers.loadBalancer", "spec.inbound.rateLimits.local", "spec.callers.rateLimits.local"];

/// The field to which the parts of one owner add, in place of replacing each other's.
const ADDED: &str = "spec.patches";

/// A service's document with all its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Effective {
    /// What holds.
    pub document: Document,
    /// Where each field comes from, by its path; lists and what is merged as a whole have one origin.
    pub provenance: BTreeMap<String, Origin>,
}

/// Where a field comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Who wrote it.
    pub owner: Owner,
    /// In which part.
    pub part: Part,
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The platform's, for all services.
    Platform,
    /// The platform's, for this one.
    PlatformForService,
    /// Security's, for all services.
    Security,
    /// Security's, for this one.
    SecurityForService,
    /// The service's own.
    Service,
}

/// The parts that there are of a service's document. Defaults are those of the service's own part, which has
/// nothing but its name if there is none.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The platform's, for all services.
    pub platform: Option<&'a Document>,
    /// The platform's, for this one.
    pub platform_for_service: Option<&'a Document>,
    /// Security's, for all services.
    pub security: Option<&'a Document>,
    /// Security's, for this one.
    pub security_for_service: Option<&'a Document>,
    /// The service's own.
    pub service: &'a Document,
}

/// Puts the parts together. Each field comes from the parts of those who may write it, by the table of owners:
/// the owner it belongs to comes before others, what is said for one service before what is said for all.
///
/// # Errors
/// A part for one service that is about another one.
pub fn merge(parts: &Parts<'_>) -> Result<Effective, Vec<Finding>> {
    let name = &parts.service.metadata.name;
    let mut findings = Vec::new();
    for part in [parts.platform_for_service, parts.security_for_service].into_iter().flatten() {
        if !part.metadata.name.is_empty() && part.metadata.name != *name {
            let message = format!("the part is about {:?}, and not {name:?}", part.metadata.name);
            let next = "name the service that it is for";
            findings.push(Finding::new(rules::WRONG_SERVICE, "metadata.name", message, next));
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut merged = Merged { spec: Map::new(), provenance: BTreeMap::new() };
    for (field, writers) in FIELDS.iter().filter(|(field, _)| field.starts_with("spec.")) {
        // The weakest first, so that what comes later holds.
        for owner in writers.iter().rev() {
            for (part, document) in parts.of(*owner) {
                let Ok(value) = serde_json::to_value(&document.spec) else { continue };
                let steps: Vec<&str> = field.split('.').skip(1).collect();
                if let Some(value) = steps.iter().try_fold(&value, |value, step| value.get(step)) {
                    merged.set(&steps, value, Origin { owner: *owner, part });
                }
            }
        }
    }
    let Merged { spec, provenance } = merged;
    let spec = serde_json::from_value(Value::Object(spec)).map_err(|error| {
        let next = "look at each part by itself";
        vec![Finding::new(rules::WRONG_TYPE, "spec", format!("the parts do not fit together: {error}"), next)]
    })?;
    Ok(Effective { document: Document { spec, ..parts.service.clone() }, provenance })
}

impl Effective {
    /// The parts that the field at this path comes from: those of the fields in it, or the one of the field around
    /// it.
    pub fn parts_of(&self, path: &str) -> BTreeSet<Part> {
        let about = |field: &str| below(field, path) || below(path, field);
        self.provenance.iter().filter(|(field, _)| about(field)).map(|(_, origin)| origin.part).collect()
    }
}

impl<'a> Parts<'a> {
    /// A service's own part, and nothing else.
    pub const fn alone(service: &'a Document) -> Self {
        Self {
            platform: None,
            platform_for_service: None,
            security: None,
            security_for_service: None,
            service,
        }
    }

    /// The parts of an owner, the more general first.
    fn of(&self, owner: Owner) -> Vec<(Part, &'a Document)> {
        let both = |general: (Part, Option<&'a Document>), own: (Part, Option<&'a Document>)| {
            [general, own].into_iter().filter_map(|(part, document)| Some((part, document?))).collect()
        };
        match owner {
            Owner::Platform => {
                both((Part::Platform, self.platform), (Part::PlatformForService, self.platform_for_service))
            }
            Owner::Security => {
                both((Part::Security, self.security), (Part::SecurityForService, self.security_for_service))
            }
            Owner::Service => vec![(Part::Service, self.service)],
        }
    }
}

/// The fields so far, and where they come from.
struct Merged {
    spec: Map<String, Value>,
    provenance: BTreeMap<String, Origin>,
}

impl Merged {
    /// Sets the field at these steps below `spec`.
    fn set(&mut self, steps: &[&str], value: &Value, origin: Origin) {
        let Some((last, around)) = steps.split_last() else { return };
        let mut object = &mut self.spec;
        for step in around {
            let next = object.entry(*step).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(next) = next else { return };
            object = next;
        }
        let path = format!("spec.{}", steps.join("."));
        let held = object.entry(*last).or_insert(Value::Null);
        overlay(held, value, &path, origin, &mut self.provenance);
    }
}

/// Lays a value over another one: objects field by field, all else in place of what was there.
fn overlay(
    held: &mut Value,
    value: &Value,
    path: &str,
    origin: Origin,
    provenance: &mut BTreeMap<String, Origin>,
) {
    match (&mut *held, value) {
        (held, Value::Object(fields)) if !WHOLE.contains(&path) && !fields.is_empty() => {
            if !held.is_object() {
                *held = Value::Object(Map::new());
            }
            for (name, value) in fields {
                let held = held.as_object_mut().map(|object| object.entry(name).or_insert(Value::Null));
                if let Some(held) = held {
                    overlay(held, value, &child(path, name), origin, provenance);
                }
            }
        }
        (Value::Array(held), Value::Array(items)) if path == ADDED => {
            for value in items {
                provenance.insert(item(path, held.len()), origin);
                held.push(value.clone());
            }
        }
        (held, value) => {
            *held = value.clone();
            provenance.retain(|field, _| !below(field, path));
            provenance.insert(path.to_owned(), origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    fn part(owner: Owner, spec: &str) -> Document {
        let name = if owner == Owner::Service { "{name: web}" } else { "{}" };
        let text = format!("apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {name}\nspec: {spec}\n");
        parse("part.yaml", &text, owner).unwrap().document
    }

    #[test]
    fn a_field_comes_from_its_owner_and_a_default_where_the_owner_says_nothing() {
        let platform = part(
            Owner::Platform,
            "{inbound: {ports: [{name: app, port: 8443, appPort: 8080}]}, callers: {connectTimeout: 2s, \
             circuitBreaker: {maxRequests: 10, maxRetries: 9}}}",
        );
        let special = part(Owner::Platform, "{callers: {circuitBreaker: {maxRequests: 20}}}");
        let security =
            part(Owner::Security, "{callers: {tls: {mode: strict, caFile: /ca, identities: [a]}}}");
        let service = part(Owner::Service, "{callers: {circuitBreaker: {maxRetries: 1}}}");
        let effective = merge(&Parts {
            platform: Some(&platform),
            platform_for_service: Some(&special),
            security: Some(&security),
            security_for_service: None,
            service: &service,
        })
        .unwrap();
        let callers = &effective.document.spec.callers;
        assert_eq!(callers.circuit_breaker.max_requests, Some(20));
        assert_eq!(callers.circuit_breaker.max_retries, Some(1));
        assert_eq!(callers.connect_timeout.unwrap().as_millis(), 2000);
        assert_eq!(effective.document.metadata.name, "web");
        let origin = |field: &str| {
            let origin = effective.provenance[field];
            (origin.owner, origin.part)
        };
        assert_eq!(origin("spec.inbound.ports"), (Owner::Platform, Part::Platform));
        assert_eq!(
            origin("spec.callers.circuitBreaker.maxRequests"),
            (Owner::Platform, Part::PlatformForService)
        );
        assert_eq!(origin("spec.callers.circuitBreaker.maxRetries"), (Owner::Service, Part::Service));
        assert_eq!(origin("spec.callers.tls.mode"), (Owner::Security, Part::Security));
    }

    #[test]
    fn what_is_merged_as_a_whole_has_one_origin_and_patches_add_up() {
        let platform = part(
            Owner::Platform,
            "{callers: {loadBalancer: {type: RingHash, minRingSize: 64}}, \
             patches: [{target: {kind: Cluster, name: web}, merge: {}}]}",
        );
        let special = part(Owner::Platform, "{patches: [{target: {kind: Listener, name: web}, merge: {}}]}");
        let service = part(Owner::Service, "{callers: {loadBalancer: {type: Maglev}}}");
        let parts = Parts {
            platform: Some(&platform),
            platform_for_service: Some(&special),
            ..Parts::alone(&service)
        };
        let effective = merge(&parts).unwrap();
        let balancer = effective.document.spec.callers.load_balancer.unwrap();
        assert_eq!(balancer.min_ring_size, None, "of another balancer");
        assert_eq!(effective.document.spec.patches.len(), 2);
        assert_eq!(effective.provenance["spec.patches[1]"].part, Part::PlatformForService);
    }

    #[test]
    fn a_part_for_another_service_is_refused() {
        let service = part(Owner::Service, "{}");
        let mut other = part(Owner::Platform, "{}");
        other.metadata.name = "ads".to_owned();
        let parts = Parts { platform_for_service: Some(&other), ..Parts::alone(&service) };
        let findings = merge(&parts).unwrap_err();
        assert_eq!(findings[0].code, "TW010");
    }
}
