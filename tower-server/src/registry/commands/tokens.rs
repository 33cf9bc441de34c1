//! Who may do what: tokens, and what the holders of client certificates may.

use tower_proto::v1::{TokenIssued, TokenRevoked, event::Event};

use super::{Context, Decision, event};
use crate::registry::{
    permission::{Action, CERTIFICATE, Role, TOWER, admins, has_admin},
    refusal::{Refusal, RefusalKind},
    state::State,
};

/// Longer names are refused.
const MAX_NAME_CHARS: usize = 100;

/// Issue a token, or say what the holder of a certificate may. Tower itself may issue one if there is no
/// admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueToken {
    /// What is issued. Its id is new, or [`CERTIFICATE`] with the certificate's name.
    pub issued: TokenIssued,
}

/// Revoke a token. Its holder may, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeToken {
    /// Its id.
    pub id: String,
}

pub(super) fn issue(state: &State, command: &IssueToken, context: &Context) -> Result<Decision, Refusal> {
    let issued = &command.issued;
    if context.actor.credential != TOWER || has_admin(state, context.now_ms) {
        context.may(state, Action::ManageTokens, None)?;
    }
    let invalid = |field: &str, message: String| {
        Err(Refusal::new(RefusalKind::Invalid, "token", format!("token {}", issued.id), message).field(field))
    };
    let certificate = issued.id.starts_with(CERTIFICATE);
    if issued.id.is_empty() || issued.id == TOWER || issued.id.contains(['/', ' ']) {
        return invalid("id", "it cannot be called so".into());
    }
    if certificate != issued.hash.is_empty() || (!certificate && issued.hash.len() != 32) {
        return invalid("hash", "a token has a secret, and a certificate has none".into());
    }
    if issued.name.is_empty() || issued.name.chars().count() > MAX_NAME_CHARS {
        return invalid("name", format!("it has a name, of at most {MAX_NAME_CHARS} characters"));
    }
    if issued.name.chars().any(char::is_control) || issued.name.eq_ignore_ascii_case(TOWER) {
        return invalid("name", "a name has no control characters, and is not that of Tower itself".into());
    }
    if issued.roles.is_empty() {
        return invalid("roles", "it may do nothing".into());
    }
    for role in &issued.roles {
        match role.parse::<Role>() {
            Ok(Role::Owner) if issued.services.is_empty() => {
                return invalid("services", "an owner owns services: name them".into());
            }
            Ok(_) => {}
            Err(error) => return invalid("roles", error),
        }
    }
    if issued.expires_ms != 0 && issued.expires_ms <= context.now_ms {
        return invalid("expires", "it has expired already".into());
    }
    let held = state.mesh().tokens.get(&issued.id).filter(|held| held.revoked.is_none());
    match held.and_then(|held| held.issued.as_ref()) {
        Some(held) if certificate && held == issued => {
            Ok(Decision::nothing("the certificate may that already"))
        }
        Some(_) if !certificate => invalid("id", "it is there already".into()),
        _ => Ok(Decision::of(vec![event("", Event::TokenIssued(issued.clone()))])),
    }
}

pub(super) fn revoke(state: &State, command: &RevokeToken, context: &Context) -> Result<Decision, Refusal> {
    let id = &command.id;
    let own = context.actor.credential == *id;
    context.may(state, if own { Action::Read } else { Action::ManageTokens }, None)?;
    let Some(token) = state.mesh().tokens.get(id) else {
        return Err(Refusal::new(
            RefusalKind::NotFound,
            "no-such-token",
            format!("token {id}"),
            "there is none",
        ));
    };
    if token.revoked.is_some() {
        return Ok(Decision::nothing(format!("token {id} is revoked already")));
    }
    if admins(state, context.now_ms).eq([id.as_str()]) {
        let message = "it is the last one of an admin: nobody could issue another";
        return Err(Refusal::new(RefusalKind::Blocked, "last-admin", format!("token {id}"), message)
            .next("issue another token for an admin first"));
    }
    Ok(Decision::of(vec![event("", Event::TokenRevoked(TokenRevoked { id: id.clone() }))]))
}
