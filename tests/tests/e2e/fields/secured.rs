//! TLS in front of the service and on its callers' side, and callers with names.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context, Result};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_tests::{Ask, Authority, Echo, Issued, Reply, ports};

use super::rig::{Instance, Rig};

const IDENTITY: &str = "spiffe://mesh/web";

/// A caller that is no Envoy: it believes this authority, and presents this certificate.
async fn over_tls(ask: &Ask, at: SocketAddr, authority: &Authority, own: Option<&Issued>) -> Result<Reply> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots);
    let config = match own {
        None => config.with_no_client_auth(),
        Some(issued) => config.with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes())?],
            PrivateKeyDer::from_pem_slice(issued.key.as_bytes())?,
        )?,
    };
    let stream = TcpStream::connect(at).await?;
    let stream = TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("web")?, stream).await?;
    ask.over_stream(stream).await
}

fn write(folder: &Path, name: &str, text: &str) -> Result<String> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    Ok(path.to_str().context("a path in UTF-8")?.to_owned())
}

/// Files of a certificate, as a document names them.
fn files(folder: &Path, name: &str, issued: &Issued) -> Result<String> {
    let certificate = write(folder, &format!("{name}.pem"), &issued.certificate)?;
    let key = write(folder, &format!("{name}.key"), &issued.key)?;
    Ok(format!("{{certificateFile: {certificate}, privateKeyFile: {key}}}"))
}

/// What the tests here have: an authority, and its files.
struct Pki {
    folder: tempfile::TempDir,
    authority: Authority,
    ca: String,
    server: String,
}

impl Pki {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let authority = Authority::new("mesh")?;
        let ca = write(folder.path(), "ca.pem", authority.certificate())?;
        let server = files(folder.path(), "web", &authority.sign(&["web", IDENTITY])?)?;
        Ok(Self { folder, authority, ca, server })
    }
}

#[tokio::test]
async fn permissive_takes_both_and_strict_only_tls() -> Result<()> {
    let pki = Pki::new()?;
    let app = Echo::start("app").await?;
    let (both, strict, newest) = (ports::free_address(), ports::free_address(), ports::free_address());
    let spec = |at: SocketAddr, tls: &str| {
        format!(
            "inbound: {{ports: [{{name: app, port: {}, appPort: {}}}], tls: {{{tls}, certificate: {}}}}}",
            at.port(),
            app.address().port(),
            pki.server
        )
    };
    let _running = Rig::default()
        .service("both", &spec(both, "mode: permissive"), &[])?
        .service("strict", &spec(strict, "mode: strict"), &[])?
        .service("newest", &spec(newest, "mode: strict, minVersion: TLSv1_3"), &[])?
        .start()
        .await?;
    let ask = Ask::get("web", "/");
    for at in [both, strict, newest] {
        assert_eq!(over_tls(&ask, at, &pki.authority, None).await?.ok()?.body, "app");
    }
    assert_eq!(ask.send(both).await?.ok()?.body, "app");
    assert!(ask.send(strict).await.is_err(), "it speaks TLS only");
    let stranger = Authority::new("mesh")?;
    assert!(over_tls(&ask, strict, &stranger, None).await.is_err(), "the certificate is the authority's");
    Ok(())
}

#[tokio::test]
async fn callers_are_known_by_their_certificates() -> Result<()> {
    let pki = Pki::new()?;
    let app = Echo::start("app").await?;
    let at = ports::free_address();
    let spec = format!(
        "
inbound:
  ports: [{{name: app, port: {}, appPort: {}}}]
  tls: {{mode: strict, certificate: {}, clientCaFile: {}}}
  allowedCallers:
    rules:
    - {{name: ads, identities: [spiffe://mesh/ads]}}
    - {{name: ml, identities: ['spiffe://mesh/ml/*', ops.internal]}}
",
        at.port(),
        app.address().port(),
        pki.server,
        pki.ca
    );
    let _running = Rig::default().service("web", &spec, &[])?.start().await?;
    let ask = Ask::get("web", "/");
    let cases = [
        ("spiffe://mesh/ads", 200),
        ("spiffe://mesh/ml/ranker", 200),
        ("ops.internal", 200),
        ("spiffe://mesh/adsense", 403),
        ("spiffe://mesh/ml", 403),
        ("ads", 403),
    ];
    for (name, expected) in cases {
        let own = pki.authority.sign(&[name])?;
        assert_eq!(over_tls(&ask, at, &pki.authority, Some(&own)).await?.status, expected, "{name}");
    }
    assert!(over_tls(&ask, at, &pki.authority, None).await.is_err(), "a certificate is required");
    let other = Authority::new("other")?.sign(&["spiffe://mesh/ads"])?;
    assert!(over_tls(&ask, at, &pki.authority, Some(&other)).await.is_err(), "it must be the authority's");
    Ok(())
}

#[tokio::test]
async fn envoys_speak_tls_to_who_takes_it_and_believe_only_the_right_name() -> Result<()> {
    let pki = Pki::new()?;
    let (app, plain) = (Echo::start("app").await?, Echo::start("plain").await?);
    let at = ports::free_address();
    let client = files(pki.folder.path(), "client", &pki.authority.sign(&["spiffe://mesh/caller"])?)?;
    let inbound = format!(
        "
inbound:
  ports: [{{name: app, port: {}, appPort: {}}}]
  tls: {{mode: strict, certificate: {}, clientCaFile: {}}}
  allowedCallers: {{rules: [{{name: caller, identities: [spiffe://mesh/caller]}}]}}
",
        at.port(),
        app.address().port(),
        pki.server,
        pki.ca
    );
    let callers = |mode: &str, identity: &str| {
        format!(
            "callers: {{tls: {{mode: {mode}, certificate: {client}, caFile: {}, identities: ['{identity}']}}}}",
            pki.ca
        )
    };
    // As an application registers that has an Envoy in front of it.
    let tls = Instance::at(app.address())
        .label("tower.inbound", &at.port().to_string())
        .label("tower.inbound.tls", "strict");
    let both = [tls.clone(), Instance::at(plain.address())];
    let running = Rig::default()
        .service("web", &inbound, &[])?
        .service("strict", &callers("strict", IDENTITY), &both[..1])?
        .service("mixed", &callers("permissive", IDENTITY), &both)?
        .service("impostor", &callers("strict", "spiffe://mesh/other"), &both[..1])?
        .service("naive", "callers: {}", &both[..1])?
        .start()
        .await?;
    for protocol in tower_tests::Protocol::ALL {
        let reply = running.ask(&Ask::get("strict", "/").over(protocol)).await?.ok()?;
        assert_eq!(reply.body, "app");
        assert_eq!(format!("{:?}", app.last()?.version), protocol.version());
        crate::support::answered_by(&[running.envoy.caller(protocol)], "mixed", &["app", "plain"]).await;
    }
    for host in ["impostor", "naive"] {
        let reply = running.ask(&Ask::get(host, "/")).await?;
        assert_ne!(reply.status, 200, "{host}");
    }
    Ok(())
}
