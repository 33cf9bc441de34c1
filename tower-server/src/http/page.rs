//! The front page: in a few lines of text, what is wrong.

use std::fmt::Write;

use crate::{
    fanout::beacons::BeaconState,
    sources::{SourceReport, report::HoldReport},
    store_actor::StoreSummary,
};

/// Problems listed per source; the rest are counted.
const PROBLEMS: usize = 20;

/// The page.
pub(super) fn render(store: &StoreSummary, sources: &[SourceReport], beacons: &[BeaconState]) -> String {
    let mut page = String::new();
    write_page(&mut page, store, sources, beacons).expect("a string takes all");
    page
}

fn write_page(
    page: &mut String,
    store: &StoreSummary,
    sources: &[SourceReport],
    beacons: &[BeaconState],
) -> std::fmt::Result {
    let complete = if store.complete { "complete" } else { "NOT COMPLETE: a source is still loading" };
    writeln!(page, "Tower {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(page, "\nstore     revision {}, {} resources, {complete}", store.revision, store.resources)?;
    if store.clashes > 0 {
        writeln!(page, "          {} changes refused: another source owns the key", store.clashes)?;
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
    for beacon in beacons {
        for rejection in &beacon.rejections {
            writeln!(
                page,
                "            {}: its client {} rejected {} {}: {}",
                beacon.node_id, rejection.client, rejection.type_url, rejection.version, rejection.error
            )?;
        }
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
