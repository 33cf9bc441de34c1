//! `part`: what platform and security say about services.

use reqwest::Method;
use tower_common::api::{Changed, YAML, part::PartEdited};

use super::{Shell, document, segment};
use crate::{
    cli::{self, Owner, PartName},
    client::Body,
    failure::Failure,
    findings, output,
};

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Part) -> Result<(), Failure> {
    match command {
        cli::Part::Get(name) => output::line(shell.client.get_text(&path(name)?, YAML).await?.trim_end()),
        cli::Part::Set { name, file, reason, if_match } => {
            let file = document::read(file)?;
            let mut query = vec![("file", file.name.as_str())];
            query.extend(reason.as_deref().map(|reason| ("reason", reason)));
            let body = Body::Document(&file.text);
            let edited: PartEdited =
                shell.client.change(Method::PUT, &path(name)?, body, if_match.as_deref(), &query).await?;
            for finding in &edited.findings {
                output::note(&findings::line(finding));
            }
            output::note("services take it in with their next activation");
            let revision = edited.revision.to_string();
            shell.output.text(&edited, &revision, || revision.clone())
        }
        cli::Part::Delete { name, reason, yes } => {
            output::confirm("The part goes, and services lose it with their next activation. Go on?", *yes)?;
            let query: Vec<_> = reason.as_deref().map(|reason| ("reason", reason)).into_iter().collect();
            shell.client.change::<Changed>(Method::DELETE, &path(name)?, Body::Nothing, None, &query).await?;
            Ok(())
        }
    }
}

fn path(name: &PartName) -> Result<String, Failure> {
    let owner = match name.owner {
        Owner::Platform => "platform",
        Owner::Security => "security",
        Owner::Service => {
            return Err(Failure::usage("a service's own part is its versions").next("pcloud version --help"));
        }
    };
    Ok(match &name.service {
        Some(service) => format!("/{owner}/{}", segment(service)),
        None => format!("/{owner}"),
    })
}
