//! The front page: in a few lines of text, what is wrong.

use std::fmt::Write;

use tower_common::{clock, tls::TlsStatus};

use super::serving::Serving;
use crate::{
    fanout::beacons::Beacons,
    registry::{LogState, Status},
    sources::{SourceReport, report::HoldReport},
    store_actor::StoreSummary,
};

/// Problems listed per source; the rest are counted.
const PROBLEMS: usize = 20;

/// Services listed of a kind; the rest are counted.
const SERVICES: usize = 20;

/// What the page is made of.
pub(super) struct Contents<'a> {
    pub(super) store: StoreSummary,
    pub(super) serving: Serving,
    pub(super) warn_services: usize,
    pub(super) log: Status,
    pub(super) sources: Vec<SourceReport>,
    pub(super) beacons: &'a Beacons,
    pub(super) tls: Option<TlsStatus>,
    pub(super) ui: bool,
}

/// The page.
pub(super) fn render(contents: &Contents<'_>) -> String {
    let mut page = String::new();
    write_page(&mut page, contents).expect("a string takes all");
    page
}

fn write_page(page: &mut String, contents: &Contents<'_>) -> std::fmt::Result {
    let Contents { store, serving, warn_services, log, sources, beacons, tls, ui } = contents;
    let complete = if store.complete { "complete" } else { "NOT COMPLETE: a source is still loading" };
    writeln!(page, "Tower {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(page, "\nstore     revision {}, {} resources, {complete}", store.revision, store.resources)?;
    if store.clashes > 0 {
        writeln!(page, "          {} changes refused: another source owns the key", store.clashes)?;
    }
    if store.oversized > 0 {
        writeln!(page, "          {} resources refused: they are too large; see the log", store.oversized)?;
    }
    write_serving(page, serving, *warn_services)?;
    write_log(page, log)?;
    for source in sources {
        writeln!(page, "\nsource    {} ({})", source.id, source.url)?;
        write!(page, "          {}", source.state)?;
        if let Some(reason) = &source.reason {
            write!(page, ": {reason}")?;
        }
        writeln!(page, "\n          {} services, {} endpoints", source.services, source.endpoints)?;
        source.holds.iter().try_for_each(|hold| write_hold(page, hold))?;
        if source.problem_count > 0 {
            writeln!(page, "          {} problems:", source.problem_count)?;
        }
        for problem in source.problems.iter().take(PROBLEMS) {
            writeln!(page, "            {}: {}", problem.path, problem.reason)?;
        }
    }
    writeln!(page, "\nbeacons   {} connected", beacons.len())?;
    for beacon in beacons.list() {
        for rejection in &beacon.rejections {
            writeln!(
                page,
                "            {}: its client {} rejected {} {}: {}",
                beacon.node_id, rejection.client, rejection.type_url, rejection.version, rejection.error
            )?;
        }
    }
    let refused = beacons.refusals().list();
    if !refused.is_empty() {
        writeln!(page, "\nrefused   the last {} that could not connect:", refused.len())?;
    }
    for refusal in refused.iter().take(PROBLEMS) {
        let ago = clock::unix_millis().saturating_sub(refusal.last_unix_ms) / 1000;
        writeln!(page, "            {} s ago, {} times: {refusal}", ago, refusal.count)?;
    }
    if let Some(tls) = tls {
        writeln!(page, "\ntls       {tls}")?;
    }
    if !ui {
        writeln!(
            page,
            "\nui        not in this Tower: run scripts/build-ui, and build it again (needs Node)"
        )?;
    }
    writeln!(
        page,
        "\nmore      /api/v1/sources  /api/v1/holds  /api/v1/quarantines  /api/v1/beacons  /api/v1/services  \
         /api/v1/services/NAME/endpoints  /metrics  /healthz  /readyz"
    )
}

fn write_serving(page: &mut String, serving: &Serving, warn_services: usize) -> std::fmt::Result {
    let served = serving.served();
    writeln!(page, "\nserved    {served} services")?;
    if served > warn_services {
        writeln!(
            page,
            "          WARNING: {served} services are more than {warn_services}, and each Envoy is served all of \
             them, at about 75 KiB each"
        )?;
    }
    let watched = serving.watched().map(|summary| format!("{} ({})", summary.service, summary.endpoints));
    write_names(page, "watched and NOT SERVED, with their endpoints", watched)?;
    let unknown = serving.unknown.iter().cloned();
    write_names(page, "named by --serve, and not known to any source", unknown)
}

/// How the event log is, and which services are not published as it says.
fn write_log(page: &mut String, log: &Status) -> std::fmt::Result {
    write!(page, "\nlog       read up to entry {}", log.index)?;
    match log.state {
        LogState::Live => writeln!(page)?,
        LogState::Loading if log.reason.is_empty() => writeln!(page, "; NOT READ YET")?,
        _ => writeln!(page, "; NOT FOLLOWED, and nothing can be changed: {}", log.reason)?,
    }
    for (service, problem) in log.problems.iter().take(PROBLEMS) {
        writeln!(page, "          {service} is NOT PUBLISHED as it says: {problem}")?;
    }
    match log.problems.len().checked_sub(PROBLEMS) {
        Some(more) if more > 0 => writeln!(page, "          and {more} more services"),
        _ => Ok(()),
    }
}

fn write_names(page: &mut String, what: &str, names: impl Iterator<Item = String>) -> std::fmt::Result {
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    let listed = names.iter().take(SERVICES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if names.len() > SERVICES { ", …" } else { "" };
    writeln!(page, "          {} {what}: {listed}{more}", names.len())
}

fn write_hold(page: &mut String, hold: &HoldReport) -> std::fmt::Result {
    let what = hold.service.as_ref().map_or("the whole source".to_owned(), |service| format!("{service:?}"));
    writeln!(
        page,
        "          HELD {}: {what} went from {} to {} endpoints; {} stay published for now; \
         let them go: POST /api/v1/holds/{}/release",
        hold.id, hold.largest, hold.left, hold.endpoint_count, hold.id
    )
}
