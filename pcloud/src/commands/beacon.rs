//! `beacon`: the hosts, by what their Envoys have accepted.

use serde_json::json;
use tower_common::api::{
    config::HostConfig,
    fleet::{ClientType, Host, HostList, Lacking, TypeState},
};
use tower_common::clock::unix_millis;

use super::{Shell, paging::pages, segment, word};
use crate::{
    cli::{self, Served},
    failure::{Exit, Failure},
    output::{self, Cell, Table, Tone},
    period::ago,
};

/// The types, in the order in which they are sent, and their columns.
const TYPES: [(&str, &str); 5] = [
    ("CDS", "envoy.config.cluster.v3.Cluster"),
    ("EDS", "envoy.config.endpoint.v3.ClusterLoadAssignment"),
    ("LDS", "envoy.config.listener.v3.Listener"),
    ("RDS", "envoy.config.route.v3.RouteConfiguration"),
    ("SDS", "envoy.extensions.transport_sockets.tls.v3.Secret"),
];

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Beacon) -> Result<(), Failure> {
    match command {
        cli::Beacon::Status { selector, search } => {
            status(shell, selector.as_deref(), search.as_deref()).await
        }
        cli::Beacon::Config { host, what } => config(shell, host, *what).await,
        cli::Beacon::Lacking { release } => lacking(shell, release).await,
    }
}

async fn status(shell: &Shell<'_>, selector: Option<&str>, search: Option<&str>) -> Result<(), Failure> {
    let wanted = labels(selector)?;
    let mut query = vec![("include", "types".to_owned())];
    query.extend(search.map(|search| ("search", search.to_owned())));
    let mut hosts = Vec::new();
    pages(&shell.client, "/hosts", &query, None, |page: HostList| {
        let items = page.hosts.len();
        hosts.extend(page.hosts);
        (page.next, items)
    })
    .await?;
    hosts.retain(|host| {
        wanted.iter().all(|(key, value)| match key.as_str() {
            "zone" => host.zone == *value,
            key => host.labels.get(key) == Some(value),
        })
    });
    shell.output.print(
        &json!({ "hosts": hosts }),
        |wide| table(&hosts, wide),
        || hosts.iter().map(|host| host.name.clone()).collect(),
    )
}

fn labels(selector: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
    let terms = selector.into_iter().flat_map(|selector| selector.split(','));
    terms
        .map(|term| {
            let (key, value) = term.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                Failure::usage(format!("--selector: {term:?} is no label; write key=value"))
            })?;
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect()
}

fn table(hosts: &[Host], wide: bool) -> Table {
    let mut titles = vec!["HOST", "ZONE", "BEACON", "ENVOYS"];
    titles.extend(TYPES.iter().map(|(title, _)| *title));
    titles.extend(["ACCEPTED", "LACKING", "SEEN"]);
    if wide {
        titles.extend(["BUILD", "WORKLOADS", "REJECTED"]);
    }
    let mut table = Table::new(&titles);
    let now = unix_millis();
    for host in hosts {
        let types = host.types.as_deref().unwrap_or_default();
        let connected = if host.connected {
            Cell::toned("connected", Tone::Good)
        } else {
            Cell::toned("silent", Tone::Bad)
        };
        let mut cells =
            vec![host.name.as_str().into(), host.zone.as_str().into(), connected, host.clients.into()];
        cells.extend(TYPES.iter().map(|(_, message)| worst(types, message)));
        cells.push(host.accepted.into());
        cells.push(match host.lacking {
            0 => "0".into(),
            number => Cell::toned(number.to_string(), Tone::Bad),
        });
        cells.push(host.seen_unix_ms.map_or("-".to_owned(), |then| ago(then, now)).into());
        if wide {
            let rejected = types.iter().find(|of| !of.error.is_empty());
            cells.push(host.build.as_str().into());
            cells.push(host.workloads.join(",").into());
            cells.push(rejected.map_or("-".to_owned(), |of| format!("{}: {}", of.client, of.error)).into());
        }
        table.row(cells);
    }
    table
}

/// How the client that is worst off stands with a type.
fn worst(types: &[ClientType], message: &str) -> Cell {
    let states = types.iter().filter(|of| of.type_url.ends_with(message)).map(|of| of.state);
    let rank = |state: &TypeState| match state {
        TypeState::Rejected => 4,
        TypeState::NeverAccepted => 3,
        TypeState::Pending => 2,
        TypeState::Synced => 1,
        TypeState::NotSent => 0,
    };
    match states.max_by_key(rank) {
        Some(TypeState::Rejected) => Cell::toned("NACKED", Tone::Bad),
        Some(TypeState::NeverAccepted) => Cell::toned("NEVER ACKED", Tone::Bad),
        Some(TypeState::Pending) => Cell::toned("STALE", Tone::Warn),
        Some(TypeState::Synced) => Cell::toned("SYNCED", Tone::Good),
        Some(TypeState::NotSent) | None => "NOT SENT".into(),
    }
}

async fn config(shell: &Shell<'_>, host: &str, what: Option<Served>) -> Result<(), Failure> {
    let path = format!("/hosts/{}/config", segment(host));
    let type_word = what.map(|what| match what {
        Served::Listeners => "listeners",
        Served::Routes => "routes",
        Served::Clusters => "clusters",
        Served::Endpoints => "endpoints",
        Served::Secrets => "secrets",
    });
    let query: Vec<_> = type_word.map(|word| ("what", word)).into_iter().collect();
    let config: HostConfig = shell.client.get(&path, &query).await?;
    shell.output.print(
        &config,
        |_| {
            let mut table = Table::new(&["TYPE", "NAME", "VERSION", "BYTES"]);
            for resource in &config.resources {
                table.row([
                    Cell::from(word(&resource.what)),
                    resource.name.as_str().into(),
                    resource.version.as_str().into(),
                    resource.bytes.into(),
                ]);
            }
            table
        },
        || config.resources.iter().map(|resource| resource.name.clone()).collect(),
    )
}

async fn lacking(shell: &Shell<'_>, release: &str) -> Result<(), Failure> {
    let path = format!("/releases/{}/lacking", segment(release));
    let mut all: Option<Lacking> = None;
    pages(&shell.client, &path, &[], None, |page: Lacking| {
        let (next, items) = (page.next.clone(), page.lacking.len());
        match &mut all {
            Some(all) => all.lacking.extend(page.lacking),
            None => all = Some(page),
        }
        (next, items)
    })
    .await?;
    let Some(mut all) = all else {
        return Err(Failure::new(Exit::Failed, format!("nothing is known of the release {release}")));
    };
    all.next = None;
    output::note(&format!(
        "{}@{} ({release}): {} of {} hosts have accepted it",
        all.service, all.version, all.hosts.accepted, all.hosts.total
    ));
    shell.output.print(
        &all,
        |_| {
            let mut table = Table::new(&["HOST", "WHY", "SINCE", "ENVOY", "RESOURCE", "ERROR"]);
            let now = unix_millis();
            for lack in &all.lacking {
                let rejection = lack.rejection.as_ref();
                table.row([
                    Cell::from(lack.host.as_str()),
                    Cell::toned(word(&lack.why), Tone::Bad),
                    ago(lack.since_unix_ms, now).into(),
                    rejection.map_or("-", |rejection| &rejection.client).into(),
                    rejection.map_or("-", |rejection| &rejection.resource).into(),
                    rejection.map_or("-", |rejection| &rejection.error).into(),
                ]);
            }
            table
        },
        || all.lacking.iter().map(|lack| lack.host.clone()).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_labels_that_all_have_to_fit() {
        let told = labels(Some("team=ads,zone=a")).unwrap();
        assert_eq!(told, [("team".into(), "ads".into()), ("zone".into(), "a".into())]);
        assert!(labels(None).unwrap().is_empty());
        assert!(labels(Some("team")).unwrap_err().message.contains("\"team\""));
    }
}
