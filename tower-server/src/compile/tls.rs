//! TLS in front of a service, and on its callers' side; where hosts find the files for it.

use std::path::Path;

use prost::{Message, Name};
use tower_common::document::model::{CallersTls, CertificateFiles, InboundTls, TlsMode, TlsVersion};
use tower_proto::{
    envoy::{
        envoy::{
            config::{
                cluster::v3::cluster::TransportSocketMatch,
                core::v3::{TransportSocket, WatchedDirectory, transport_socket::ConfigType},
            },
            extensions::transport_sockets::tls::v3::{
                CertificateValidationContext, CommonTlsContext, DownstreamTlsContext, SdsSecretConfig,
                Secret, SubjectAltNameMatcher, TlsCertificate, TlsParameters, UpstreamTlsContext,
                common_tls_context::{CombinedCertificateValidationContext, ValidationContextType},
                secret,
                subject_alt_name_matcher::SanType,
                tls_parameters::TlsProtocol,
            },
        },
        google::protobuf::{BoolValue, Struct},
    },
    v1::{SecretPart, Side},
};

use super::{
    convert::{exactly, file},
    messages::{any, canonical},
    metadata::text_value,
};

/// What endpoints say of the TLS that is in front of them: `permissive` or `strict`.
const MATCHED: &str = "tower.inbound.tls";

/// The transport of callers: the one of all endpoints, and those of endpoints that say what they take.
pub(super) fn upstream(
    service: &str,
    of: &CallersTls,
) -> (Option<TransportSocket>, Vec<TransportSocketMatch>) {
    match of.mode.unwrap_or_default() {
        TlsMode::Off => (None, Vec::new()),
        TlsMode::Strict => (Some(client(service, of)), Vec::new()),
        TlsMode::Permissive => {
            let taken = |mode: &str| TransportSocketMatch {
                name: format!("tls-{mode}"),
                r#match: Some(Struct { fields: [(MATCHED.to_owned(), text_value(mode))].into() }),
                transport_socket: Some(client(service, of)),
            };
            (None, ["permissive", "strict"].map(taken).into())
        }
    }
}

/// The transport in front of a service; `None` if TLS is off.
pub(super) fn downstream(service: &str, of: &InboundTls) -> Option<TransportSocket> {
    match of.mode.unwrap_or_default() {
        TlsMode::Off => return None,
        TlsMode::Permissive | TlsMode::Strict => {}
    }
    let ca = of.client_ca_file.is_some();
    let common = CommonTlsContext {
        tls_params: Some(versions(of.min_version)),
        tls_certificate_sds_secret_configs: vec![ask(&inbound_certificate(service))],
        validation_context_type: ca.then(|| {
            ValidationContextType::ValidationContextSdsSecretConfig(ask(&authority(&inbound_certificate(
                service,
            ))))
        }),
        // Both versions of HTTP are served; who asks for neither is listened to.
        alpn_protocols: vec!["h2".to_owned(), "http/1.1".to_owned()],
        ..Default::default()
    };
    Some(socket(&DownstreamTlsContext {
        common_tls_context: Some(common),
        require_client_certificate: ca.then_some(BoolValue { value: true }),
        ..Default::default()
    }))
}

/// Where hosts find the files, by the names under which they are asked for.
pub(super) fn secrets(
    service: &str,
    inbound: Option<&InboundTls>,
    callers: &CallersTls,
) -> Vec<(String, SecretPart)> {
    let mut secrets = Vec::new();
    if let Some(tls) = inbound.filter(|tls| tls.mode.is_some_and(|mode| mode != TlsMode::Off)) {
        let name = inbound_certificate(service);
        secrets.extend(
            tls.client_ca_file.iter().map(|path| authorities(&authority(&name), path, Side::Inbound)),
        );
        secrets.extend(tls.certificate.iter().map(|files| certificate(&name, files, Side::Inbound)));
    }
    if callers.mode.is_some_and(|mode| mode != TlsMode::Off) {
        let name = callers_certificate(service);
        secrets
            .extend(callers.ca_file.iter().map(|path| authorities(&authority(&name), path, Side::Callers)));
        secrets.extend(callers.certificate.iter().map(|files| certificate(&name, files, Side::Callers)));
    }
    secrets
}

fn inbound_certificate(service: &str) -> String {
    format!("inbound/{service}")
}

fn callers_certificate(service: &str) -> String {
    format!("callers/{service}")
}

/// The name of the authorities that belong to a certificate.
fn authority(certificate: &str) -> String {
    format!("{certificate}/ca")
}

fn client(service: &str, of: &CallersTls) -> TransportSocket {
    let name = callers_certificate(service);
    let identities = of.identities.iter().map(|identity| SubjectAltNameMatcher {
        san_type: if identity.contains("://") { SanType::Uri } else { SanType::Dns }.into(),
        matcher: Some(exactly(identity)),
        ..Default::default()
    });
    let validation = CombinedCertificateValidationContext {
        default_validation_context: Some(CertificateValidationContext {
            match_typed_subject_alt_names: identities.collect(),
            ..Default::default()
        }),
        validation_context_sds_secret_config: Some(ask(&authority(&name))),
        ..Default::default()
    };
    let common = CommonTlsContext {
        tls_params: Some(versions(of.min_version)),
        tls_certificate_sds_secret_configs: of.certificate.iter().map(|_| ask(&name)).collect(),
        validation_context_type: Some(ValidationContextType::CombinedValidationContext(validation)),
        ..Default::default()
    };
    socket(&UpstreamTlsContext {
        common_tls_context: Some(common),
        sni: of.server_name.clone().unwrap_or_else(|| service.to_owned()),
        ..Default::default()
    })
}

/// A secret that is asked for where the client is told to.
fn ask(name: &str) -> SdsSecretConfig {
    SdsSecretConfig { name: name.to_owned(), sds_config: None }
}

fn versions(min: Option<TlsVersion>) -> TlsParameters {
    let min = match min.unwrap_or(TlsVersion::V12) {
        TlsVersion::V12 => TlsProtocol::TlSv12,
        TlsVersion::V13 => TlsProtocol::TlSv13,
    };
    TlsParameters {
        tls_minimum_protocol_version: min.into(),
        // Envoy's clients would stop at 1.2.
        tls_maximum_protocol_version: TlsProtocol::TlSv13.into(),
        ..Default::default()
    }
}

fn socket<M: Message + Name>(context: &M) -> TransportSocket {
    TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(context))),
    }
}

fn certificate(name: &str, of: &CertificateFiles, side: Side) -> (String, SecretPart) {
    let certificate = TlsCertificate {
        certificate_chain: Some(file(&of.certificate_file)),
        private_key: Some(file(&of.private_key_file)),
        watched_directory: folder(&of.certificate_file),
        ..Default::default()
    };
    part(name, secret::Type::TlsCertificate(certificate), side)
}

fn authorities(name: &str, path: &str, side: Side) -> (String, SecretPart) {
    let validation = CertificateValidationContext {
        trusted_ca: Some(file(path)),
        watched_directory: folder(path),
        ..Default::default()
    };
    part(name, secret::Type::ValidationContext(validation), side)
}

fn part(name: &str, what: secret::Type, side: Side) -> (String, SecretPart) {
    let secret = Secret { name: name.to_owned(), r#type: Some(what) };
    (name.to_owned(), SecretPart { secret: canonical(&secret).into(), side: side.into() })
}

/// The folder in which files are replaced.
fn folder(path: &str) -> Option<WatchedDirectory> {
    let folder = Path::new(path).parent()?.to_str()?;
    Some(WatchedDirectory { path: folder.to_owned(), ..Default::default() })
}
