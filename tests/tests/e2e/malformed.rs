//! What is malformed costs itself only, and can be found: by path, with a reason.

use anyhow::{Result, ensure};
use tower_tests::{EndpointFiles, Tower, Upstream, ZooKeeper, eventually};

use crate::{
    registrar::{Format, SERVICE, member, payload},
    support::{Mesh, SOON, SourceStatus, answered_by, callers, still_answered_by},
};

/// How many objects Tower has set aside, over all its sources.
const PROBLEMS: &str = "tower_source_problems";

/// Payloads of which nothing can be made, and a word that the reason must have.
type Cases<'a> = &'a [(&'a str, &'a [u8], &'a str)];

const SERVERSET: Cases<'static> = &[
    ("member_broken", br#"{"serviceEndpoint":"#, ""),
    ("member_binary", b"\xff\xfe\x00", ""),
    ("member_missing", br#"{"status":"ALIVE"}"#, "serviceEndpoint"),
    ("member_zero", br#"{"serviceEndpoint":{"host":"10.0.0.1","port":0}}"#, "port"),
    ("member_high", br#"{"serviceEndpoint":{"host":"10.0.0.1","port":70000}}"#, "port"),
    ("member_thrift", b"\x0c\x00\x01\x0b\x00\x01\x7f\xff\xff\xff", "not Thrift: byte 10"),
    ("vector_broken", br#"{"vector":"#, "JSON"),
    ("vector_word", br#"{"vector":[{"select":"shard=0","weight":"heavy"}]}"#, "vector[0].weight"),
];

const CURATOR: Cases<'static> = &[
    ("empty", b"", "no data"),
    ("default", b"10.0.0.1", "JSON"),
    ("portless", br#"{"address":"10.0.0.1","port":null,"sslPort":null}"#, "sslPort"),
    ("scope", br#"{"address":"fe80:0:0:0:1%eth0","port":8080}"#, "scope"),
    ("nested", br#"{"address":{"ip":"10.0.0.1"},"port":8080}"#, "address"),
];

const AUTO: Cases<'static> = &[
    ("unknown", br#"{"ip":"10.0.0.1"}"#, "serviceEndpoint"),
    ("thrift", b"\x0c\x00\x01", "Thrift"),
    ("curator", br#"{"address":"10.0.0.1","port":0}"#, "port"),
    ("binary", b"\xff\xfe\x00", ""),
    ("vector_1", br#"{"vector":{}}"#, "vector"),
];

const HOSTPORT: Cases<'static> = &[
    ("binary", b"\xff\xfe\x00", ""),
    ("alone", b"10.0.0.1", "port"),
    ("zero", b"10.0.0.1:0", "port"),
    ("high", b"10.0.0.1:70000", "port"),
    ("word", b"10.0.0.1:http", "port"),
];

/// Of a kingpin member the name is read first, and the data are nothing to complain about.
const KINGPIN: Cases<'static> = &[
    ("2890a90311ce4d8aa0656bf1650d7e6c-10.0.0.1", b"", "port"),
    ("2890a90311ce4d8aa0656bf1650d7e6d-10.0.0.1:0", b"", "port"),
    ("2890a90311ce4d8aa0656bf1650d7e6e-10.0.0.1:70000", b"", "port"),
];

async fn siblings_are_unaffected(format: Format, good: &str, cases: Cases<'_>) -> Result<()> {
    siblings_read_as_are_unaffected(format.name(), format, good, cases).await
}

async fn siblings_read_as_are_unaffected(
    read_as: &str,
    format: Format,
    good: &str,
    cases: Cases<'_>,
) -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let good = member(&good.replace("ADDRESS", &alpha.address().to_string()));
    registry.create(&good, &payload(format, alpha.address())).await?;
    // One is there when Tower starts, the others come later.
    let (early, late) = cases.split_at(1);
    for (name, data, _) in early {
        registry.create(&member(name), data).await?;
    }
    let mesh = Mesh::start(registry.discovery(read_as)).await?;
    let envoys = mesh.envoys().await?;
    let running = callers(&envoys);
    answered_by(&running, SERVICE, &["alpha"]).await;
    for (name, data, _) in late {
        registry.create(&member(name), data).await?;
    }
    for (name, _, word) in cases {
        let path = registry.absolute(&member(name));
        eventually(SOON, format!("{path} is a problem"), async || {
            let status = SourceStatus::of(&mesh.tower).await?;
            let reason = status.reason(&path)?;
            ensure!(!reason.is_empty() && reason.contains(word), "the reason is: {reason}");
            Ok(())
        })
        .await;
    }
    problems_are(&mesh.tower, cases.len()).await;
    for caller in &running {
        still_answered_by(caller, SERVICE, &["alpha"]).await?;
    }

    for (name, ..) in cases {
        registry.delete(&member(name)).await?;
    }
    problems_are(&mesh.tower, 0).await;
    Ok(())
}

/// Waits until the page and the metric agree on this number.
async fn problems_are(tower: &Tower, count: usize) {
    eventually(SOON, format!("{count} problems"), async || {
        let listed = SourceStatus::of(tower).await?.problems.len();
        let metric = tower.metric(PROBLEMS).await?.unwrap_or_default();
        ensure!(listed == count, "{listed} are listed");
        ensure!(metric.to_string() == count.to_string(), "the metric says {metric}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn kingpin_siblings() -> Result<()> {
    let good = "69ca9daa191e40aab2c31d00aa11bb22-ADDRESS";
    siblings_are_unaffected(Format::Kingpin, good, KINGPIN).await
}

#[tokio::test]
async fn serverset_siblings() -> Result<()> {
    siblings_are_unaffected(Format::Serverset, "member_0000000001", SERVERSET).await
}

#[tokio::test]
async fn hostport_siblings() -> Result<()> {
    siblings_are_unaffected(Format::Hostport, "good", HOSTPORT).await
}

#[tokio::test]
async fn curator_siblings() -> Result<()> {
    siblings_are_unaffected(Format::Curator, "5b7e", CURATOR).await
}

#[tokio::test]
async fn siblings_of_several_formats() -> Result<()> {
    siblings_read_as_are_unaffected("auto", Format::Thrift, "member_0000000001", AUTO).await
}

#[tokio::test]
async fn a_znode_that_turns_bad_keeps_its_last_good_state() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let znode = member("member_0000000001");
    registry.create(&znode, &payload(Format::Serverset, alpha.address())).await?;
    let mesh = Mesh::start(registry.discovery(Format::Serverset.name())).await?;
    let envoys = mesh.envoys().await?;
    let running = callers(&envoys);
    answered_by(&running, SERVICE, &["alpha"]).await;

    registry.set(&znode, b"{\"serviceEndpoint\":{\"host\":7}}").await?;
    problems_are(&mesh.tower, 1).await;
    for caller in &running {
        still_answered_by(caller, SERVICE, &["alpha"]).await?;
    }

    registry.set(&znode, &payload(Format::Serverset, beta.address())).await?;
    answered_by(&running, SERVICE, &["beta"]).await;
    problems_are(&mesh.tower, 0).await;
    Ok(())
}

#[tokio::test]
async fn a_file_that_turns_bad_keeps_its_last_good_state() -> Result<()> {
    let files = EndpointFiles::new()?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let other = Upstream::start("other").await?;
    files.write(SERVICE, &[alpha.address().into()])?;
    files.write("other", &[other.address().into()])?;
    let mesh = Mesh::start(files.discovery()).await?;
    let envoys = mesh.envoys().await?;
    let running = callers(&envoys);
    answered_by(&running, SERVICE, &["alpha"]).await;

    let path = files.path(SERVICE).to_string_lossy().into_owned();
    // In each, one endpoint is right: a file is applied whole or not at all.
    let good = format!("- {{address: 127.0.0.1, port: {}}}", beta.address().port());
    let cases = [
        (format!("service: web\nendpoints:\n{good}\n- {{address: 127.0.0.1, port: high}}\n"), "port"),
        (format!("service: web\nendpoints:\n{good}\n- {{address: 127.0.0.1, port: 0}}\n"), "port"),
        (format!("service: web\nendpoints:\n{good}\n- {{port: 80}}\n"), "address"),
        (format!("endpoints:\n{good}\n"), "service"),
        (format!("service: web\nendpoints:\n{good}\n- {{address: [\n"), ""),
    ];
    for (text, word) in &cases {
        files.write_text(SERVICE, text)?;
        eventually(SOON, format!("it is a problem: {text}"), async || {
            let status = SourceStatus::of(&mesh.tower).await?;
            let reason = status.reason(&path)?;
            ensure!(!reason.is_empty() && reason.contains(word), "the reason is: {reason}");
            Ok(())
        })
        .await;
        problems_are(&mesh.tower, 1).await;
        for caller in &running {
            still_answered_by(caller, SERVICE, &["alpha"]).await?;
            still_answered_by(caller, "other", &["other"]).await?;
        }
    }

    files.write(SERVICE, &[beta.address().into()])?;
    answered_by(&running, SERVICE, &["beta"]).await;
    problems_are(&mesh.tower, 0).await;
    Ok(())
}
