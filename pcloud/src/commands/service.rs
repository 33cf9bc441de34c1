//! `service`: what is discovered, and what is configured.

use std::fmt::Write;

use reqwest::Method;
use serde_json::json;
use tower_common::api::{
    Changed,
    service::{Endpoints, Release, Serve, Service, ServiceDetail, Services},
};
use tower_common::clock::unix_millis;

use super::{Shell, paging::pages, segment};
use crate::{
    cli::{self, Listing},
    client::Body,
    failure::Failure,
    output::{self, Cell, Table, Tone},
    period::ago,
};

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Service) -> Result<(), Failure> {
    match command {
        cli::Service::List(listing) => list(shell, listing).await,
        cli::Service::Get { service } => get(shell, service).await,
        cli::Service::Describe { service } => describe(shell, service).await,
        cli::Service::Endpoints { service } => endpoints(shell, service).await,
        cli::Service::Deactivate { service, reason, yes } => {
            output::confirm(&format!("All callers of {service} lose its configuration. Go on?"), *yes)?;
            let path = format!("/services/{}/deactivate", segment(service));
            let body = json!({ "reason": reason });
            shell.client.change::<Changed>(Method::POST, &path, Body::Json(&body), None, &()).await?;
            output::note(&format!("{service} has no document in effect any more"));
            Ok(())
        }
    }
}

async fn list(shell: &Shell<'_>, listing: &Listing) -> Result<(), Failure> {
    let query: Vec<(&str, String)> = listing.search.iter().map(|search| ("search", search.clone())).collect();
    let mut all =
        Services { serve: Serve::All, unknown: Vec::new(), services: Vec::new(), total: 0, next: None };
    pages(&shell.client, "/services", &query, listing.limit, |page: Services| {
        let items = page.services.len();
        all.services.extend(page.services);
        (all.serve, all.unknown) = (page.serve, page.unknown);
        (page.next, items)
    })
    .await?;
    shell.output.print(
        &all,
        |wide| table(&all.services, wide),
        || all.services.iter().map(|service| service.name.clone()).collect(),
    )
}

async fn get(shell: &Shell<'_>, service: &str) -> Result<(), Failure> {
    let detail: ServiceDetail = shell.client.get(&format!("/services/{}", segment(service)), &()).await?;
    shell.output.print(
        &detail,
        |wide| table(std::slice::from_ref(&detail.service), wide),
        || vec![service.to_owned()],
    )
}

fn table(services: &[Service], wide: bool) -> Table {
    let mut titles = vec!["SERVICE", "ACTIVE", "LATEST", "ENDPOINTS", "ACTIVATION", "CHANGED"];
    if wide {
        titles.extend(["OWNER", "RULES", "SERVED", "ETAG"]);
    }
    let mut table = Table::new(&titles);
    let now = unix_millis();
    for service in services {
        let endpoints = match service.endpoints {
            0 => Cell::toned("0", Tone::Warn),
            number => number.into(),
        };
        let mut row = vec![
            Cell::from(service.name.as_str()),
            active(service.active.as_ref()).into(),
            service.latest_version.map_or("-".to_owned(), |latest| latest.to_string()).into(),
            endpoints,
            service.activation.as_deref().unwrap_or("-").into(),
            service.changed_unix_ms.map_or("-".to_owned(), |then| ago(then, now)).into(),
        ];
        if wide {
            row.extend([
                Cell::from(service.owner.as_deref().unwrap_or("-")),
                service.rules.into(),
                if service.served { "yes" } else { "no" }.into(),
                service.index.into(),
            ]);
        }
        table.row(row);
    }
    table
}

fn active(release: Option<&Release>) -> String {
    release.map_or("default".to_owned(), |release| format!("@{} ({})", release.version, release.release))
}

/// Everything about a service, for people.
pub(super) async fn describe(shell: &Shell<'_>, service: &str) -> Result<(), Failure> {
    let path = format!("/services/{}", segment(service));
    let detail: ServiceDetail = shell.client.get(&path, &[("include", "effective")]).await?;
    let endpoints: Endpoints = shell.client.get(&format!("{path}/endpoints"), &()).await?;
    let data = json!({ "service": detail, "endpoints": endpoints.endpoints });
    shell.output.text(&data, service, || text(&detail, &endpoints))
}

fn text(detail: &ServiceDetail, endpoints: &Endpoints) -> String {
    let service = &detail.service;
    let mut text = format!("Service:   {}\n", service.name);
    let mut say = |title: &str, value: String| {
        let _ = writeln!(text, "{:<10} {value}", format!("{title}:"));
    };
    say("Owner", service.owner.clone().unwrap_or_else(|| "-".to_owned()));
    say("Active", active(service.active.as_ref()));
    say("Host", service.domain.clone().or(service.refused.clone()).unwrap_or_else(|| "-".to_owned()));
    say("Served", if service.served { "yes" } else { "no, see --serve of Tower" }.to_owned());
    say("ETag", service.index.to_string());
    if let Some(activation) = &detail.activation_in_progress {
        let hosts = activation.hosts;
        say(
            "Activation",
            format!(
                "{} of @{}, step {} of {}: {} of {} hosts accepted it",
                activation.id,
                activation.version,
                activation.step + 1,
                activation.steps.len(),
                hosts.accepted,
                hosts.total
            ),
        );
    }
    if !detail.assignment.is_empty() {
        text.push_str("\nWho gets what (the first that fits decides):\n");
        for rule in &detail.assignment {
            let _ = writeln!(text, "  {} → {}", rule.audience, active(rule.release.as_ref()));
        }
    }
    if !detail.findings.is_empty() {
        text.push_str("\nRemarks:\n");
        for finding in &detail.findings {
            let _ = writeln!(text, "  {finding}");
        }
    }
    if let Some(effective) = &detail.effective {
        text.push_str("\nIn effect, and from where:\n");
        for (field, value) in leaves(&effective.document) {
            let origin = origin_of(&effective.provenance, &field);
            let _ = writeln!(text, "  {field}: {value}{origin}");
        }
    }
    let _ = writeln!(text, "\nEndpoints: {}", endpoints.endpoints.len());
    for endpoint in endpoints.endpoints.iter().take(20) {
        let labels: Vec<String> =
            endpoint.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let _ = writeln!(
            text,
            "  {}:{} {} {} {}",
            endpoint.address,
            endpoint.port,
            endpoint.state,
            endpoint.zone,
            labels.join(",")
        );
    }
    if endpoints.endpoints.len() > 20 {
        text.push_str("  … pcloud service endpoints shows all\n");
    }
    text
}

/// The fields with their values, by path.
fn leaves(document: &serde_json::Value) -> Vec<(String, String)> {
    fn walk(path: &str, value: &serde_json::Value, found: &mut Vec<(String, String)>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(&path, value, found);
                }
            }
            serde_json::Value::Array(items) if items.iter().any(serde_json::Value::is_object) => {
                for (number, value) in items.iter().enumerate() {
                    walk(&format!("{path}[{number}]"), value, found);
                }
            }
            value => found.push((path.to_owned(), value.to_string())),
        }
    }
    let mut found = Vec::new();
    walk("", document, &mut found);
    found
}

/// Where a field comes from: what is said of it, or of the nearest that it is part of.
fn origin_of(
    provenance: &std::collections::BTreeMap<String, tower_common::api::service::Origin>,
    field: &str,
) -> String {
    let mut path = field;
    loop {
        if let Some(origin) = provenance.get(path) {
            return format!("   # {} ({})", origin.part, origin.owner);
        }
        match path.rfind(['.', '[']) {
            Some(end) => path = &path[..end],
            None => return String::new(),
        }
    }
}

async fn endpoints(shell: &Shell<'_>, service: &str) -> Result<(), Failure> {
    let answer: Endpoints =
        shell.client.get(&format!("/services/{}/endpoints", segment(service)), &()).await?;
    shell.output.print(
        &answer,
        |wide| {
            let mut titles = vec!["ADDRESS", "PORT", "STATE", "WEIGHT", "ZONE", "LABELS"];
            if wide {
                titles.push("SOURCE");
            }
            let mut table = Table::new(&titles);
            for endpoint in &answer.endpoints {
                let labels: Vec<String> =
                    endpoint.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let mut row = vec![
                    Cell::from(endpoint.address.as_str()),
                    u64::from(endpoint.port).into(),
                    endpoint.state.as_str().into(),
                    endpoint.weight.to_string().into(),
                    endpoint.zone.as_str().into(),
                    labels.join(",").into(),
                ];
                if wide {
                    row.push(endpoint.source.as_str().into());
                }
                table.row(row);
            }
            table
        },
        || answer.endpoints.iter().map(|e| format!("{}:{}", e.address, e.port)).collect(),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tower_common::api::service::Origin;

    use super::*;

    #[test]
    fn a_field_comes_from_where_the_nearest_around_it_does() {
        let origin = |owner: &str, part: &str| Origin { owner: owner.into(), part: part.into() };
        let provenance = BTreeMap::from([
            ("spec.callers".to_owned(), origin("service", "web@3")),
            ("spec.callers.tls".to_owned(), origin("security", "security")),
        ]);
        let document = json!({"spec": {"callers": {"routes": [{"name": "r"}], "tls": {"mode": "strict"}}}});
        let told: Vec<String> = leaves(&document)
            .into_iter()
            .map(|(field, value)| format!("{field}={value}{}", origin_of(&provenance, &field)))
            .collect();
        assert_eq!(
            told,
            [
                "spec.callers.routes[0].name=\"r\"   # web@3 (service)",
                "spec.callers.tls.mode=\"strict\"   # security (security)",
            ]
        );
    }
}
