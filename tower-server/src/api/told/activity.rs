//! Entries of the log: who did what, why, and what came of it.

use serde_json::{Value, json};
use tower_common::api::activity::{Entry, Event};
use tower_proto::v1::{self, event::Event as Kind, part_edited::Owner};

use super::{audience, hex, time};

/// An entry, without what was otherwise before.
pub fn entry(entry: &v1::LogEntry) -> Entry {
    let actor = entry.actor.clone().unwrap_or_default();
    Entry {
        index: entry.index,
        time_unix_ms: entry.time_ms,
        author: actor.name,
        credential: actor.credential,
        address: actor.address,
        command: entry.command.clone(),
        command_id: entry.command_id.clone(),
        reason: entry.reason.clone(),
        events: entry.events.iter().map(event).collect(),
    }
}

fn event(event: &v1::Event) -> Event {
    let service = &event.service;
    let (kind, summary, data) = match &event.event {
        Some(kind) => told(service, kind),
        None => ("unknown", "an event of a newer Tower".to_owned(), json!({})),
    };
    let service = super::some(service);
    Event { kind: kind.to_owned(), service, summary, data, changes: None }
}

fn told(service: &str, kind: &Kind) -> (&'static str, String, Value) {
    match kind {
        Kind::VersionUploaded(it) => (
            "version_uploaded",
            format!("{service}@{} was uploaded", it.number),
            json!({"version": it.number, "hash": hex(&it.hash), "owner": it.owner}),
        ),
        Kind::VersionApproved(it) => (
            "version_approved",
            format!("{service}@{} was approved", it.number),
            json!({"version": it.number}),
        ),
        Kind::VersionRetired(it) => {
            ("version_retired", format!("{service}@{} was retired", it.number), json!({"version": it.number}))
        }
        Kind::ReleaseMade(it) => (
            "release_made",
            format!("release {} was made of {service}@{}", it.release, it.version),
            json!({
                "release": it.release, "version": it.version, "level": it.level,
                "platform": it.platform, "platform_for_service": it.platform_for_service,
                "security": it.security, "security_for_service": it.security_for_service,
            }),
        ),
        Kind::Assigned(it) => {
            let assignment = it.assignment.clone().unwrap_or_default();
            ("assigned", format!("{service}: {}", in_words(&assignment)), assignment_data(&assignment))
        }
        Kind::ActivationStarted(it) => (
            "activation_started",
            format!("{service}@{} goes to {}", it.version, audience(it.audience.as_ref())),
            json!({
                "activation": it.activation, "release": it.release, "version": it.version,
                "audience": audience(it.audience.as_ref()), "expires_unix_ms": time(it.expires_ms),
                "steps": it.steps.iter().map(|step| &step.title).collect::<Vec<_>>(),
            }),
        ),
        Kind::ActivationStepped(it) => (
            "activation_stepped",
            format!("{} goes to step {}", it.activation, it.step + 1),
            json!({"activation": it.activation, "step": it.step}),
        ),
        Kind::ActivationReported(it) => (
            "activation_reported",
            format!("{} of {} hosts have accepted {}", it.accepted, it.hosts, it.activation),
            json!({
                "activation": it.activation, "step": it.step, "tower": it.tower,
                "hosts": it.hosts, "accepted": it.accepted,
            }),
        ),
        Kind::ActivationEnded(it) => activation_ended(it),
        Kind::PartEdited(it) => part_edited(service, it),
        Kind::HoldRecorded(it) => (
            "hold_recorded",
            format!("{} endpoints of source {} are held", it.endpoints, it.source),
            json!({"source": it.source, "hold": it.hold, "endpoints": it.endpoints}),
        ),
        Kind::HoldReleased(it) => (
            "hold_released",
            format!("hold {} of source {} was released", it.hold, it.source),
            json!({"source": it.source, "hold": it.hold}),
        ),
        Kind::SourceAdopted(it) => (
            "source_adopted",
            format!("incarnation {} of source {} was adopted", it.incarnation, it.source),
            json!({"source": it.source, "incarnation": it.incarnation}),
        ),
        // The hash of a secret is nobody's business.
        Kind::TokenIssued(it) => (
            "token_issued",
            format!("{} was given to {:?}: {}", it.id, it.name, it.roles.join(", ")),
            json!({
                "id": it.id, "name": it.name, "roles": it.roles, "services": it.services,
                "expires_unix_ms": time(it.expires_ms),
            }),
        ),
        Kind::TokenRevoked(it) => ("token_revoked", format!("{} was revoked", it.id), json!({"id": it.id})),
        Kind::FeatureLevelRaised(it) => {
            ("feature_level_raised", format!("the feature level is {}", it.level), json!({"level": it.level}))
        }
    }
}

fn activation_ended(it: &v1::ActivationEnded) -> (&'static str, String, Value) {
    let outcome = it.outcome().as_str_name().trim_start_matches("OUTCOME_").to_lowercase();
    let mut summary = format!("{} ended: {}", it.activation, outcome.replace('_', " "));
    if let Some(rejection) = &it.rejection {
        let v1::Rejection { host, resource, error, .. } = rejection;
        summary.push_str(&format!("; {host} refused {resource}: {error}"));
    } else if !it.detail.is_empty() {
        summary.push_str(&format!("; {}", it.detail));
    }
    let rejection = it.rejection.as_ref().map(super::activations::rejection);
    let data = json!({
        "activation": it.activation, "outcome": outcome, "detail": it.detail, "rejection": rejection,
    });
    ("activation_ended", summary, data)
}

fn part_edited(service: &str, it: &v1::PartEdited) -> (&'static str, String, Value) {
    let owner = match it.owner() {
        Owner::Unspecified => "nobody",
        Owner::Platform => "platform",
        Owner::Security => "security",
    };
    let of = if service.is_empty() { "all services".to_owned() } else { format!("service {service}") };
    let what = if it.body.is_empty() { "was taken away" } else { "was edited" };
    let summary = format!("the part of {owner} for {of} {what}");
    ("part_edited", summary, json!({"owner": owner, "revision": it.revision, "removed": it.body.is_empty()}))
}

fn in_words(assignment: &v1::Assignment) -> String {
    let called = |release: &str| if release.is_empty() { "default" } else { release }.to_owned();
    let mut words: Vec<String> = assignment
        .rules
        .iter()
        .map(|rule| format!("{} has {}", audience(rule.audience.as_ref()), called(&rule.release)))
        .collect();
    let rest = if words.is_empty() { "everyone" } else { "everyone else" };
    words.push(format!("{rest} has {}", called(&assignment.default_release)));
    words.join(", ")
}

fn assignment_data(assignment: &v1::Assignment) -> Value {
    let rule = |rule: &v1::assignment::Rule| {
        json!({
            "audience": audience(rule.audience.as_ref()), "release": rule.release, "activation": rule.activation,
        })
    };
    let rules: Vec<Value> = assignment.rules.iter().map(rule).collect();
    json!({"rules": rules, "default_release": assignment.default_release})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_who_what_why_and_from_where_and_no_secret() {
        let issued = v1::TokenIssued {
            id: "0123456789abcdef".into(),
            name: "ci".into(),
            hash: vec![0xab; 32].into(),
            roles: vec!["owner".into()],
            ..Default::default()
        };
        let entry = entry(&v1::LogEntry {
            index: 7,
            command: "issue-token".into(),
            command_id: "key".into(),
            reason: "a new pipeline".into(),
            actor: Some(v1::Actor {
                name: "ann".into(),
                credential: "t".into(),
                address: "10.0.0.1:9".into(),
            }),
            events: vec![v1::Event { service: String::new(), event: Some(Kind::TokenIssued(issued)) }],
            ..Default::default()
        });
        let text = serde_json::to_string(&entry).unwrap();
        for part in ["ann", "10.0.0.1:9", "a new pipeline", "issue-token", "token_issued", "owner"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("abab") && !text.contains("hash"), "{text}");
    }

    #[test]
    fn an_assignment_reads_as_who_has_what() {
        let rule = v1::assignment::Rule { release: "r2".into(), ..Default::default() };
        let assignment = v1::Assignment { rules: vec![rule], default_release: "r1".into() };
        assert_eq!(in_words(&assignment), "everyone has r2, everyone else has r1");
        assert_eq!(in_words(&v1::Assignment::default()), "everyone has default");
    }
}
