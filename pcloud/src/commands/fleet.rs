//! One host, and all that is known of it.

use std::fmt::Write;

use tower_common::api::fleet::{HostActive, HostDetail};
use tower_common::clock::unix_millis;

use super::{Shell, segment, word};
use crate::{
    failure::Failure,
    period::{When, ago},
};

pub(super) async fn describe(shell: &Shell<'_>, host: &str) -> Result<(), Failure> {
    let detail: HostDetail = shell.client.get(&format!("/hosts/{}", segment(host)), &()).await?;
    shell.output.text(&detail, host, || text(&detail))
}

pub(super) async fn past(shell: &Shell<'_>, host: &str, when: When) -> Result<(), Failure> {
    let query = match when {
        When::Time(time_ms) => ("at_unix_ms", time_ms),
        When::Ago(period) => ("at_unix_ms", unix_millis().saturating_sub(period.millis())),
        When::Index(index) => ("at_index", index),
    };
    let active: HostActive = shell.client.get(&format!("/hosts/{}/active", segment(host)), &[query]).await?;
    shell.output.text(&active, host, || past_text(&active))
}

fn past_text(active: &HostActive) -> String {
    let written = active
        .time_unix_ms
        .and_then(|time_ms| jiff::Timestamp::from_millisecond(time_ms.try_into().ok()?).ok());
    let mut text = match written {
        Some(time) => format!("{} after entry {}, of {time}:\n", active.host, active.index),
        None => format!("{} before the log's first entry:\n", active.host),
    };
    for of in &active.services {
        let by = of.activation.as_deref().map_or_else(String::new, |id| format!(", activation {id}"));
        let _ = writeln!(text, "  {}@{}: release {}{by}", of.service, of.version, of.release);
    }
    if active.services.is_empty() {
        text.push_str("  no service had a document\n");
    }
    text
}

fn text(detail: &HostDetail) -> String {
    let host = &detail.host;
    let now = unix_millis();
    let mut text = format!("Host:      {}\n", host.name);
    let seen = host.seen_unix_ms.map_or("never".to_owned(), |then| format!("{} ago", ago(then, now)));
    let labels: Vec<String> = host.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let state = if host.connected { "connected" } else { "silent" };
    for (title, value) in [
        ("Beacon", format!("{state}, heard {seen}, version {}", host.build)),
        ("Zone", host.zone.clone()),
        ("Labels", labels.join(", ")),
        ("Workloads", host.workloads.join(", ")),
        ("Envoys", host.clients.to_string()),
    ] {
        let _ = writeln!(text, "{:<10} {value}", format!("{title}:"));
    }
    text.push_str("\nServices with a document:\n");
    for held in &detail.releases {
        let release = held.release.as_deref().unwrap_or("default");
        let wanted = match &held.wanted {
            Some(wanted) if Some(wanted) != held.release.as_ref() => format!(", should have {wanted}"),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "  {}: {release}, {} for {}{wanted}",
            held.service,
            word(&held.state),
            ago(held.since_unix_ms, now)
        );
        if let Some(rejection) = &held.rejection {
            let _ = writeln!(
                text,
                "    {} refused {}: {}",
                rejection.client, rejection.resource, rejection.error
            );
        }
    }
    text.push_str("\nWhat its Envoys made of each type:\n");
    for of in host.types.iter().flatten() {
        let name = of.type_url.rsplit('.').next().unwrap_or_default();
        let _ = writeln!(text, "  {} {name}: {}", of.client, word(&of.state));
        if !of.error.is_empty() {
            let _ = writeln!(text, "    {}", of.error);
        }
        for kept in &of.quarantined {
            let _ = writeln!(text, "    kept from it: {kept}");
        }
    }
    text
}
