//! How a process of Tower starts and ends.

use std::{fmt, net::SocketAddr, panic, process::ExitCode};

use clap::{Parser, error::ErrorKind};
use serde::Serialize;
use tracing::error;

use crate::{
    config,
    telemetry::{self, LogFormat},
    tls,
};

/// What the options of every process have in common.
pub trait ProcessOptions: Parser + Serialize {
    /// The format of log lines, and which there are.
    fn log(&self) -> (LogFormat, &str);

    /// Whether only the effective configuration is wanted.
    fn dump_config(&self) -> bool;

    /// Checks what a parser of single flags cannot see.
    ///
    /// # Errors
    /// What is wrong, with the flag's name.
    fn check(&self) -> Result<(), String>;
}

/// Reads the options, starts logging, and runs. Exit codes: 0 for an orderly end, 1 for a failure, 2 for
/// wrong options.
pub fn main<T: ProcessOptions, E: fmt::Display>(run: impl FnOnce(&T) -> Result<(), E>) -> ExitCode {
    let options: T = config::parse();
    let wrong = |message: String| -> ! { T::command().error(ErrorKind::ValueValidation, message).exit() };
    if let Err(message) = options.check() {
        wrong(message);
    }
    if options.dump_config() {
        return print_config(&options);
    }
    let (format, filter) = options.log();
    if let Err(error) = telemetry::init_logging(format, filter) {
        wrong(format!("--log {filter}: {error}"));
    }
    end_on_panic();
    tls::install_provider();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error!(error = format!("{failure:#}"), "failed");
            ExitCode::FAILURE
        }
    }
}

/// Refuses addresses that other hosts can reach.
///
/// # Errors
/// The flag and its address, and what to do instead.
pub fn check_loopback(listeners: &[(&str, SocketAddr)], instead: &str) -> Result<(), String> {
    match listeners.iter().find(|(_, address)| !address.ip().is_loopback()) {
        None => Ok(()),
        Some((flag, address)) => {
            Err(format!("{flag} {address} can be reached by other hosts, and is without TLS; {instead}"))
        }
    }
}

#[allow(clippy::print_stdout, reason = "it is what was asked for")]
fn print_config(options: &impl Serialize) -> ExitCode {
    match config::dump(options) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("the configuration cannot be written as TOML: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// A dead task behind a live socket is the worst failure: whatever panics takes the process with it.
fn end_on_panic() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}
