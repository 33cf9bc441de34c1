//! Who may do what: by role and service, by any path; tokens that end, and secrets that stay secret.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tower_tests::eventually;

use super::{Somebody, World, document, expect};
use crate::support::SOON;

const PLATFORM: &str = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {}\n\
                        spec: {callers: {connectTimeout: 3s}}\n";

/// Every write of the API at what belongs to others: method, path in the description, the path that is asked, and a
/// body. Documents are YAML, all else is JSON.
fn writes(activation: &str, token: &str, source: &str) -> Vec<(&'static str, &'static str, String, Body)> {
    let activation = format!("/activations/{activation}/abort");
    let ads = || Body::Document(document("ads", "9s"));
    let part = || Body::Document(PLATFORM.to_owned());
    let at_once = json!({"version": 1, "at_once": true, "reason": "mine"});
    let weights = json!({"weights": {"a": 1}, "at_once": true, "reason": "mine"});
    let admin = json!({"name": "me", "roles": ["admin"]});
    let mut writes = vec![
        ("POST", "/services/{service}/versions", "/services/ads/versions".into(), ads()),
        (
            "POST",
            "/services/{service}/versions/{number}/approve",
            "/services/ads/versions/1/approve".into(),
            Body::None,
        ),
        (
            "POST",
            "/services/{service}/versions/{number}/retire",
            "/services/ads/versions/1/retire".into(),
            Body::None,
        ),
        ("POST", "/services/{service}/activations", "/services/ads/activations".into(), Body::Json(at_once)),
        ("PUT", "/services/{service}/traffic", "/services/ads/traffic".into(), Body::Json(weights)),
        ("POST", "/services/{service}/rollback", "/services/ads/rollback".into(), Body::None),
        (
            "POST",
            "/services/{service}/deactivate",
            "/services/ads/deactivate".into(),
            Body::Json(json!({"reason": "mine"})),
        ),
        ("POST", "/activations/{id}/abort", activation, Body::None),
        ("POST", "/tokens", "/tokens".into(), Body::Json(admin)),
        ("DELETE", "/tokens/{id}", format!("/tokens/{token}"), Body::None),
        ("POST", "/holds/{id}/release", "/holds/zk-1/release".into(), Body::None),
        (
            "POST",
            "/sources/{id}/adopt",
            format!("/sources/{source}/adopt"),
            Body::Json(json!({"incarnation": "x"})),
        ),
    ];
    for (all, one) in [("/platform", "/platform/{service}"), ("/security", "/security/{service}")] {
        writes.push(("PUT", all, all.into(), part()));
        writes.push(("DELETE", all, all.into(), Body::None));
        for service in ["ads", "web"] {
            writes.push(("PUT", one, format!("{all}/{service}"), part()));
            writes.push(("DELETE", one, format!("{all}/{service}"), Body::None));
        }
    }
    writes
}

enum Body {
    None,
    Json(Value),
    Document(String),
}

impl Somebody<'_> {
    async fn write(&self, method: &str, path: &str, body: &Body) -> Result<tower_tests::http::Reply> {
        match body {
            Body::None => self.tower.ask(self.request(method, path), "").await,
            Body::Json(body) => self.json(method, path, body).await,
            Body::Document(text) => self.document(method, path, text).await,
        }
    }
}

/// `ads`, with a version that is active for everyone, and the id of its activation.
async fn with_ads(admin: &Somebody<'_>) -> Result<String> {
    expect(&admin.document("POST", "/services/ads/versions", &document("ads", "1s")).await?, 201)?;
    let activate = json!({"version": 1, "at_once": true, "reason": "first"});
    let started = admin.json("POST", "/services/ads/activations", &activate).await?.json()?;
    let id = started["activation"]["id"].as_str().with_context(|| format!("no activation: {started}"))?;
    Ok(id.to_owned())
}

async fn index(admin: &Somebody<'_>) -> Result<u64> {
    admin.get("/activity?limit=1").await?.ok()?.json()?["entries"][0]["index"].as_u64().context("no index")
}

#[tokio::test]
async fn a_token_for_one_service_touches_nothing_else_by_any_path() -> Result<()> {
    let world = World::start().await?;
    let admin = world.admin()?;
    let activation = with_ads(&admin).await?;
    let sources = admin.get("/sources").await?.ok()?.json()?;
    let source = sources["sources"][0]["id"].as_str().context("no source")?;
    let token =
        admin.get("/whoami").await?.ok()?.json()?["credential"].as_str().context("nobody")?.to_owned();

    // All that writes is in the table: what is not in it would not be tried.
    let description = admin.get("/openapi.json").await?.ok()?.json()?;
    let mut described = BTreeSet::new();
    for (path, item) in description["paths"].as_object().context("no paths")? {
        for method in item.as_object().context("no methods")?.keys().filter(|method| *method != "get") {
            // A plan is a question, and a session is one's own.
            if !path.ends_with("/plan") && !path.ends_with("/session") {
                described.insert((method.to_uppercase(), path.trim_start_matches("/api/v1").to_owned()));
            }
        }
    }
    let table = writes(&activation, &token, source);
    let tried: BTreeSet<_> =
        table.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert_eq!(tried, described);

    let owner = world.somebody(&["owner"], &["web"]).await?;
    let viewer = world.somebody(&["viewer"], &[]).await?;
    let before = eventually(SOON, "the activation is over", async || {
        let activations = admin.get("/services/ads/activations").await?.ok()?.json()?;
        // Without a Beacon Tower has nobody to wait for, and says so in the log; then the log is quiet.
        let reported = !activations["activations"][0]["steps"][0]["hosts"].is_null();
        ensure!(reported, "{activations}");
        index(&admin).await
    })
    .await;
    for somebody in [&owner, &viewer] {
        for (method, _, path, body) in &table {
            let reply = somebody.write(method, path, body).await?;
            ensure!(reply.status == 403, "{method} {path}: {} {}", reply.status, reply.body);
            let problem = reply.json()?;
            assert_eq!(problem["code"], "forbidden", "{problem}");
        }
    }
    assert_eq!(index(&admin).await?, before, "nothing is in the log");

    // Their own service is theirs.
    let own = owner.document("POST", "/services/web/versions", &document("web", "2s")).await?;
    assert_eq!(expect(&own, 201)?["version"], "web@1");
    let viewers = viewer.document("POST", "/services/web/versions", &document("web", "3s")).await?;
    assert_eq!(expect(&viewers, 403)?["owner"], "web-team", "whom to ask is told");
    Ok(())
}

#[tokio::test]
async fn what_belongs_to_others_is_not_in_ones_document() -> Result<()> {
    let world = World::start().await?;
    let owner = world.somebody(&["owner"], &["web"]).await?;
    let head = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {name: web}\n";
    for (spec, whose) in [
        ("inbound: {tls: {mode: strict}}", "security"),
        ("inbound: {allowedCallers: {services: [ads]}}", "security"),
        ("inbound: {ports: [{name: http, port: 80, appPort: 8080}]}", "platform"),
        ("patches: [{kind: Cluster, name: web, merge: {}}]", "platform"),
    ] {
        let text = format!("{head}spec: {{{spec}}}\n");
        let refused =
            expect(&owner.document("POST", "/services/web/versions?file=web.yaml", &text).await?, 422)?;
        let finding = &refused["findings"][0];
        assert_eq!((&finding["file"], &finding["line"]), (&json!("web.yaml"), &json!(4)), "{refused}");
        assert_eq!(finding["owner"], whose, "{spec}: {refused}");
        let json = json!({
            "apiVersion": "tower.mesh/v1", "kind": "MeshService", "metadata": {"name": "web"},
            "spec": serde_saphyr::from_str::<Value>(&format!("{{{spec}}}"))?,
        });
        expect(&owner.json("POST", "/services/web/versions", &json).await?, 422)?;
    }
    // Nor is another service, whatever the path says.
    let others = owner.document("POST", "/services/web/versions", &document("ads", "1s")).await?;
    assert_eq!(expect(&others, 422)?["field"], "metadata.name");
    assert_eq!(owner.get("/services/web/versions").await?.status, 404, "there is no version");
    Ok(())
}

#[tokio::test]
async fn those_who_own_the_parts_own_only_the_parts() -> Result<()> {
    let world = World::start().await?;
    let security_part = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {}\n\
                         spec: {inbound: {tls: {mode: permissive}}}\n";
    let platform = world.somebody(&["platform"], &[]).await?;
    let security = world.somebody(&["security"], &[]).await?;
    expect(&platform.document("PUT", "/platform?reason=slow", PLATFORM).await?, 200)?;
    for (somebody, path, text) in [
        (&platform, "/security", security_part),
        (&security, "/platform", PLATFORM),
        (&platform, "/services/web/versions", &*document("web", "1s")),
        (&security, "/services/web/versions", &*document("web", "1s")),
    ] {
        let method = if path.starts_with("/services") { "POST" } else { "PUT" };
        expect(&somebody.document(method, path, text).await?, 403)?;
    }
    let part = security.get("/platform").await?.ok()?.json()?;
    assert_eq!((&part["revision"], &part["reason"]), (&json!(1), &json!("slow")));
    assert_eq!(part["document"]["spec"]["callers"]["connectTimeout"], "3s");
    let stale = platform.request("DELETE", "/platform").header("If-Match", "\"1\"");
    assert_eq!(world.tower.ask(stale, "").await?.status, 412);
    let etag = format!("\"{}\"", part["index"]);
    let now = platform.request("DELETE", "/platform?reason=gone").header("If-Match", etag);
    expect(&world.tower.ask(now, "").await?, 200)?;
    assert_eq!(platform.get("/platform").await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn tokens_end_and_are_revoked_and_the_last_admin_stays() -> Result<()> {
    let world = World::start().await?;
    let admin = world.admin()?;
    let body = json!({"name": "brief", "roles": ["viewer"], "ttl_seconds": 1});
    let brief = expect(&admin.json("POST", "/tokens", &body).await?, 201)?;
    let token = brief["token"].as_str().context("no token")?.to_owned();
    let brief = Somebody { tower: &world.tower, token };
    eventually(SOON, "it has ended", async || {
        let refused = expect(&brief.get("/services").await?, 401)?;
        ensure!(refused["detail"].as_str().is_some_and(|detail| detail.contains("expired")), "{refused}");
        Ok(())
    })
    .await;

    let viewer = world.somebody(&["viewer"], &[]).await?;
    let who = viewer.get("/whoami").await?.ok()?.json()?;
    assert_eq!((&who["name"], &who["roles"]), (&json!("viewer"), &json!(["viewer"])));
    let id = who["credential"].as_str().context("nobody")?;
    let listed = admin.get("/tokens").await?.ok()?.body;
    assert!(listed.contains(id) && !listed.contains("hash"), "{listed}");
    assert_eq!(viewer.get("/tokens").await?.status, 403);
    // Whoever has a token may give it back.
    expect(&viewer.write("DELETE", &format!("/tokens/{id}?reason=done"), &Body::None).await?, 200)?;
    let refused = expect(&viewer.get("/services").await?, 401)?;
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("revoked")), "{refused}");

    let own = admin.get("/whoami").await?.ok()?.json()?["credential"].as_str().context("nobody")?.to_owned();
    let last = expect(&admin.write("DELETE", &format!("/tokens/{own}"), &Body::None).await?, 409)?;
    assert_eq!(last["code"], "blocked");
    Ok(())
}

#[tokio::test]
async fn a_restart_keeps_the_tokens_and_no_log_has_a_secret() -> Result<()> {
    let mut world = World::start().await?;
    let owner = world.somebody(&["owner"], &["web"]).await?.token;
    let admin = world.admin()?.token;
    world.tower.kill();
    world.tower.restart().await?;
    world.tower.wait_ready(SOON).await?;
    assert_eq!(world.admin()?.token, admin, "no other token is made");
    let somebody = Somebody { tower: &world.tower, token: owner.clone() };
    assert_eq!(somebody.get("/whoami").await?.ok()?.json()?["services"], json!(["web"]));
    let guess = Somebody { tower: &world.tower, token: format!("{}0", &owner[..owner.len() - 1]) };
    let guessed = guess.get("/whoami").await?;
    assert!(guessed.status == 401 || owner.ends_with('0'), "{}", guessed.body);
    let (log, activity) = (world.tower.log(), world.admin()?.get("/activity").await?.ok()?.body);
    for token in [&owner, &admin] {
        let secret = token.rsplit('_').next().context("a token has a secret")?;
        assert!(!log.contains(secret) && !activity.contains(secret));
    }
    Ok(())
}
