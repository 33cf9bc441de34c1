//! `activity`: who did what.

use futures::StreamExt;
use tower_common::api::activity::{Activity, Entry};
use tower_common::clock::unix_millis;

use super::{Shell, paging::pages};
use crate::{
    cli::{self, ActivityFilter},
    failure::{Exit, Failure},
    output::{self, Cell, Table},
    period::ago,
};

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Activity) -> Result<(), Failure> {
    match command {
        cli::Activity::List(filter) => list(shell, filter).await,
        cli::Activity::Follow(filter) => follow(shell, filter).await,
    }
}

fn query(filter: &ActivityFilter) -> Vec<(&'static str, String)> {
    let mut query = Vec::new();
    query.extend(filter.service.clone().map(|service| ("service", service)));
    query.extend(filter.author.clone().map(|author| ("author", author)));
    query.extend(filter.after.map(|after| ("after", after.to_string())));
    query
}

async fn list(shell: &Shell<'_>, filter: &ActivityFilter) -> Result<(), Failure> {
    let mut all = Activity { entries: Vec::new(), next: None };
    pages(&shell.client, "/activity", &query(filter), Some(filter.limit), |page: Activity| {
        let items = page.entries.len();
        all.entries.extend(page.entries);
        (page.next, items)
    })
    .await?;
    // The newest last, as in a log.
    all.entries.reverse();
    shell.output.print(
        &all,
        |wide| {
            let mut titles = vec!["ENTRY", "AGE", "AUTHOR", "COMMAND", "WHAT", "REASON"];
            if wide {
                titles.extend(["CREDENTIAL", "FROM"]);
            }
            let mut table = Table::new(&titles);
            let now = unix_millis();
            for entry in &all.entries {
                let mut row = vec![
                    Cell::from(entry.index),
                    ago(entry.time_unix_ms, now).into(),
                    entry.author.as_str().into(),
                    entry.command.as_str().into(),
                    what(entry).into(),
                    entry.reason.as_str().into(),
                ];
                if wide {
                    row.push(entry.credential.as_str().into());
                    row.push(entry.address.as_str().into());
                }
                table.row(row);
            }
            table
        },
        || all.entries.iter().map(|entry| entry.index.to_string()).collect(),
    )
}

fn what(entry: &Entry) -> String {
    let summaries: Vec<&str> = entry.events.iter().map(|event| event.summary.as_str()).collect();
    summaries.join("; ")
}

/// Prints entries as they come, and goes on after the last where the stream is cut.
async fn follow(shell: &Shell<'_>, filter: &ActivityFilter) -> Result<(), Failure> {
    let mut last: Option<String> = None;
    loop {
        let mut query = query(filter);
        query.retain(|(key, _)| last.is_none() || *key != "after");
        let response = shell.client.events("/activity/stream", &query, last.as_deref()).await?;
        let mut chunks = response.bytes_stream();
        let mut events = Events::default();
        while let Some(chunk) = chunks.next().await {
            let Ok(chunk) = chunk else { break };
            for event in events.feed(&chunk) {
                let entry: Entry = serde_json::from_str(&event.data).map_err(|error| {
                    Failure::new(Exit::Failed, format!("an event that this pcloud does not know: {error}"))
                })?;
                last = event.id.or(last);
                shell.output.text(&entry, &entry.index.to_string(), || {
                    let reason =
                        if entry.reason.is_empty() { String::new() } else { format!(" ({})", entry.reason) };
                    format!("#{} {} {}: {}{reason}", entry.index, entry.author, entry.command, what(&entry))
                })?;
            }
        }
        output::note("the stream was cut; it goes on");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

/// Takes server-sent events apart (HTML standard, section 9.2.6).
#[derive(Debug, Default)]
struct Events {
    line: Vec<u8>,
    data: String,
    id: Option<String>,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
struct Event {
    id: Option<String>,
    data: String,
}

impl Events {
    fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                events.extend(self.line(&String::from_utf8_lossy(&line)));
            } else {
                self.line.push(*byte);
            }
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            let event = Event { id: self.id.take(), data: std::mem::take(&mut self.data) };
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" => self.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_apart_wherever_they_are_cut() {
        let text =
            ": heartbeat\n\nid: 7\nevent: entry\ndata: {\"a\":\ndata: 1}\n\nid: 8\r\ndata: x\r\n\r\nid: 9\n";
        let expected = [
            Event { id: Some("7".into()), data: "{\"a\":\n1}".into() },
            Event { id: Some("8".into()), data: "x".into() },
        ];
        for cut in 0..text.len() {
            let mut events = Events::default();
            let mut found = events.feed(&text.as_bytes()[..cut]);
            found.extend(events.feed(&text.as_bytes()[cut..]));
            assert_eq!(found, expected, "cut at {cut}");
        }
    }
}
