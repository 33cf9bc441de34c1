//! TLS between Tower and Beacons: who is let in, who is not and how both learn why, and new files.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, ensure};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tower_tests::{
    Authority, Beacon, BeaconOptions, Tower, TowerOptions, Upstream, authority::TlsFiles, daemon, eventually,
};

use crate::{
    registrar::Registrar,
    support::{Mesh, SOON, answered_by, callers},
};

/// Where a Tower of these tests is, as its certificate says.
const TOWER: &str = "127.0.0.1";

/// Folders for the files of several processes.
struct Folders(TempDir);

impl Folders {
    fn new() -> Result<Self> {
        Ok(Self(TempDir::new()?))
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    fn issue(&self, authority: &Authority, name: &str, names: &[&str]) -> Result<TlsFiles> {
        authority.issue(&self.path(name)?, names)
    }
}

async fn tower(registrar: &Registrar, flags: Vec<String>) -> Result<Tower> {
    let discovery = vec![registrar.discovery()];
    let tower = Tower::start(TowerOptions { discovery, flags, ..TowerOptions::default() }).await?;
    tower.wait_ready(SOON).await?;
    Ok(tower)
}

async fn beacon(tower: &Tower, flags: Vec<String>) -> Result<Beacon> {
    Beacon::start(BeaconOptions { flags, ..BeaconOptions::of(tower.grpc()) }).await
}

/// Waits until the Beacon's page has these words.
async fn beacon_says(beacon: &Beacon, words: &[&str]) {
    eventually(SOON, format!("the Beacon says {words:?}"), async || {
        let page = beacon.http_get("/").await?.ok()?.body;
        ensure!(words.iter().all(|word| page.contains(word)), "{page}");
        Ok(())
    })
    .await;
}

/// Waits until Tower's page has these words.
async fn tower_says(tower: &Tower, words: &[&str]) {
    eventually(SOON, format!("Tower says {words:?}"), async || {
        let page = tower.http_get("/").await?.ok()?.body;
        ensure!(words.iter().all(|word| page.contains(word)), "{page}");
        Ok(())
    })
    .await;
}

async fn metric_is(what: &str, expected: f64, value: impl AsyncFn() -> Result<Option<f64>>) {
    eventually(SOON, format!("{what} is {expected}"), async || {
        let value = value().await?;
        ensure!(value == Some(expected), "it is {value:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn both_ends_show_who_they_are() -> Result<()> {
    let (folders, authority) = (Folders::new()?, Authority::new("mesh")?);
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    registrar.register(alpha.address()).await?;
    let tower = tower(&registrar, folders.issue(&authority, "tower", &[TOWER])?.tower()).await?;
    let id = "spiffe://mesh/host/7";
    let flags = folders.issue(&authority, "beacon", &["host-7.example", id])?.beacon();
    let options = BeaconOptions { flags, unnamed: true, ..BeaconOptions::of(tower.grpc()) };
    let beacon = Beacon::start(options).await?;
    beacon.wait_ready(SOON).await?;
    let mesh = Mesh { beacon, tower };
    let envoys = mesh.envoys().await?;
    answered_by(&callers(&envoys), "web", &["alpha"]).await;

    let beacons = mesh.tower.http_get("/api/v1/beacons").await?.ok()?.json()?;
    assert_eq!(beacons["beacons"][0]["node_id"], id, "the node is who its certificate says");
    assert!(beacons["beacons"][0]["peer"].is_string(), "{beacons}");
    for (process, ends) in [
        ("Tower", mesh.tower.metric("tower_tls_certificate_expiry_timestamp_seconds").await?),
        ("the Beacon", mesh.beacon.metric("beacon_tls_certificate_expiry_timestamp_seconds").await?),
    ] {
        assert!(ends.is_some_and(|ends| ends > 1e9), "{process}: {ends:?}");
    }
    for log in [mesh.tower.log(), mesh.beacon.log()] {
        assert!(!log.contains("PRIVATE KEY"));
    }
    Ok(())
}

#[tokio::test]
async fn strangers_are_refused_and_both_say_why() -> Result<()> {
    let (folders, ours, theirs) = (Folders::new()?, Authority::new("ours")?, Authority::new("theirs")?);
    let registrar = Registrar::in_files()?;
    let tower = tower(&registrar, folders.issue(&ours, "tower", &[TOWER])?.tower()).await?;

    // The Beacon does not trust Tower.
    let stranger = beacon(&tower, folders.issue(&theirs, "stranger", &["beacon"])?.beacon()).await?;
    beacon_says(&stranger, &["NOT CONNECTED", "UnknownIssuer"]).await;
    tower_says(&tower, &["refused", "received fatal alert: UnknownCA"]).await;
    drop(stranger);

    // Tower does not trust the Beacon.
    let impostor = folders.issue(&theirs, "impostor", &["beacon"])?;
    impostor.write("ca.pem", ours.certificate())?;
    let impostor = beacon(&tower, impostor.beacon()).await?;
    beacon_says(&impostor, &["NOT CONNECTED", "UnknownCA"]).await;
    tower_says(&tower, &["refused", "UnknownIssuer"]).await;
    drop(impostor);

    // The Beacon has no certificate.
    let anonymous = folders.issue(&ours, "anonymous", &["beacon"])?;
    let anonymous = beacon(&tower, anonymous.anonymous()).await?;
    beacon_says(&anonymous, &["NOT CONNECTED", "CertificateRequired"]).await;
    tower_says(&tower, &["refused", "peer sent no certificates"]).await;

    // And without TLS nothing is said at all.
    let plain = beacon(&tower, Vec::new()).await?;
    beacon_says(&plain, &["NOT CONNECTED"]).await;
    assert_eq!(tower.http_get("/api/v1/beacons").await?.json()?["beacons"].as_array().map(Vec::len), Some(0));
    assert!(tower.metric("tower_connections_refused_total").await?.is_some_and(|count| count >= 3.0));
    Ok(())
}

#[tokio::test]
async fn a_tower_that_is_not_where_its_certificate_says_is_refused() -> Result<()> {
    let (folders, authority) = (Folders::new()?, Authority::new("mesh")?);
    let registrar = Registrar::in_files()?;
    let tower = tower(&registrar, folders.issue(&authority, "tower", &["tower.example"])?.tower()).await?;
    let beacon = beacon(&tower, folders.issue(&authority, "beacon", &["beacon"])?.beacon()).await?;
    beacon_says(&beacon, &["NOT CONNECTED", "not valid for name", "tower.example"]).await;
    Ok(())
}

#[tokio::test]
async fn a_node_with_the_certificate_of_another_is_refused() -> Result<()> {
    let (folders, authority) = (Folders::new()?, Authority::new("mesh")?);
    let registrar = Registrar::in_files()?;
    let tower = tower(&registrar, folders.issue(&authority, "tower", &[TOWER])?.tower()).await?;
    let flags = folders.issue(&authority, "other", &["host-1.example"])?.beacon();
    // The harness names it `beacon`.
    let beacon = beacon(&tower, flags).await?;
    let words = ["the node beacon", "the client certificate is for host-1.example"];
    beacon_says(&beacon, &words).await;
    tower_says(&tower, &words).await;
    Ok(())
}

#[tokio::test]
async fn new_files_are_used_for_new_connections_and_bad_ones_are_not() -> Result<()> {
    let (folders, old, new) = (Folders::new()?, Authority::new("old")?, Authority::new("new")?);
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    registrar.register(alpha.address()).await?;
    let mut tower = tower(&registrar, folders.issue(&old, "tower", &[TOWER])?.tower()).await?;
    let first = beacon(&tower, folders.issue(&old, "beacon", &["beacon"])?.beacon()).await?;
    first.wait_ready(SOON).await?;

    // Another authority altogether, while the stream is up.
    let files = folders.issue(&new, "tower", &[TOWER])?;
    folders.issue(&new, "beacon", &["beacon"])?;
    eventually(SOON, "both have read the new files", async || {
        let status = first.http_get("/status").await?.ok()?.json()?;
        ensure!(status["tls"]["fault"].is_null() && status["tls"]["reloads"] != 0, "{}", status["tls"]);
        let reloads = tower.metric("tower_tls_reloads_total").await?;
        ensure!(reloads >= Some(1.0), "{reloads:?} reloads of Tower");
        ensure!(tower.metric("tower_tls_files_faulty").await? == Some(0.0), "Tower's files are faulty");
        Ok(())
    })
    .await;
    metric_is("streams of the Beacon", 1.0, async || first.metric("beacon_link_connects_total").await).await;

    // Who trusts only the new authority is let in, by the Tower that began with the old one.
    let second = beacon(&tower, folders.issue(&new, "second", &["beacon"])?.beacon()).await?;
    second.wait_ready(SOON).await?;
    // And the first Beacon uses its new files for its next stream.
    tower.kill();
    tower.restart().await?;
    metric_is("streams of the Beacon", 2.0, async || first.metric("beacon_link_connects_total").await).await;

    files.write("key.pem", "rubbish")?;
    metric_is("faulty", 1.0, async || tower.metric("tower_tls_files_faulty").await).await;
    tower_says(&tower, &["--tls-key", "key.pem", "no private key in it"]).await;
    let third = beacon(&tower, folders.issue(&new, "third", &["beacon"])?.beacon()).await?;
    third.wait_ready(SOON).await?;
    Ok(())
}

#[tokio::test]
async fn a_beacon_whose_files_come_later_serves_and_then_connects() -> Result<()> {
    let (folders, authority) = (Folders::new()?, Authority::new("mesh")?);
    let registrar = Registrar::in_files()?;
    let tower = tower(&registrar, folders.issue(&authority, "tower", &[TOWER])?.tower()).await?;
    let elsewhere = folders.issue(&authority, "elsewhere", &["beacon"])?;
    let flags = elsewhere.beacon();
    let moved = folders.path("moved")?;
    std::fs::rename(folders.path("elsewhere")?, moved.join("files"))?;
    let beacon = beacon(&tower, flags).await?;
    beacon_says(&beacon, &["NOT CONNECTED", "--tls-ca", "cannot be read"]).await;
    std::fs::rename(moved.join("files"), elsewhere.path("").parent().context("a parent")?.join("elsewhere"))?;
    beacon.wait_ready(SOON).await
}

#[tokio::test]
async fn a_tower_without_its_files_does_not_start() -> Result<()> {
    let folders = Folders::new()?;
    let files = folders.issue(&Authority::new("mesh")?, "tower", &[TOWER])?;
    files.write("cert.pem", "rubbish")?;
    let data = format!("--data-dir={}", folders.path("data")?.display());
    let mut arguments = vec!["--discovery=file:///tmp".to_owned(), data];
    arguments.extend(files.tower());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = daemon::run("tower-server", &arguments).await?;
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("--tls-cert") && message.contains("cert.pem"), "{message}");
    Ok(())
}

#[tokio::test]
async fn http_beyond_loopback_is_https_and_asks_for_no_certificate() -> Result<()> {
    let (folders, authority) = (Folders::new()?, Authority::new("mesh")?);
    let registrar = Registrar::in_files()?;
    let port = tower_tests::ports::free_port();
    let tower = Tower::start(TowerOptions {
        discovery: vec![registrar.discovery()],
        http_listen: Some(([0, 0, 0, 0], port).into()),
        flags: folders.issue(&authority, "tower", &[TOWER])?.tower(),
        ..TowerOptions::default()
    })
    .await?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect((TOWER, port)).await?;
    let mut stream = TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(TOWER)?, tcp).await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: tower\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(tower.http_get("/healthz").await.is_err(), "without TLS there is no answer");
    Ok(())
}
