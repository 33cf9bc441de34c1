//! An ensemble that lets in who has a certificate and a password: how Tower gets in, and what it says when it
//! does not.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tower_tests::{Authority, Login, Tower, TowerOptions, Upstream, ZooKeeper, eventually};

use crate::{
    registrar::{Format, SERVICE, member, payload},
    support::{Mesh, SOON, answered_by, callers},
};

const PASSWORD: &str = "correct-horse-7";
const WRONG: &str = "battery-staple-8";

/// A server, and a folder with what clients need: `ca`, `cert`, `key`, `password`, and the same wrong.
struct Secured {
    authority: Authority,
    zookeeper: ZooKeeper,
    secure_port: u16,
    folder: tempfile::TempDir,
}

impl Secured {
    async fn start() -> Result<Self> {
        let authority = Authority::new("the ensemble's CA")?;
        let login = Login { user: "tower".to_owned(), password: PASSWORD.to_owned() };
        let (zookeeper, secure_port) = ZooKeeper::start_secured(&authority, login).await?;
        let folder = tempfile::tempdir()?;
        let other = Authority::new("another CA")?;
        let (mine, stranger) = (authority.sign(&["tower"])?, other.sign(&["tower"])?);
        for (name, text) in [
            ("ca", authority.certificate()),
            ("other-ca", other.certificate()),
            ("cert", &mine.certificate),
            ("key", &mine.key),
            ("other-cert", &stranger.certificate),
            ("other-key", &stranger.key),
            ("password", PASSWORD),
            ("wrong-password", WRONG),
        ] {
            fs::write(folder.path().join(name), format!("{text}\n"))?;
        }
        Ok(Self { authority, zookeeper, secure_port, folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of a source by TLS; `FOLDER` in the query stands for the folder.
    fn url(&self, root: &str, id: &str, query: &str) -> String {
        let query = query.replace("FOLDER", &self.path().to_string_lossy());
        format!(
            "zks://127.0.0.1:{}{root}/discovery/{{service}}/prod?id={id}&session_timeout=5s&optional=true&{query}",
            self.secure_port
        )
    }
}

/// State and reason of a source.
async fn source(tower: &Tower, id: &str) -> Result<(String, String)> {
    let page = tower.http_get("/api/v1/sources").await?.ok()?.json()?;
    let sources = page.get("sources").and_then(Value::as_array).context("no list of sources")?;
    let source = sources.iter().find(|source| source["id"] == id).context("no such source")?;
    let text = |key: &str| source[key].as_str().unwrap_or_default().to_owned();
    Ok((text("state"), text("reason")))
}

async fn says(tower: &Tower, id: &str, state: &str, words: &[&str]) {
    eventually(SOON, format!("source {id} is {state}, because of {words:?}"), async || {
        let (found, reason) = source(tower, id).await?;
        ensure!(found == state && words.iter().all(|word| reason.contains(word)), "{found}: {reason}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn by_tls_and_sasl() -> Result<()> {
    let secured = Secured::start().await?;
    let registry = secured.zookeeper.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    registry.create(&member("a"), &payload(Format::Hostport, alpha.address())).await?;
    let root = registry.absolute("");
    let access = "ca=FOLDER/ca&cert=FOLDER/cert&key=FOLDER/key&user=tower&password_file=FOLDER/password";
    let mesh = Mesh::start(secured.url(root.trim_end_matches('/'), "zk", access)).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &["alpha"]).await;
    registry.create(&member("b"), &payload(Format::Curator, beta.address())).await?;
    answered_by(&callers, SERVICE, &["alpha", "beta"]).await;
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_with_access_is_said() -> Result<()> {
    let secured = Secured::start().await?;
    let registry = secured.zookeeper.root().await?;
    registry.create(&member("a"), b"10.0.0.1:80").await?;
    let root = registry.absolute("");
    let root = root.trim_end_matches('/');
    let identity = "cert=FOLDER/cert&key=FOLDER/key";
    let login = "user=tower&password_file=FOLDER/password";
    let plain = registry.discovery("auto");
    let sources = [
        secured.url(
            root,
            "password",
            &format!("ca=FOLDER/ca&{identity}&user=tower&password_file=FOLDER/wrong-password"),
        ),
        secured.url(
            root,
            "user",
            &format!("ca=FOLDER/ca&{identity}&user=nobody&password_file=FOLDER/wrong-password"),
        ),
        secured.url(root, "login", &format!("ca=FOLDER/ca&{identity}")),
        secured.url(root, "ca", &format!("ca=FOLDER/other-ca&{identity}&{login}")),
        secured.url(root, "anonymous", &format!("ca=FOLDER/ca&{login}")),
        secured.url(
            root,
            "stranger",
            &format!("ca=FOLDER/ca&cert=FOLDER/other-cert&key=FOLDER/other-key&{login}"),
        ),
        secured.url(root, "missing", &format!("ca=FOLDER/none&{identity}&{login}")),
        secured.url(root, "mixed", &format!("ca=FOLDER/ca&cert=FOLDER/cert&key=FOLDER/other-key&{login}")),
        format!("{plain}&id=plain&optional=true&session_timeout=5s"),
        format!(
            "zk://127.0.0.1:{}{root}/discovery/{{service}}/prod?id=no-tls&optional=true&session_timeout=5s",
            secured.secure_port
        ),
    ];
    let tower = Tower::start(TowerOptions { discovery: sources.into(), ..TowerOptions::default() }).await?;
    says(&tower, "password", "loading", &["refused user \"tower\"", "wrong-password"]).await;
    says(&tower, "user", "loading", &["refused user \"nobody\""]).await;
    says(&tower, "login", "loading", &["requires a login", "password_file=FILE"]).await;
    says(&tower, "plain", "loading", &["requires a login"]).await;
    says(&tower, "ca", "loading", &["TLS: invalid peer certificate: UnknownIssuer"]).await;
    says(&tower, "anonymous", "loading", &["TLS: ", "ertificate"]).await;
    says(&tower, "stranger", "loading", &["TLS: ", "ertificate"]).await;
    says(&tower, "missing", "loading", &["ca ", "/none: cannot be read: No such file"]).await;
    says(&tower, "mixed", "loading", &["does not go with"]).await;
    says(&tower, "no-tls", "loading", &["zks://"]).await;

    // What is mended is noticed without a restart.
    fs::copy(secured.path().join("password"), secured.path().join("wrong-password"))?;
    says(&tower, "password", "live", &[]).await;
    fs::write(secured.path().join("none"), secured.authority.certificate())?;
    says(&tower, "missing", "live", &[]).await;

    // Neither password is anywhere to be seen.
    let pages = [tower.log(), tower.http_get("/api/v1/sources").await?.body, tower.http_get("/").await?.body];
    for page in pages {
        for secret in [PASSWORD, WRONG] {
            ensure!(!page.contains(secret), "a password is shown: {page}");
        }
        ensure!(!page.contains("PRIVATE KEY"), "a key is shown: {page}");
    }
    Ok(())
}

#[tokio::test]
async fn by_a_znodes_own_password() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let owner = Login { user: "tower".to_owned(), password: PASSWORD.to_owned() };
    registry.create_guarded(&member("a"), b"10.0.0.1:80", &owner).await?;
    let folder = tempfile::tempdir()?;
    let files = [("right", PASSWORD), ("wrong", WRONG)];
    for (name, password) in files {
        fs::write(folder.path().join(name), password)?;
    }
    let url = |(id, _): (&str, &str)| {
        let login = format!("user=tower&password_file={}/{id}&auth=digest", folder.path().display());
        format!("{}&id={id}&{login}", registry.discovery("auto"))
    };
    let tower =
        Tower::start(TowerOptions { discovery: files.map(url).into(), ..TowerOptions::default() }).await?;
    says(&tower, "right", "live", &[]).await;
    // ZooKeeper lets in whoever says to be somebody, and compares at each znode.
    says(&tower, "wrong", "live", &[]).await;
    let page = tower.http_get("/api/v1/sources").await?.ok()?.json()?;
    for source in page["sources"].as_array().context("no sources")? {
        let (endpoints, problems) = (&source["endpoints"], &source["problems"]);
        if source["id"] == "right" {
            ensure!(*endpoints == 1 && problems.as_array().is_some_and(Vec::is_empty), "{source}");
        } else {
            let reason = problems[0]["reason"].as_str().unwrap_or_default();
            ensure!(*endpoints == 0 && reason.contains("not authorized to read it"), "{source}");
        }
    }
    Ok(())
}
