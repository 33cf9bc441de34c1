//! `pcloud`: what is active where, what a change would do, and the change itself.

mod cli;
mod client;
mod commands;
mod context;
mod failure;
mod findings;
mod output;
mod period;
mod reference;

use std::process::ExitCode;

use clap::Parser;

use crate::{cli::Cli, failure::Exit};

fn main() -> ExitCode {
    tower_common::tls::install_provider();
    let cli = Cli::parse();
    cli.output.apply_color();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::note(&format!("error: {error}"));
            return Exit::Failed.into();
        }
    };
    match runtime.block_on(commands::run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        // What differs has been printed: nothing more is to be said.
        Err(failure) if failure.message.is_empty() => failure.exit.into(),
        Err(failure) => {
            output::note(&failure.to_string());
            failure.exit.into()
        }
    }
}
