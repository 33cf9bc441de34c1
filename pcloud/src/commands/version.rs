//! `version`: documents as they were uploaded.

use reqwest::Method;
use serde_json::json;
use tower_common::api::{
    Changed, YAML,
    version::{Uploaded, Versions},
};
use tower_common::clock::unix_millis;

use super::{Shell, document, paging::pages, segment};
use crate::{
    cli,
    client::Body,
    failure::Failure,
    findings,
    output::{self, Cell, Table, Tone},
    period::ago,
    reference::VersionRef,
};

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Version) -> Result<(), Failure> {
    match command {
        cli::Version::Upload { file, reason, if_match } => {
            let file = document::read(file)?;
            let service = document::service_of(&file)?;
            let path = format!("/services/{}/versions", segment(&service));
            let mut query = vec![("file", file.name.as_str())];
            query.extend(reason.as_deref().map(|reason| ("reason", reason)));
            let body = Body::Document(&file.text);
            let uploaded: Uploaded =
                shell.client.change(Method::POST, &path, body, if_match.as_deref(), &query).await?;
            for finding in &uploaded.findings {
                output::note(&findings::line(finding));
            }
            output::note(if uploaded.existing {
                "this document was uploaded before; nothing has changed"
            } else {
                "uploaded; it changes nothing until it is activated"
            });
            let id = uploaded.version.clone();
            shell.output.text(&uploaded, &id, || id.clone())
        }
        cli::Version::List { service } => list(shell, service).await,
        cli::Version::Get { version } => {
            let path = format!("/services/{}/versions/{}", segment(&version.service), version.number);
            output::line(shell.client.get_text(&path, YAML).await?.trim_end())
        }
        cli::Version::Approve { version, reason } => {
            change(shell, version, "approve", reason.as_deref(), "approved").await
        }
        cli::Version::Retire { version, reason } => {
            change(shell, version, "retire", reason.as_deref(), "retired").await
        }
    }
}

async fn change(
    shell: &Shell<'_>,
    version: &VersionRef,
    verb: &str,
    reason: Option<&str>,
    done: &str,
) -> Result<(), Failure> {
    let path = format!("/services/{}/versions/{}/{verb}", segment(&version.service), version.number);
    let body = json!({ "reason": reason });
    shell.client.change::<Changed>(Method::POST, &path, Body::Json(&body), None, &()).await?;
    output::note(&format!("{version} is {done}"));
    Ok(())
}

async fn list(shell: &Shell<'_>, service: &str) -> Result<(), Failure> {
    let mut all = Versions { versions: Vec::new(), next: None };
    let path = format!("/services/{}/versions", segment(service));
    pages(&shell.client, &path, &[], None, |page: Versions| {
        let items = page.versions.len();
        all.versions.extend(page.versions);
        (page.next, items)
    })
    .await?;
    shell.output.print(
        &all,
        |wide| {
            let mut titles = vec!["VERSION", "STATE", "APPROVED", "AUTHOR", "AGE", "REASON"];
            if wide {
                titles.push("HASH");
            }
            let mut table = Table::new(&titles);
            let now = unix_millis();
            for version in &all.versions {
                let state = match (version.active, version.retired) {
                    (true, _) => Cell::toned("active", Tone::Good),
                    (false, true) => Cell::toned("retired", Tone::Warn),
                    (false, false) => "inactive".into(),
                };
                let mut row = vec![
                    Cell::from(version.version.as_str()),
                    state,
                    if version.approved { "yes" } else { "no" }.into(),
                    version.author.as_str().into(),
                    ago(version.uploaded_unix_ms, now).into(),
                    version.reason.as_deref().unwrap_or("-").into(),
                ];
                if wide {
                    row.push(version.hash.as_str().into());
                }
                table.row(row);
            }
            table
        },
        || all.versions.iter().map(|version| version.version.clone()).collect(),
    )
}
