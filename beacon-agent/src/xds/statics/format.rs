//! Envoy's resources as people write them: those of Envoy's own files of resources, as far as they are
//! served from files.
//!
//! What is not known is refused by name, never passed over.

use std::collections::{BTreeMap, HashMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;
use tower_common::view::XdsResource;
use tower_proto::envoy::{
    envoy::{
        config::{
            core::v3::{self as core, TypedExtensionConfig, WatchedDirectory, data_source::Specifier},
            route::v3::{
                ScopedRouteConfiguration,
                scoped_route_configuration::{Key, key::Fragment, key::fragment::Type},
            },
        },
        extensions::transport_sockets::tls::v3::{
            self as tls, CertificateValidationContext, GenericSecret, Secret as TlsSecret, TlsCertificate,
            secret,
        },
        service::runtime::v3::Runtime as RuntimeLayer,
    },
    google::protobuf::{self, Any},
};

use crate::xds::kind::ResourceType;

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    resources: Vec<Resource>,
}

/// One resource.
#[derive(Debug, Deserialize)]
#[serde(tag = "@type")]
enum Resource {
    #[serde(rename = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret")]
    Secret(Secret),
    #[serde(rename = "type.googleapis.com/envoy.service.runtime.v3.Runtime")]
    Runtime(Runtime),
    #[serde(rename = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig")]
    Extension(Extension),
    #[serde(rename = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration")]
    ScopedRoute(ScopedRoute),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Secret {
    name: String,
    tls_certificate: Option<Certificate>,
    validation_context: Option<Validation>,
    generic_secret: Option<Generic>,
}

/// Nobody is to see what is in it.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    certificate_chain: DataSource,
    private_key: DataSource,
    watched_directory: Option<Directory>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Validation {
    trusted_ca: DataSource,
    watched_directory: Option<Directory>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Generic {
    secret: DataSource,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Directory {
    path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DataSource {
    Filename(String),
    InlineString(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runtime {
    name: String,
    layer: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extension {
    name: String,
    typed_config: TypedConfig,
}

/// Extensions are many, and their messages not known here: one that is not empty is given serialized.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedConfig {
    #[serde(rename = "@type")]
    type_url: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopedRoute {
    name: String,
    route_configuration_name: String,
    key: ScopeKey,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeKey {
    fragments: Vec<ScopeFragment>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeFragment {
    string_key: String,
}

/// A resource that was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) kind: ResourceType,
    pub(super) resource: XdsResource,
    /// A private key is in it, so that it may not leave the host.
    pub(super) private: bool,
}

/// Reads a file.
///
/// # Errors
/// If it is malformed, or says something that is not known. The message never quotes a secret.
pub(super) fn read(text: &str) -> Result<Vec<Read>, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| {
        // The parser's message may quote the line on which it stumbled.
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default().to_owned();
        if text.contains("PRIVATE KEY") {
            "malformed; it holds a key, so no more is told".to_owned()
        } else {
            first
        }
    })?;
    file.resources.into_iter().map(Resource::into_read).collect()
}

impl Resource {
    fn into_read(self) -> Result<Read, String> {
        let (kind, resource, private) = match self {
            Self::Secret(secret) => {
                let private = secret.is_private();
                let message = secret.into_message()?;
                (ResourceType::Secret, XdsResource::new(&message.name, &message), private)
            }
            Self::Runtime(Runtime { name, layer }) => {
                let fields = layer.into_iter().map(|(key, value)| (key, proto_value(value))).collect();
                let message = RuntimeLayer { name, layer: Some(protobuf::Struct { fields }) };
                (ResourceType::Runtime, XdsResource::new(&message.name, &message), false)
            }
            Self::Extension(Extension { name, typed_config: TypedConfig { type_url, value } }) => {
                let value = STANDARD.decode(value).map_err(|error| {
                    format!("extension {name:?}: typed_config.value is no base64: {error}")
                })?;
                let message = TypedExtensionConfig { name, typed_config: Some(Any { type_url, value }) };
                (ResourceType::Extension, XdsResource::new(&message.name, &message), false)
            }
            Self::ScopedRoute(scope) => {
                let fragment =
                    |fragment: ScopeFragment| Fragment { r#type: Some(Type::StringKey(fragment.string_key)) };
                let message = ScopedRouteConfiguration {
                    name: scope.name,
                    route_configuration_name: scope.route_configuration_name,
                    key: Some(Key { fragments: scope.key.fragments.into_iter().map(fragment).collect() }),
                    ..Default::default()
                };
                (ResourceType::ScopedRoute, XdsResource::new(&message.name, &message), false)
            }
        };
        if resource.name.is_empty() {
            return Err(format!("a resource of {} has no name", kind.as_str()));
        }
        Ok(Read { kind, resource, private })
    }
}

impl Secret {
    /// Whether it is itself what must not leave the host: a private key, or a password.
    fn is_private(&self) -> bool {
        let key = self.tls_certificate.as_ref().map(|certificate| &certificate.private_key);
        let generic = self.generic_secret.as_ref().map(|generic| &generic.secret);
        key.into_iter().chain(generic).any(|source| matches!(source, DataSource::InlineString(_)))
    }

    fn into_message(self) -> Result<TlsSecret, String> {
        let directory = |directory: Option<Directory>| {
            directory.map(|d| WatchedDirectory { path: d.path, ..Default::default() })
        };
        let r#type = match (self.tls_certificate, self.validation_context, self.generic_secret) {
            (Some(certificate), None, None) => secret::Type::TlsCertificate(TlsCertificate {
                certificate_chain: Some(certificate.certificate_chain.into()),
                private_key: Some(certificate.private_key.into()),
                watched_directory: directory(certificate.watched_directory),
                ..Default::default()
            }),
            (None, Some(validation), None) => secret::Type::ValidationContext(CertificateValidationContext {
                trusted_ca: Some(validation.trusted_ca.into()),
                watched_directory: directory(validation.watched_directory),
                ..Default::default()
            }),
            (None, None, Some(generic)) => secret::Type::GenericSecret(GenericSecret {
                secret: Some(generic.secret.into()),
                ..Default::default()
            }),
            _ => {
                return Err(format!(
                    "secret {:?}: give one of tls_certificate, validation_context, generic_secret",
                    self.name
                ));
            }
        };
        Ok(tls::Secret { name: self.name, r#type: Some(r#type) })
    }
}

impl From<DataSource> for core::DataSource {
    fn from(source: DataSource) -> Self {
        let specifier = match source {
            DataSource::Filename(path) => Specifier::Filename(path),
            DataSource::InlineString(text) => Specifier::InlineString(text),
        };
        Self { specifier: Some(specifier), ..Default::default() }
    }
}

fn proto_value(value: Value) -> protobuf::Value {
    use protobuf::value::Kind;
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(value),
        // Protobuf's JSON numbers are floating point.
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(values) => {
            Kind::ListValue(protobuf::ListValue { values: values.into_iter().map(proto_value).collect() })
        }
        Value::Object(fields) => {
            let fields: HashMap<_, _> =
                fields.into_iter().map(|(key, value)| (key, proto_value(value))).collect();
            Kind::StructValue(protobuf::Struct { fields })
        }
    };
    protobuf::Value { kind: Some(kind) }
}

/// The serialized message as it is, for whoever wants to look into it.
#[cfg(test)]
pub(super) fn decode<M: prost::Message + Default>(read: &Read) -> M {
    M::decode(read.resource.body.clone()).expect("it was encoded just now")
}
