//! What a route does to a request or an answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// Changes of path and host; of `prefix`, `path` and `regex` at most one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rewrite {
    /// In place of what a match of type `PathPrefix` or `Exact` matched, by segments (`prefix_rewrite`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// In place of the whole path; the query stays (`regex_rewrite`, whose pattern is everything).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A replacement in the path (`regex_rewrite`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<RegexRewrite>,
    /// The host that the backend sees (`host_rewrite_literal`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// A replacement of all that a regular expression finds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegexRewrite {
    /// In RE2's syntax.
    pub pattern: String,
    /// What comes in its place; `\1` is its first group, `\0` all of it.
    pub substitution: String,
}

/// An answer that sends the client elsewhere; at least one field says what is other there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Redirect {
    /// Absent is the request's (`scheme_redirect`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// Absent is the request's (`host_redirect`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Absent is the request's, or the scheme's if that changes (`port_redirect`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Another path (`path_redirect`). Not together with `prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// In place of what the match matched (`prefix_rewrite`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// 301, 302, 303, 307 or 308; absent is 302 (`response_code`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// An answer by Envoy itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectResponse {
    /// From 200 to 599 (`status`).
    pub status: u16,
    /// Up to 4,096 bytes; absent is none (`body.inline_string`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// Changes of headers: first `remove`, then `set`, then `add`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeaderChanges {
    /// In place of what is there (`OVERWRITE_IF_EXISTS_OR_ADD`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub set: Vec<Header>,
    /// Beside what is there (`APPEND_IF_EXISTS_OR_ADD`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub add: Vec<Header>,
    /// Taken away, by name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub remove: Vec<String>,
}

/// A header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Not one of HTTP/2's own (`:path`), nor `host`, which `rewrite.host` changes.
    pub name: String,
    /// Literally, also a `%`: the compiler writes Envoy's `%%`.
    pub value: String,
}
