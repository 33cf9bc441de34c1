//! `source` and `guard`: where facts come from, and what is held back or not believed.

use reqwest::Method;
use serde_json::json;
use tower_common::api::source::{Adopt, Adopted, Holds, Quarantines, Released, Source, SourceState, Sources};
use tower_common::clock::unix_millis;

use super::{Shell, segment, word};
use crate::{
    cli,
    client::Body,
    failure::{Exit, Failure},
    output::{self, Cell, Table, Tone},
    period::ago,
};

pub(super) async fn source(shell: &Shell<'_>, command: &cli::Source) -> Result<(), Failure> {
    match command {
        cli::Source::List => {
            let sources: Sources = shell.client.get("/sources", &()).await?;
            shell.output.print(
                &sources,
                |wide| sources_table(&sources.sources, wide),
                || sources.sources.iter().map(|source| source.id.clone()).collect(),
            )
        }
        cli::Source::Quarantines => {
            let all: Quarantines = shell.client.get("/quarantines", &()).await?;
            shell.output.print(
                &all,
                |_| {
                    let mut table = Table::new(&["SOURCE", "FOUND", "INDEX", "SERVICES", "WHY"]);
                    for quarantine in &all.quarantines {
                        table.row([
                            Cell::from(quarantine.source.as_str()),
                            quarantine.incarnation.as_str().into(),
                            quarantine.index.into(),
                            quarantine.services.into(),
                            quarantine.reason.as_str().into(),
                        ]);
                    }
                    table
                },
                || all.quarantines.iter().map(|quarantine| quarantine.source.clone()).collect(),
            )
        }
        cli::Source::Adopt { source, incarnation, reason } => {
            let request = Adopt { incarnation: Some(incarnation.clone()), reason: Some(reason.clone()) };
            let body = serde_json::to_value(&request).map_err(|error| Failure::new(Exit::Failed, error))?;
            let path = format!("/sources/{}/adopt", segment(source));
            let adopted: Adopted =
                shell.client.change(Method::POST, &path, Body::Json(&body), None, &()).await?;
            output::note(&format!("{source} is believed again, at {}", adopted.position.index));
            Ok(())
        }
    }
}

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Guard) -> Result<(), Failure> {
    match command {
        cli::Guard::List => {
            let all: Holds = shell.client.get("/holds", &()).await?;
            shell.output.print(
                &all,
                |_| {
                    let mut table =
                        Table::new(&["HOLD", "SOURCE", "SERVICE", "HELD", "OF", "SINCE", "ENDS IN"]);
                    let now = unix_millis();
                    for hold in &all.holds {
                        table.row([
                            Cell::from(hold.id.as_str()),
                            hold.source.as_str().into(),
                            hold.service.as_deref().unwrap_or("(all)").into(),
                            hold.endpoint_count.into(),
                            hold.largest.into(),
                            ago(hold.since_unix_ms, now).into(),
                            ago(now, hold.ends_unix_ms).into(),
                        ]);
                    }
                    table
                },
                || all.holds.iter().map(|hold| hold.id.clone()).collect(),
            )
        }
        cli::Guard::Release { hold, reason } => {
            let path = format!("/holds/{}/release", segment(hold));
            let body = json!({ "reason": reason });
            let released: Released =
                shell.client.change(Method::POST, &path, Body::Json(&body), None, &()).await?;
            output::note(&format!("{} endpoints are let go", released.released_endpoints));
            Ok(())
        }
    }
}

fn sources_table(sources: &[Source], wide: bool) -> Table {
    let mut titles = vec!["SOURCE", "STATE", "SINCE", "SERVICES", "ENDPOINTS", "PROBLEMS", "HELD", "WHY"];
    if wide {
        titles.extend(["URL", "INDEX"]);
    }
    let mut table = Table::new(&titles);
    let now = unix_millis();
    for source in sources {
        let tone = match source.state {
            SourceState::Live => Tone::Good,
            SourceState::Loading | SourceState::Stale => Tone::Warn,
            SourceState::Lost => Tone::Bad,
        };
        let held: u64 = source.holds.iter().map(|hold| hold.endpoint_count).sum();
        let mut row = vec![
            Cell::from(source.id.as_str()),
            Cell::toned(word(&source.state), tone),
            ago(source.since_unix_ms, now).into(),
            source.services.into(),
            source.endpoints.into(),
            source.problem_count.into(),
            held.into(),
            source.reason.as_deref().unwrap_or("-").into(),
        ];
        if wide {
            row.push(source.url.as_str().into());
            row.push(source.position.as_ref().map_or(0, |position| position.index).into());
        }
        table.row(row);
    }
    table
}
