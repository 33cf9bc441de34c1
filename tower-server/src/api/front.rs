//! The front page: in a few lines of text, what is wrong.

use std::fmt::Write;

use tower_common::{clock, tls::TlsStatus};

use crate::{
    fanout::beacons::Beacons,
    sources::{SourceReport, report::HoldReport},
    store_actor::StoreSummary,
};

/// Problems listed per source; the rest are counted.
const PROBLEMS: usize = 20;

/// The page.
pub(super) fn render(
    store: &StoreSummary,
    sources: &[SourceReport],
    beacons: &Beacons,
    tls: Option<&TlsStatus>,
) -> String {
    let mut page = String::new();
    write_page(&mut page, store, sources, beacons, tls).expect("a string takes all");
    page
}

fn write_page(
    page: &mut String,
    store: &StoreSummary,
    sources: &[SourceReport],
    beacons: &Beacons,
    tls: Option<&TlsStatus>,
) -> std::fmt::Result {
    let complete = if store.complete { "complete" } else { "NOT COMPLETE: a source is still loading" };
    writeln!(page, "Tower {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(page, "\nstore     revision {}, {} resources, {complete}", store.revision, store.resources)?;
    if store.clashes > 0 {
        writeln!(page, "          {} changes refused: another source owns the key", store.clashes)?;
    }
    if store.oversized > 0 {
        writeln!(page, "          {} resources refused: they are too large; see the log", store.oversized)?;
    }
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
    writeln!(
        page,
        "\nmore      /api/v1/sources  /api/v1/holds  /api/v1/quarantines  /api/v1/beacons  /api/v1/services  \
         /api/v1/services/NAME/endpoints  /metrics  /healthz  /readyz"
    )
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
