//! Who may do what: roles, tokens, and who one is.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read everything but tokens. Every other role includes it.
    Viewer,
    /// Change the documents of named services, and activate them.
    Owner,
    /// Edit the platform's parts, and decide about sources: holds and quarantines.
    Platform,
    /// Edit security's parts.
    Security,
    /// Everything, tokens included.
    Admin,
}

impl Role {
    /// Each of them.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Owner, Self::Platform, Self::Security, Self::Admin];

    /// As in JSON and in configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Owner => "owner",
            Self::Platform => "platform",
            Self::Security => "security",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// There is no such role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; there are viewer, owner, platform, security and admin")]
pub struct NoSuchRole(pub String);

impl FromStr for Role {
    type Err = NoSuchRole;

    fn from_str(text: &str) -> Result<Self, NoSuchRole> {
        Self::ALL.into_iter().find(|role| role.word() == text).ok_or_else(|| NoSuchRole(text.to_owned()))
    }
}

/// `POST /tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Who or what it is for: the author of what is done with it.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100))]
    pub name: String,
    /// A name in client certificates: whoever has such a certificate may do this, and there is no secret. Absent
    /// for a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub certificate: Option<String>,
    /// What it may do.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub roles: Vec<Role>,
    /// What an owner owns; for that role only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub services: Vec<String>,
    /// After how long it ends; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 315_360_000))]
    pub ttl_seconds: Option<u64>,
    /// Why, for those who read the activity log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub reason: Option<String>,
}

/// What it answers, with 201: the only time that the token is told.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Issued {
    /// What is known of it from here on.
    #[serde(flatten)]
    pub issued: Token,
    /// What its bearer sends: `Authorization: Bearer …`. Absent for a client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").field("issued", &self.issued).finish_non_exhaustive()
    }
}

/// `GET /tokens`: a page, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tokens {
    /// The tokens that are not revoked.
    pub tokens: Vec<Token>,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A token, without its secret, which nobody knows but its bearer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Token {
    /// Its id: the middle of the token itself, or `cert:` and a name in client certificates.
    pub id: String,
    /// Who or what it is for.
    pub name: String,
    /// What it may do.
    pub roles: Vec<Role>,
    /// What an owner owns.
    pub services: Vec<String>,
    /// When it was issued.
    pub issued_unix_ms: u64,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_ms: Option<u64>,
    /// The index of the entry in the log with which it was issued.
    pub index: u64,
}

/// `GET /whoami`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WhoAmI {
    /// The name that is the author of what one does.
    pub name: String,
    /// The id of the token, or `cert:` and the name in the client certificate.
    pub credential: String,
    /// What one may do.
    pub roles: Vec<Role>,
    /// What one owns.
    pub services: Vec<String>,
    /// When that ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_ms: Option<u64>,
    /// From where one asks.
    pub address: String,
    /// The version of Tower.
    pub tower: String,
    /// In a session: what requests that change something have to carry as [`CSRF`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
}

/// The header by which a session's requests are told from those that another site makes in the same browser.
pub const CSRF: &str = "X-Tower-CSRF";

/// The cookie of a session.
pub const SESSION_COOKIE: &str = "tower_session";

/// `POST /session`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// A token, as its bearer got it.
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub token: String,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn").finish_non_exhaustive()
    }
}
