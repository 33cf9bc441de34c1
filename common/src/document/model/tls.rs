//! TLS between Envoys: modes, and where a host finds certificates and keys. Never key material itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// TLS in front of the service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InboundTls {
    /// Absent is `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<TlsMode>,
    /// The service's certificate on its hosts; needed unless `off` (SDS `inbound/SERVICE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateFiles>,
    /// The file on its hosts with the CAs that callers' certificates must come from; absent: callers show none
    /// (SDS `inbound/SERVICE/ca`, and `require_client_certificate`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca_file: Option<String>,
    /// Absent is `TLSv1_2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_version: Option<TlsVersion>,
}

/// TLS on the callers' side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallersTls {
    /// `permissive`: with those endpoints that take TLS; `strict`: with all. Absent is `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<TlsMode>,
    /// What callers present, on their hosts; absent is nothing (SDS `callers/SERVICE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateFiles>,
    /// The file on their hosts with the CAs that the service's certificate must come from; needed unless `off`
    /// (SDS `callers/SERVICE/ca`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// The server name that callers ask for; absent is the service's name (`sni`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Names, of which the service's certificate must have one: URIs or DNS names, without wildcards
    /// (`match_typed_subject_alt_names`). Needed unless `off`: a CA alone tells no service from another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identities: Vec<String>,
    /// Absent is `TLSv1_2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_version: Option<TlsVersion>,
}

/// Files on a host: absolute paths of PEM. Both are read again when their folder changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertificateFiles {
    /// The certificate with its chain.
    pub certificate_file: String,
    /// Its key.
    pub private_key_file: String,
}

/// Whether TLS is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// Never.
    #[default]
    Off,
    /// With those who do; plain with the others.
    Permissive,
    /// Always.
    Strict,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "TLSv1_2")]
    V12,
    /// TLS 1.3.
    #[serde(rename = "TLSv1_3")]
    V13,
}
