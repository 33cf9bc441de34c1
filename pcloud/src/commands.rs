//! What the commands do, a file for each noun.

mod access;
mod activation;
mod activity;
mod auth;
mod beacon;
mod context;
mod document;
mod fleet;
mod guard;
mod lint;
mod log;
mod paging;
mod part;
mod plan;
mod service;
mod traffic;
mod version;

use clap::CommandFactory;

use crate::{
    cli::{Cli, Command, Describe},
    client::Client,
    context::Contexts,
    failure::Failure,
    output::Output,
};

/// Whom a command asks, and how it prints.
pub(crate) struct Shell<'a> {
    client: Client,
    output: &'a Output,
}

/// Does what the command line says.
pub(crate) async fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Lint(lint) => return lint::run(lint, &cli.output),
        Command::Context(command) => return context::run(command, &cli.target, &cli.output),
        Command::Completion { shell } => {
            clap_complete::generate(*shell, &mut Cli::command(), "pcloud", &mut std::io::stdout());
            return Ok(());
        }
        _ => {}
    }
    let resolved = Contexts::load()?.resolve(&cli.target)?;
    if let Command::Auth(command) = &cli.command {
        return auth::run(command, &resolved, &cli.output).await;
    }
    let shell = Shell { client: Client::new(&resolved)?, output: &cli.output };
    match &cli.command {
        Command::Diff(command) => plan::diff(&shell, command).await,
        Command::Plan(command) => plan::plan(&shell, command).await,
        Command::Activate(command) => activation::activate(&shell, command).await,
        Command::Rollback(command) => activation::rollback(&shell, command).await,
        Command::Describe(Describe::Service { service }) => service::describe(&shell, service).await,
        Command::Describe(Describe::Host { host, at: None }) => fleet::describe(&shell, host).await,
        Command::Describe(Describe::Host { host, at: Some(when) }) => fleet::past(&shell, host, *when).await,
        Command::Service(command) => service::run(&shell, command).await,
        Command::Version(command) => version::run(&shell, command).await,
        Command::Activation(command) => activation::run(&shell, command).await,
        Command::Traffic(command) => traffic::run(&shell, command).await,
        Command::Part(command) => part::run(&shell, command).await,
        Command::Beacon(command) => beacon::run(&shell, command).await,
        Command::Source(command) => guard::source(&shell, command).await,
        Command::Guard(command) => guard::run(&shell, command).await,
        Command::Activity(command) => activity::run(&shell, command).await,
        Command::Log(command) => log::run(&shell, command).await,
        Command::Token(command) => access::run(&shell, command).await,
        Command::Lint(_) | Command::Context(_) | Command::Completion { .. } | Command::Auth(_) => Ok(()),
    }
}

/// A name in a path, whatever is in it.
fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A word of the API as it is in JSON.
fn word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_segment() {
        assert_eq!(segment("web-1.a_b~c"), "web-1.a_b~c");
        assert_eq!(segment("../a b/ü?"), "..%2Fa%20b%2F%C3%BC%3F");
    }
}
