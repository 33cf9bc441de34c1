//! `tower-server log`: the event log as a file.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use tokio::runtime;

use super::{
    EventLog, Options,
    archive::{self, Summary},
};

/// What to do with the event log.
#[derive(Debug, Clone, Subcommand)]
pub enum LogCommand {
    /// Write all of it, with what its entries refer to, into a new file
    Export {
        /// The file
        file: PathBuf,
    },
    /// Make a new log of such a file, in the same place or another one; a log with entries is left as it is
    Import {
        /// The file
        file: PathBuf,
    },
    /// Verify that it is whole: that each entry follows the one before it, and has all that it refers to
    Verify {
        /// The first entry to look at
        #[arg(long, value_name = "INDEX", default_value_t = 1)]
        from: u64,
    },
}

/// Does it, and prints what was found.
///
/// # Errors
/// If the log, or the file, is not whole, or cannot be opened, read or written.
pub fn run(options: &crate::options::Options, command: &LogCommand) -> anyhow::Result<()> {
    let target = options.event_log()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let open = async || EventLog::open(&target, &options.data_dir, Options::default()).await;
        match command {
            LogCommand::Export { file } => {
                let summary = archive::export(&open().await?, file).await.context("nothing is exported")?;
                print("exported", &summary);
            }
            LogCommand::Import { file } => {
                let summary = archive::import(&target, &options.data_dir, file).await;
                print("imported", &summary.context("nothing is imported, or not all")?);
            }
            LogCommand::Verify { from } => {
                print(
                    "whole",
                    &archive::verify(&open().await?, *from).await.context("the log is not whole")?,
                );
            }
        }
        Ok(())
    })
}

#[allow(clippy::print_stdout, reason = "it is what was asked for")]
fn print(verdict: &str, summary: &Summary) {
    let Summary { incarnation, from, head, hash, bodies } = summary;
    println!("{verdict}: entries {from} to {head}, bodies {bodies}, incarnation {incarnation}, hash {hash}");
}
