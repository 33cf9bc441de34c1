//! Client certificates instead of tokens.

use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tower_tests::{Authority, EndpointFiles, Tower, TowerOptions, authority::TlsFiles, ports::free_port};

const TOWER: &str = "127.0.0.1";

/// A caller over HTTPS, with a certificate or without one.
struct Caller {
    port: u16,
    config: Arc<ClientConfig>,
}

impl Caller {
    fn new(port: u16, authority: &Authority, certificate: Option<&TlsFiles>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match certificate {
            None => config.with_no_client_auth(),
            Some(files) => {
                let chain =
                    CertificateDer::pem_file_iter(files.path("cert.pem"))?.collect::<Result<Vec<_>, _>>()?;
                config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(files.path("key.pem"))?)?
            }
        };
        Ok(Self { port, config: Arc::new(config) })
    }

    /// The status and the body of the answer.
    async fn ask(&self, request: &str, headers: &str, body: &str) -> Result<(u16, Value)> {
        let answer = self.exchange(request, headers, body).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, serde_json::from_str(body).with_context(|| body.to_owned())?))
    }

    /// The whole answer.
    async fn exchange(&self, request: &str, headers: &str, body: &str) -> Result<String> {
        let tcp = TcpStream::connect((TOWER, self.port)).await?;
        let mut stream =
            TlsConnector::from(self.config.clone()).connect(ServerName::try_from(TOWER)?, tcp).await?;
        let length = body.len();
        let text = format!(
            "{request} HTTP/1.1\r\nHost: tower\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

#[tokio::test]
async fn a_certificate_may_what_its_name_may_and_one_without_a_role_nothing() -> Result<()> {
    let (folder, authority) = (TempDir::new()?, Authority::new("mesh")?);
    let path = |name: &str| -> Result<_> {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    };
    let files = EndpointFiles::new()?;
    let port = free_port();
    let tower = Tower::start(TowerOptions {
        discovery: vec![files.discovery()],
        http_listen: Some(([0, 0, 0, 0], port).into()),
        flags: authority.issue(&path("tower")?, &[TOWER])?.tower(),
        ..TowerOptions::default()
    })
    .await?;
    let token = format!("Authorization: Bearer {}\r\n", tower.admin_token().context("no token")?);
    let ops = authority.issue(&path("ops")?, &["ops.example"])?;
    let ops = Caller::new(port, &authority, Some(&ops))?;
    let nobody = Caller::new(port, &authority, None)?;

    let (status, answer) = nobody.ask("GET /api/v1/whoami", "", "").await?;
    assert_eq!((status, &answer["detail"]), (401, &json!("there is no credential")));
    let (status, answer) = ops.ask("GET /api/v1/whoami", "", "").await?;
    let detail = answer["detail"].as_str().context("no detail")?;
    assert!(status == 401 && detail.contains("ops.example: it has no role"), "{answer}");
    // A token goes before a certificate, and needs none.
    assert_eq!(ops.ask("GET /api/v1/whoami", &token, "").await?.1["name"], "admin");

    // What came by TLS goes by TLS alone.
    let secret = json!({ "token": tower.admin_token().context("no token")? }).to_string();
    let session = nobody.exchange("POST /api/v1/session", "", &secret).await?;
    assert!(session.contains("; HttpOnly; SameSite=Strict; Secure; Path=/"), "{session}");

    let grant =
        json!({"name": "operations", "certificate": "ops.example", "roles": ["platform"]}).to_string();
    let (status, granted) = nobody.ask("POST /api/v1/tokens", &token, &grant).await?;
    assert_eq!((status, &granted["id"], granted.get("token")), (201, &json!("cert:ops.example"), None));
    let (status, who) = ops.ask("GET /api/v1/whoami", "", "").await?;
    assert_eq!((status, &who["name"], &who["roles"]), (200, &json!("operations"), &json!(["platform"])));
    let platform = json!({
        "apiVersion": "tower.mesh/v1", "kind": "MeshService", "metadata": {},
        "spec": {"callers": {"connectTimeout": "3s"}},
    });
    assert_eq!(ops.ask("PUT /api/v1/platform", "", &platform.to_string()).await?.0, 200);
    assert_eq!(ops.ask("PUT /api/v1/security", "", &platform.to_string()).await?.0, 403);
    let (_, entry) = ops.ask("GET /api/v1/activity/3", "", "").await?;
    assert_eq!((&entry["author"], &entry["credential"]), (&json!("operations"), &json!("cert:ops.example")));
    // A bad token is not made good by a good certificate.
    assert_eq!(ops.ask("GET /api/v1/whoami", "Authorization: Bearer x\r\n", "").await?.0, 401);
    assert_eq!(nobody.ask("DELETE /api/v1/tokens/cert:ops.example", &token, "").await?.0, 200);
    assert_eq!(ops.ask("GET /api/v1/whoami", "", "").await?.0, 401);
    Ok(())
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_let_in() -> Result<()> {
    let (folder, authority, other) = (TempDir::new()?, Authority::new("mesh")?, Authority::new("other")?);
    let (own, foreign) = (folder.path().join("own"), folder.path().join("foreign"));
    std::fs::create_dir_all(&own)?;
    std::fs::create_dir_all(&foreign)?;
    let files = EndpointFiles::new()?;
    let port = free_port();
    let _tower = Tower::start(TowerOptions {
        discovery: vec![files.discovery()],
        http_listen: Some(([0, 0, 0, 0], port).into()),
        flags: authority.issue(&own, &[TOWER])?.tower(),
        ..TowerOptions::default()
    })
    .await?;
    let foreign = other.issue(&foreign, &["ops.example"])?;
    let stranger = Caller::new(port, &authority, Some(&foreign))?;
    assert!(stranger.ask("GET /healthz", "", "").await.is_err());
    Ok(())
}
