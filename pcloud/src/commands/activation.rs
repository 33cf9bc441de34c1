//! Activating, and staying until it has landed everywhere or is back.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_common::api::{
    activation::{Activation, ActivationRequest, Activations, RollbackRequest, Started, State},
    plan::Change,
};
use tower_common::clock::unix_millis;

use super::{Shell, paging::pages, segment, word};
use crate::{
    cli::{self, Waiting},
    client::Body,
    failure::{Exit, Failure},
    output::{self, Cell, Table, Tone},
    period::{Period, ago},
};

/// How often Tower is asked how it stands.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Fields that are named when a release was rejected.
const MAX_CHANGES: usize = 10;

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Activation) -> Result<(), Failure> {
    match command {
        cli::Activation::List { service } => list(shell, service).await,
        cli::Activation::Get { activation } => {
            let activation = get(shell, activation).await?;
            print(shell, &activation)
        }
        cli::Activation::Wait { activation, timeout } => {
            let activation = get(shell, activation).await?;
            wait(shell, activation, *timeout).await
        }
        cli::Activation::Abort { activation, reason } => {
            let path = format!("/activations/{}/abort", segment(activation));
            let body = json!({ "reason": reason });
            let aborted: Started =
                shell.client.change(Method::POST, &path, Body::Json(&body), None, &()).await?;
            if let Some(note) = &aborted.note {
                output::note(note);
            }
            aborted.activation.map_or(Ok(()), |aborted| print(shell, &aborted))
        }
    }
}

pub(super) async fn activate(shell: &Shell<'_>, command: &cli::Activate) -> Result<(), Failure> {
    let request = ActivationRequest {
        version: command.version.number,
        audience: Some(command.audience.audience.join("&")),
        steps: None,
        at_once: command.at_once,
        reason: command.reason.clone(),
        ttl_seconds: command.ttl.map(Period::seconds),
        again: command.again,
    };
    let path = format!("/services/{}/activations", segment(&command.version.service));
    start(shell, Method::POST, &path, &request, command.if_match.as_deref(), &command.waiting).await
}

pub(super) async fn rollback(shell: &Shell<'_>, command: &cli::Rollback) -> Result<(), Failure> {
    let request = RollbackRequest { to: command.to, reason: command.reason.clone() };
    let path = format!("/services/{}/rollback", segment(&command.service));
    start(shell, Method::POST, &path, &request, None, &command.waiting).await
}

/// Starts an activation, and stays if that is wanted.
pub(super) async fn start(
    shell: &Shell<'_>,
    method: Method,
    path: &str,
    request: &impl serde::Serialize,
    if_match: Option<&str>,
    waiting: &Waiting,
) -> Result<(), Failure> {
    let request: Value = serde_json::to_value(request).map_err(|error| Failure::new(Exit::Failed, error))?;
    let started: Started = shell.client.change(method, path, Body::Json(&request), if_match, &()).await?;
    if let Some(note) = &started.note {
        output::note(note);
    }
    let Some(activation) = started.activation else {
        // Nothing was to be done.
        return Ok(());
    };
    if waiting.wait {
        return wait(shell, activation, waiting.timeout).await;
    }
    if !activation.state.is_final() {
        output::note(&format!("under way; to see it land: pcloud activation wait {}", activation.id));
    }
    print(shell, &activation)
}

async fn get(shell: &Shell<'_>, id: &str) -> Result<Activation, Failure> {
    shell.client.get(&format!("/activations/{}", segment(id)), &()).await
}

/// Stays until the outcome of this activation, and no other, is there. Only what is final counts.
async fn wait(shell: &Shell<'_>, mut activation: Activation, timeout: Period) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout.0;
    let bar = ProgressBar::with_draw_target(
        Some(activation.hosts.total),
        // Without a terminal there is nothing to draw on.
        ProgressDrawTarget::stderr(),
    );
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} hosts  {msg}") {
        bar.set_style(style);
    }
    let mut told = String::new();
    loop {
        let step = progress(&activation);
        bar.set_length(activation.hosts.total);
        bar.set_position(activation.hosts.accepted);
        bar.set_message(step.clone());
        if bar.is_hidden() && step != told {
            output::note(&step);
            told = step;
        }
        if activation.state.is_final() {
            bar.finish_and_clear();
            return finish(shell, &activation);
        }
        if Instant::now() + ASK_EVERY > deadline {
            bar.finish_and_clear();
            print(shell, &activation)?;
            return Err(Failure::new(
                Exit::Unknown,
                format!("{} is still under way after {timeout}: {}", activation.id, progress(&activation)),
            )
            .next(format!("pcloud activation wait {0}, or pcloud activation abort {0}", activation.id)));
        }
        tokio::time::sleep(ASK_EVERY).await;
        match get(shell, &activation.id).await {
            Ok(now) => activation = now,
            // A Tower that restarts knows it again when it is back.
            Err(failure) if failure.exit == Exit::Failed => bar.set_message(failure.message),
            Err(failure) => return Err(failure),
        }
    }
}

fn progress(activation: &Activation) -> String {
    let step = usize::try_from(activation.step).unwrap_or(usize::MAX);
    let title = activation.steps.get(step).map_or("", |step| step.title.as_str());
    let hosts = activation.hosts;
    let mut text = format!(
        "{}: step {} of {} ({title}), {} of {} hosts accepted it",
        activation.id,
        step + 1,
        activation.steps.len(),
        hosts.accepted,
        hosts.total
    );
    for (number, what) in [(hosts.pending, "pending"), (hosts.silent, "silent"), (hosts.rejected, "rejected")]
    {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    if let Some(detail) = &activation.detail {
        text.push_str(&format!(": {detail}"));
    }
    text
}

/// What the outcome is to a script.
fn finish(shell: &Shell<'_>, activation: &Activation) -> Result<(), Failure> {
    print(shell, activation)?;
    let detail = activation.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let what = format!("{}@{}", activation.service, activation.version);
    match activation.state {
        State::Succeeded | State::Progressing => Ok(()),
        State::Rejected => {
            let refused = activation.rejection.as_ref().map(|rejection| {
                format!(
                    "{} on host {} refused {} {}: {}",
                    rejection.client,
                    rejection.host,
                    rejection.type_url.rsplit('.').next().unwrap_or_default(),
                    rejection.resource,
                    rejection.error
                )
            });
            let author = &activation.author;
            let changed = changed(activation);
            Err(Failure::new(
                Exit::RolledBack,
                format!("{what} by {author} was taken back: {}{changed}", refused.unwrap_or_default()),
            )
            .next(format!("pcloud activation get {} -o yaml", activation.id)))
        }
        State::Aborted => Err(Failure::new(Exit::RolledBack, format!("{what} was taken back{detail}"))),
        State::Expired => {
            Err(Failure::new(Exit::RolledBack, format!("{what} was taken back: its time was over")))
        }
        State::TimedOut => Err(Failure::new(
            Exit::RolledBack,
            format!("{what} was not accepted in time, and taken back{detail}"),
        )
        .next(format!("pcloud beacon lacking {}", activation.release))),
        State::Superseded => {
            Err(Failure::new(Exit::Failed, format!("{what} was superseded by another activation{detail}"))
                .next(format!("pcloud activation list {}", activation.service)))
        }
    }
}

/// What a release that was rejected would have changed, and whom to talk to about it.
fn changed(activation: &Activation) -> String {
    let told = |change: &Change| {
        let author = change.author.as_deref().map(|author| format!(" by {author}")).unwrap_or_default();
        format!("\n  changed: {}{author}", change.field)
    };
    let mut text: String = activation.changes.iter().take(MAX_CHANGES).map(told).collect();
    if let Some(more) = activation.changes.len().checked_sub(MAX_CHANGES).filter(|more| *more > 0) {
        text.push_str(&format!("\n  and {more} more fields"));
    }
    text
}

fn print(shell: &Shell<'_>, activation: &Activation) -> Result<(), Failure> {
    shell.output.print(
        activation,
        |_| table(std::slice::from_ref(activation)),
        || vec![activation.id.clone()],
    )
}

async fn list(shell: &Shell<'_>, service: &str) -> Result<(), Failure> {
    let mut all = Activations { activations: Vec::new(), next: None };
    let path = format!("/services/{}/activations", segment(service));
    pages(&shell.client, &path, &[], None, |page: Activations| {
        let items = page.activations.len();
        all.activations.extend(page.activations);
        (page.next, items)
    })
    .await?;
    shell.output.print(
        &all,
        |_| table(&all.activations),
        || all.activations.iter().map(|activation| activation.id.clone()).collect(),
    )
}

fn table(activations: &[Activation]) -> Table {
    let mut table = Table::new(&[
        "ACTIVATION",
        "VERSION",
        "AUDIENCE",
        "STATE",
        "STEP",
        "ACCEPTED",
        "AUTHOR",
        "AGE",
        "REASON",
    ]);
    let now = unix_millis();
    for activation in activations {
        let tone = match activation.state {
            State::Succeeded => Tone::Good,
            State::Progressing | State::Superseded | State::Expired => Tone::Warn,
            State::Rejected | State::Aborted | State::TimedOut => Tone::Bad,
        };
        table.row([
            Cell::from(activation.id.as_str()),
            format!("{}@{}", activation.service, activation.version).into(),
            activation.audience.as_str().into(),
            Cell::toned(word(&activation.state), tone),
            format!("{}/{}", activation.step + 1, activation.steps.len()).into(),
            format!("{}/{}", activation.hosts.accepted, activation.hosts.total).into(),
            activation.author.as_str().into(),
            ago(activation.started_unix_ms, now).into(),
            activation.reason.as_deref().unwrap_or("-").into(),
        ]);
    }
    table
}
