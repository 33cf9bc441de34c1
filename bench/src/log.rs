//! The event log: appends by one writer, one after the other, and reading all of it.

use std::path::Path;

use anyhow::Result;
use tower_common::clock;
use tower_proto::v1;
use tower_server::event_log::{EventLog, Options, Target};
use tower_tests::ZooKeeper;

use crate::figures::{Report, millis};

/// Appends `entries` to a new log of each kind, and reads them. The ensemble is a server that does not sync
/// its disk; the embedded log does.
pub async fn run(report: &mut Report, entries: u64) -> Result<()> {
    let zookeeper = ZooKeeper::start().await?;
    let registry = zookeeper.root().await?;
    for run in 0..report.runs {
        let folder = tempfile::tempdir()?;
        measure(report, "embedded", &Target::Embedded, folder.path(), entries).await?;
        let path = registry.absolute(&format!("log-{run}"));
        let target = format!("zk://{}{path}", zookeeper.connect_string()).parse()?;
        measure(report, "zookeeper", &target, folder.path(), entries).await?;
    }
    Ok(())
}

async fn measure(
    report: &mut Report,
    kind: &str,
    target: &Target,
    data_dir: &Path,
    entries: u64,
) -> Result<()> {
    let open = async || {
        let options = Options { run: "bench".to_owned(), ..Options::default() };
        EventLog::open(target, data_dir, options).await
    };
    let log = open().await?;
    let start = clock::monotonic();
    for at in 0..entries {
        log.append(at, entry(at), &[]).await?;
    }
    let elapsed = start.elapsed();
    report.note(&format!("log_{kind}_appends_per_s"), entries as f64 / elapsed.as_secs_f64());
    drop(log);
    let log = open().await?;
    let start = clock::monotonic();
    let mut next = 1;
    while next <= entries {
        next += log.read(next, usize::MAX).await?.len() as u64;
    }
    report.note(&format!("log_{kind}_read_all_ms"), millis(start.elapsed()));
    Ok(())
}

/// Of the size that most are: an activation's step.
fn entry(number: u64) -> v1::LogEntry {
    let stepped = v1::ActivationStepped { activation: "0123456789abcdef".to_owned(), step: 1 };
    let event = v1::event::Event::ActivationStepped(stepped);
    v1::LogEntry {
        command_id: format!("command-{number}"),
        command: "step".to_owned(),
        reason: "the step before it stands".to_owned(),
        events: vec![v1::Event { service: "web".to_owned(), event: Some(event) }],
        ..Default::default()
    }
}
