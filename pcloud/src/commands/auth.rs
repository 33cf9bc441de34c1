//! `auth`: signing in.

use std::io::{self, IsTerminal, Read};

use tower_common::api::access::WhoAmI;

use crate::{
    cli,
    client::Client,
    context::{Contexts, Resolved},
    failure::{Exit, Failure},
    output::{self, Output},
};

/// The name of the context that a first login makes.
const DEFAULT_CONTEXT: &str = "default";

pub(super) async fn run(command: &cli::Auth, resolved: &Resolved, output: &Output) -> Result<(), Failure> {
    match command {
        cli::Auth::Login => login(resolved).await,
        cli::Auth::Logout => {
            let mut contexts = Contexts::load()?;
            let name = resolved.context.clone().ok_or_else(|| Failure::usage("no context is in use"))?;
            let context = contexts.contexts.entry(name.clone()).or_default();
            if context.token.take().is_none() {
                output::note(&format!("the context {name:?} has no token"));
                return Ok(());
            }
            contexts.store()?;
            output::note("forgotten; the token itself is still valid: pcloud token revoke ends it");
            Ok(())
        }
        cli::Auth::Status => {
            let client = Client::new(resolved)?;
            let me: WhoAmI = client.get("/whoami", &()).await?;
            output.text(&me, &me.name, || {
                let roles: Vec<&str> = me.roles.iter().map(|role| role.word()).collect();
                format!(
                    "Tower:      {} (version {})\nContext:    {}\nYou are:    {} ({})\nToken from: {}\nRoles:      {}\nServices:   {}",
                    client.tower(),
                    me.tower,
                    resolved.context.as_deref().unwrap_or("-"),
                    me.name,
                    me.credential,
                    resolved.token_from,
                    roles.join(", "),
                    me.services.join(", ")
                )
            })
        }
    }
}

async fn login(resolved: &Resolved) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        output::note("the token, and Ctrl-D:");
    }
    let mut token = String::new();
    io::stdin().take(4096).read_to_string(&mut token).map_err(Failure::usage)?;
    let token = token.trim().to_owned();
    if token.is_empty() {
        return Err(Failure::usage("there is no token on standard input"));
    }
    let mut asking = resolved.clone();
    asking.token = Some(token.clone());
    asking.token_from = "standard input";
    let me: WhoAmI = Client::new(&asking)?.get("/whoami", &()).await?;
    let mut contexts = Contexts::load()?;
    let name = resolved.context.clone().unwrap_or_else(|| DEFAULT_CONTEXT.to_owned());
    let context = contexts.contexts.entry(name.clone()).or_default();
    context.token = Some(token);
    context.tower.get_or_insert_with(|| resolved.tower.clone());
    contexts.current.get_or_insert_with(|| name.clone());
    contexts.store().map_err(|failure| Failure { exit: Exit::Failed, ..failure })?;
    output::note(&format!("signed in to {} as {}, context {name:?}", resolved.tower, me.name));
    Ok(())
}
