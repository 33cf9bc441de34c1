//! The `beacon-agent` process.

use std::process::ExitCode;

use beacon_agent::{options::Options, run};
use tower_common::process;

fn main() -> ExitCode {
    process::main(|options: &Options| run::run(options))
}
