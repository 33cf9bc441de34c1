//! How a process of Tower starts and ends.

use std::{fmt, panic, process::ExitCode};

use clap::Parser;
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

    /// What is wrong with the options that a parser of single flags cannot see, each with the flag's
    /// name. The process does not start with such.
    fn faults(&self) -> Vec<String>;

    /// What is wrong with the files and folders that they name. This may look at the host; it may change
    /// with time, so it is for `check-config` alone.
    fn faults_of_host(&self) -> Vec<String>;
}

/// The word that asks, as the first argument, for a check instead of a run.
const CHECK_CONFIG: &str = "check-config";

/// What `--help` says of it.
pub const CHECK_CONFIG_HELP: &str = "With the word check-config before all flags, they, their environment twins, \
     the file, and what these name are checked; then either the effective configuration is printed, or all \
     that is wrong. Exit code 0 or 2.";

/// Reads the options, starts logging, and runs. Exit codes: 0 for an orderly end, 1 for a failure, 2 for
/// wrong options.
pub fn main<T: ProcessOptions, E: fmt::Display>(run: impl FnOnce(&T) -> Result<(), E>) -> ExitCode {
    let mut args: Vec<_> = std::env::args_os().collect();
    let checking = args.get(1).is_some_and(|word| word == CHECK_CONFIG);
    if checking {
        args.remove(1);
    }
    let options: T = config::parse_from(args).unwrap_or_else(|error| error.exit());
    tls::install_provider();
    let (format, filter) = options.log();
    let mut faults = options.faults();
    faults.extend(telemetry::check_filter(filter).err().map(|error| format!("--log {filter}: {error}")));
    if checking {
        faults.extend(options.faults_of_host());
    }
    if !faults.is_empty() {
        let lines = faults.iter().map(|fault| format!("error: {fault}\n"));
        eprint!("{}", lines.collect::<String>());
        return ExitCode::from(2);
    }
    if checking || options.dump_config() {
        return print_config(&options, checking);
    }
    telemetry::init_logging(format, filter).expect("the filter has been checked");
    end_on_panic();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error!(error = format!("{failure:#}"), "failed");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout, reason = "it is what was asked for")]
fn print_config(options: &impl Serialize, checked: bool) -> ExitCode {
    match config::dump(options) {
        Ok(text) => {
            // A comment, so that all of it is a configuration file.
            let verdict = if checked { "# ok\n" } else { "" };
            print!("{verdict}{text}");
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
