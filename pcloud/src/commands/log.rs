//! `log`: the event log, as the Tower that is asked sees it.

use tower_common::api::log::LogStatus;

use super::Shell;
use crate::{cli, failure::Failure};

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Log) -> Result<(), Failure> {
    match command {
        cli::Log::Status => {
            let status: LogStatus = shell.client.get("/log", &()).await?;
            shell.output.text(&status, &status.incarnation, || {
                let trouble = status.trouble.as_ref().map(|trouble| format!("\nTrouble:     {trouble}"));
                format!(
                    "Log:         {}\nIncarnation: {}\nEntries:     {}\nTowers:      {}{}",
                    status.kind,
                    status.incarnation,
                    status.index,
                    status.towers.join(", "),
                    trouble.unwrap_or_default()
                )
            })
        }
    }
}
