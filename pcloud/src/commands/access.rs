//! `token`: what others sign in with.

use reqwest::Method;
use tower_common::api::{
    Changed,
    access::{Issued, Role, Token, TokenRequest, Tokens},
};
use tower_common::clock::unix_millis;

use super::{Shell, paging::pages, segment};
use crate::{
    cli,
    client::Body,
    failure::{Exit, Failure},
    output::{self, Cell, Table},
    period::{Period, ago},
};

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Token) -> Result<(), Failure> {
    match command {
        cli::Token::List => {
            let mut all: Vec<Token> = Vec::new();
            pages(&shell.client, "/tokens", &[], None, |page: Tokens| {
                let items = page.tokens.len();
                all.extend(page.tokens);
                (page.next, items)
            })
            .await?;
            let all = Tokens { tokens: all, next: None };
            shell.output.print(
                &all,
                |_| table(&all.tokens),
                || all.tokens.iter().map(|token| token.id.clone()).collect(),
            )
        }
        cli::Token::Create { name, certificate, role, service, ttl } => {
            let request = TokenRequest {
                name: name.clone(),
                certificate: certificate.clone(),
                roles: role.iter().map(|role| role_of(*role)).collect(),
                services: service.clone(),
                ttl_seconds: ttl.map(Period::seconds),
                reason: None,
            };
            let body = serde_json::to_value(&request).map_err(|error| Failure::new(Exit::Failed, error))?;
            let issued: Issued =
                shell.client.change(Method::POST, "/tokens", Body::Json(&body), None, &()).await?;
            if issued.token.is_some() {
                output::note(&format!("the token {} is not shown again:", issued.issued.id));
            }
            let id = issued.issued.id.clone();
            shell.output.text(&issued, &id, || issued.token.clone().unwrap_or_else(|| id.clone()))
        }
        cli::Token::Revoke { id, reason } => {
            let path = format!("/tokens/{}", segment(id));
            let query: Vec<_> = reason.as_deref().map(|reason| ("reason", reason)).into_iter().collect();
            shell.client.change::<Changed>(Method::DELETE, &path, Body::Nothing, None, &query).await?;
            output::note(&format!("the token {id} is revoked"));
            Ok(())
        }
    }
}

const fn role_of(role: cli::Role) -> Role {
    match role {
        cli::Role::Viewer => Role::Viewer,
        cli::Role::Owner => Role::Owner,
        cli::Role::Platform => Role::Platform,
        cli::Role::Security => Role::Security,
        cli::Role::Admin => Role::Admin,
    }
}

fn table(tokens: &[Token]) -> Table {
    let mut table = Table::new(&["TOKEN", "NAME", "ROLES", "SERVICES", "AGE", "ENDS IN"]);
    let now = unix_millis();
    for token in tokens {
        let roles: Vec<&str> = token.roles.iter().map(|role| role.word()).collect();
        table.row([
            Cell::from(token.id.as_str()),
            token.name.as_str().into(),
            roles.join(",").into(),
            token.services.join(",").into(),
            ago(token.issued_unix_ms, now).into(),
            token.expires_unix_ms.map_or("-".to_owned(), |end| ago(now, end)).into(),
        ]);
    }
    table
}
