//! `plan` and `diff`: what would change, before it does.

use std::{fmt::Write, io::Write as _, process::Command};

use reqwest::Method;
use serde_json::Value;
use similar::TextDiff;
use tower_common::api::{
    YAML,
    plan::{Change, Diff, Effect, Plan, PlanRequest},
    problem::Severity,
    service::ServiceDetail,
};

use super::{Shell, document, segment, word};
use crate::{
    cli::{self, Subject},
    client::Body,
    failure::{Exit, Failure},
    findings, output,
};

/// What is looked at: the service, and a version or a document.
struct Looked {
    service: String,
    request: PlanRequest,
}

fn look(subject: &Subject) -> Result<Looked, Failure> {
    match (&subject.version, &subject.file) {
        (Some(version), _) => Ok(Looked {
            service: version.service.clone(),
            request: PlanRequest { version: Some(version.number), ..PlanRequest::default() },
        }),
        (None, Some(path)) => {
            let file = document::read(path)?;
            let service = document::service_of(&file)?;
            let request =
                PlanRequest { document: Some(file.text), file: Some(file.name), ..PlanRequest::default() };
            Ok(Looked { service, request })
        }
        (None, None) => Err(Failure::usage("of what? Give a version, such as web@3, or --file")),
    }
}

async fn ask(shell: &Shell<'_>, looked: &Looked) -> Result<Plan, Failure> {
    let path = format!("/services/{}/plan", segment(&looked.service));
    let body = serde_json::to_value(&looked.request).map_err(|error| Failure::new(Exit::Failed, error))?;
    shell.client.change(Method::POST, &path, Body::Json(&body), None, &()).await
}

pub(super) async fn plan(shell: &Shell<'_>, command: &cli::Plan) -> Result<(), Failure> {
    let mut looked = look(&command.subject)?;
    looked.request.audience = Some(command.audience.audience.join("&"));
    let plan = ask(shell, &looked).await?;
    shell.output.text(&plan, &plan.service, || text(&plan))?;
    if plan.findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Err(Failure::new(Exit::Invalid, "it cannot be activated as it is"));
    }
    let next = match plan.version {
        Some(version) => format!(
            "pcloud activate {}@{version} --if-match {} --audience '{}' --wait",
            plan.service, plan.index, plan.audience
        ),
        None => "pcloud version upload -f FILE".to_owned(),
    };
    output::note(&format!("next: {next}"));
    Ok(())
}

fn text(plan: &Plan) -> String {
    let mut text = String::new();
    for finding in &plan.findings {
        let _ = writeln!(text, "{}", findings::line(finding));
    }
    if plan.release.is_none() {
        return text;
    }
    let _ = writeln!(text, "{} hosts would change, of the audience {}", plan.hosts.count, plan.audience);
    for name in plan.hosts.names.iter().take(20) {
        let _ = writeln!(text, "  {name}");
    }
    if plan.hosts.count > 20 {
        let _ = writeln!(text, "  … and {} more (-o json has them)", plan.hosts.count - 20);
    }
    for group in &plan.from {
        let from = group
            .release
            .as_ref()
            .map_or("no document".to_owned(), |release| format!("{}@{}", plan.service, release.version));
        let worst = group.effects.iter().map(|effect| effect.effect).max().unwrap_or(Effect::NoDrain);
        let _ = writeln!(text, "\n{} hosts with {from}: {}", group.hosts, effect(worst));
        text.push_str(&changes(&group.changes));
        for of in &group.effects {
            let why = of.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let _ =
                writeln!(text, "  {} {} {}: {}{why}", word(&of.action), of.kind, of.name, effect(of.effect));
        }
    }
    text
}

const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::NoDrain => "no drain",
        Effect::PoolsReset => "pools reset",
        Effect::ConnectionsDrained => "connections drained",
    }
}

/// `~ field: before → after`, `+` for what is new, `-` for what is gone.
fn changes(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let _ = match (&change.before, &change.after) {
            (None, after) => writeln!(text, "  + {}: {}", change.field, value(after.as_ref())),
            (before, None) => writeln!(text, "  - {}: {}", change.field, value(before.as_ref())),
            (before, after) => {
                writeln!(text, "  ~ {}: {} → {}", change.field, value(before.as_ref()), value(after.as_ref()))
            }
        };
    }
    text
}

fn value(value: Option<&Value>) -> String {
    value.map(Value::to_string).unwrap_or_default()
}

/// Prints what differs. It succeeds if nothing does.
pub(super) async fn diff(shell: &Shell<'_>, command: &cli::Diff) -> Result<(), Failure> {
    let looked = look(&command.subject)?;
    let path = format!("/services/{}", segment(&looked.service));
    let before = match command.against {
        Some(number) => Some(number),
        None => shell.client.get::<ServiceDetail>(&path, &()).await?.service.active.map(|of| of.version),
    };
    if let Some(tool) = &command.tool {
        return with_tool(shell, &looked, before, tool).await;
    }
    let (data, found) = match (looked.request.version, before) {
        (Some(to), Some(from)) => {
            let query = [("from", from.to_string()), ("to", to.to_string())];
            let diff: Diff = shell.client.get(&format!("{path}/diff"), &query).await?;
            (serde_json::to_value(&diff), diff.changes)
        }
        _ if command.against.is_some() => return with_tool(shell, &looked, before, "").await,
        _ => {
            // What is not uploaded, or has nothing to be compared with, is compared with what is active.
            let plan = ask(shell, &looked).await?;
            let errors: Vec<String> = plan
                .findings
                .iter()
                .filter(|finding| finding.severity == Severity::Error)
                .map(findings::line)
                .collect();
            if !errors.is_empty() {
                return Err(Failure::new(Exit::Invalid, errors.join("\n")));
            }
            let found: Vec<Change> = plan.from.into_iter().flat_map(|group| group.changes).collect();
            (serde_json::to_value(&found), found)
        }
    };
    let data = data.map_err(|error| Failure::new(Exit::Failed, error))?;
    shell.output.text(&data, &looked.service, || changes(&found).trim_end().to_owned())?;
    if found.is_empty() { Ok(()) } else { Err(Failure::new(Exit::Failed, "")) }
}

/// Shows how the two texts differ, by a tool or in the unified format.
async fn with_tool(
    shell: &Shell<'_>,
    looked: &Looked,
    before: Option<u64>,
    tool: &str,
) -> Result<(), Failure> {
    let path = |number: u64| format!("/services/{}/versions/{number}", segment(&looked.service));
    let old = match before {
        Some(number) => shell.client.get_text(&path(number), YAML).await?,
        None => String::new(),
    };
    let new = match (&looked.request.document, looked.request.version) {
        (Some(text), _) => text.clone(),
        (None, Some(number)) => shell.client.get_text(&path(number), YAML).await?,
        (None, None) => String::new(),
    };
    if old == new {
        return Ok(());
    }
    let names = (
        before.map_or("nothing".to_owned(), |number| format!("{}@{number}", looked.service)),
        looked.request.version.map_or_else(
            || looked.request.file.clone().unwrap_or_default(),
            |number| format!("{}@{number}", looked.service),
        ),
    );
    if tool.is_empty() {
        let difference = TextDiff::from_lines(old.as_str(), new.as_str());
        let text = difference.unified_diff().header(&names.0, &names.1).to_string();
        output::line(text.trim_end())?;
        return Err(Failure::new(Exit::Failed, ""));
    }
    let failed = |error: std::io::Error| Failure::usage(format!("{tool}: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let (left, right) = (folder.path().join("before.yaml"), folder.path().join("after.yaml"));
    for (file, text) in [(&left, &old), (&right, &new)] {
        std::fs::File::create(file).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
    }
    let mut words = tool.split_whitespace();
    let program = words.next().ok_or_else(|| Failure::usage("--tool is empty"))?;
    let status = Command::new(program).args(words).arg(&left).arg(&right).status().map_err(failed)?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(Failure::new(Exit::Failed, "")),
        _ => Err(Failure::usage(format!("{tool} failed: {status}"))),
    }
}
