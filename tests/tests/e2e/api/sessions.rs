//! Sessions of browsers: what a cookie is worth, where, and for how long.

use anyhow::{Context, Result, ensure};
use http::{Request, header};
use serde_json::{Value, json};
use tower_tests::{EndpointFiles, Tower, TowerOptions, ZooKeeper, eventually, http::Reply};

use super::{World, document, expect};
use crate::support::SOON;

/// A browser with a session.
struct Browser {
    cookie: String,
    csrf: String,
}

impl Browser {
    async fn sign_in(tower: &Tower, token: &str) -> Result<Self> {
        let reply = sign_in(tower, token).await?;
        let who = expect(&reply, 200)?;
        let set = reply.headers.get(header::SET_COOKIE).context("no cookie")?.to_str()?;
        ensure!(set.contains("; HttpOnly; SameSite=Strict; Path=/; Max-Age=43"), "{set}");
        let cookie = set.split(';').next().unwrap_or_default().to_owned();
        let secret = token.rsplit('_').next().context("a token has a secret")?;
        ensure!(
            !set.contains(secret) && !reply.body.contains(secret),
            "the token is told: {set} {}",
            reply.body
        );
        Ok(Self { cookie, csrf: who["csrf"].as_str().context("no value against other sites")?.to_owned() })
    }

    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        request.header(header::COOKIE, &self.cookie).header(header::CONTENT_TYPE, "application/yaml")
    }

    async fn get(&self, tower: &Tower, path: &str) -> Result<Reply> {
        send(tower, self.request("GET", path), "").await
    }

    /// Uploads a version, as its page does.
    async fn upload(&self, tower: &Tower, seconds: u32) -> Result<Reply> {
        let request = self.request("POST", "/services/web/versions").header("X-Tower-CSRF", &self.csrf);
        send(tower, request, &document("web", &format!("{seconds}s"))).await
    }
}

async fn sign_in(tower: &Tower, token: &str) -> Result<Reply> {
    let request = Request::post("/api/v1/session").header(header::CONTENT_TYPE, "application/json");
    send(tower, request, &json!({ "token": token }).to_string()).await
}

/// Without the token that the harness would add.
async fn send(tower: &Tower, request: http::request::Builder, body: &str) -> Result<Reply> {
    tower_tests::http::send(tower.http(), request.body(body.to_owned().into())?).await
}

fn problem(reply: &Reply, status: u16) -> Result<(Value, Value)> {
    let told = expect(reply, status)?;
    Ok((told["code"].clone(), told["field"].clone()))
}

#[tokio::test]
async fn a_session_outlives_a_restart_and_ends_with_its_token() -> Result<()> {
    let mut world = World::start().await?;
    let owner = world.somebody(&["owner"], &["web"]).await?.token;
    let browser = Browser::sign_in(&world.tower, &owner).await?;
    expect(&browser.upload(&world.tower, 1).await?, 201)?;
    world.tower.kill();
    world.tower.restart().await?;
    world.tower.wait_ready(SOON).await?;
    let who = expect(&browser.get(&world.tower, "/whoami").await?, 200)?;
    assert_eq!((&who["name"], &who["csrf"]), (&json!("owner"), &json!(browser.csrf)));
    expect(&browser.upload(&world.tower, 2).await?, 201)?;

    let id = who["credential"].as_str().context("nobody")?;
    let revoke = world.admin()?.request("DELETE", &format!("/tokens/{id}"));
    expect(&world.tower.ask(revoke, "").await?, 200)?;
    let refused = browser.get(&world.tower, "/whoami").await?;
    let gone = refused.headers.get(header::SET_COOKIE).context("the cookie stays")?.to_str()?;
    assert!(gone.starts_with("tower_session=; ") && gone.ends_with("Max-Age=0"), "{gone}");
    ensure!(
        expect(&refused, 401)?["detail"].as_str().is_some_and(|why| why.contains("revoked")),
        "{}",
        refused.body
    );
    assert_eq!(problem(&sign_in(&world.tower, &owner).await?, 401)?.1, "token");
    Ok(())
}

#[tokio::test]
async fn a_session_is_good_at_every_tower_of_its_log() -> Result<()> {
    let zookeeper = ZooKeeper::start().await?;
    let files = EndpointFiles::new()?;
    let options = || TowerOptions {
        discovery: vec![files.discovery()],
        flags: vec![format!("--event-log=zk://{}/tower", zookeeper.connect_string())],
        ..TowerOptions::default()
    };
    let (one, other) = (Tower::start(options()).await?, Tower::start(options()).await?);
    for tower in [&one, &other] {
        tower.wait_ready(SOON).await?;
    }
    let admin = eventually(SOON, "one of them has made a token", async || {
        one.admin_token().or_else(|| other.admin_token()).context("no token yet")
    })
    .await;
    let browser = Browser::sign_in(&one, &admin).await?;
    expect(&browser.upload(&one, 1).await?, 201)?;
    eventually(SOON, "the other one knows the token", async || {
        browser.get(&other, "/whoami").await?.ok().map(drop)
    })
    .await;
    expect(&browser.upload(&other, 2).await?, 201)?;
    Ok(())
}

#[tokio::test]
async fn other_sites_and_guesses_change_nothing() -> Result<()> {
    let world = World::start().await?;
    let tower = &world.tower;
    let browser = Browser::sign_in(tower, &world.admin()?.token).await?;
    let upload = || browser.request("POST", "/services/web/versions");
    let csrf = || upload().header("X-Tower-CSRF", &browser.csrf);
    let text = document("web", "1s");
    let host = tower.http().to_string();
    for (request, field) in [
        (upload(), json!("X-Tower-CSRF")),
        (upload().header("X-Tower-CSRF", "0".repeat(64)), json!("X-Tower-CSRF")),
        (csrf().header(header::HOST, &host).header(header::ORIGIN, "http://evil.example"), Value::Null),
        (csrf().header("Sec-Fetch-Site", "cross-site"), Value::Null),
        (csrf().header("Sec-Fetch-Site", "same-site"), Value::Null),
    ] {
        let (code, named) = problem(&send(tower, request, &text).await?, 403)?;
        assert_eq!((code, named), (json!("forbidden"), field));
    }
    // Nor does another site sign anybody in.
    let token = json!({ "token": world.admin()?.token }).to_string();
    let foreign = Request::post("/api/v1/session")
        .header(header::CONTENT_TYPE, "application/json")
        .header("Sec-Fetch-Site", "cross-site");
    problem(&send(tower, foreign, &token).await?, 403)?;
    let form = Request::post("/api/v1/session").header(header::CONTENT_TYPE, "text/plain");
    problem(&send(tower, form, &token).await?, 415)?;

    // A session cannot be made longer, nor somebody else's.
    let [id, until, signature] = browser.cookie.split('.').collect::<Vec<_>>()[..] else {
        anyhow::bail!("{}", browser.cookie)
    };
    let later: u64 = until.parse::<u64>()? + 1;
    for forged in
        [format!("{id}.{later}.{signature}"), "tower_session=rubbish".to_owned(), "tower_session=".to_owned()]
    {
        let forged = Browser { cookie: forged, csrf: browser.csrf.clone() };
        problem(&forged.get(tower, "/whoami").await?, 401)?;
    }
    let own = csrf().header(header::HOST, &host).header(header::ORIGIN, format!("http://{host}"));
    expect(&send(tower, own.header("Sec-Fetch-Site", "same-origin"), &text).await?, 201)?;
    let out = browser.request("DELETE", "/session").header("X-Tower-CSRF", &browser.csrf);
    let out = send(tower, out, "").await?;
    assert!(out.status == 204 && out.headers.contains_key(header::SET_COOKIE));
    Ok(())
}
