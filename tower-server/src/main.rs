//! The `tower-server` process.

use std::process::ExitCode;

use tower_common::process;
use tower_server::{
    event_log,
    options::{Command, Options},
    run,
};

fn main() -> ExitCode {
    process::main(|options: &Options| match &options.command {
        Some(Command::Log(command)) => event_log::command::run(options, command),
        None => run::run(options),
    })
}
