//! The `tower-server` process.

use std::process::ExitCode;

use tower_common::process;
use tower_server::{options::Options, run};

fn main() -> ExitCode {
    process::main(|options: &Options| run::run(options))
}
