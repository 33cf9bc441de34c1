//! Tokens, and what the holders of client certificates may.

use tower_common::api::access::{Token, WhoAmI};
use tower_proto::v1;

use super::time;
use crate::auth::{identity::Principal, session::Session};

/// A token, without what is kept of its secret.
pub fn token(record: &v1::TokenRecord) -> Token {
    let issued = record.issued.clone().unwrap_or_default();
    let stamp = record.stamp.clone().unwrap_or_default();
    Token {
        id: issued.id,
        name: issued.name,
        roles: issued.roles.iter().filter_map(|role| role.parse().ok()).collect(),
        services: issued.services,
        issued_unix_ms: stamp.time_ms,
        expires_unix_ms: time(issued.expires_ms),
        index: stamp.index,
    }
}

/// Who somebody is.
pub fn whoami(principal: Principal) -> WhoAmI {
    WhoAmI {
        csrf: principal.session.as_ref().map(Session::csrf),
        name: principal.name,
        credential: principal.credential,
        roles: principal.roles,
        services: principal.services,
        expires_unix_ms: principal.expires_ms,
        address: principal.address,
        tower: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
