//! Writes that depend on the state, and that happen once.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tower_tests::http::Reply;

use super::{Somebody, World, document, expect};

async fn upload(somebody: &Somebody<'_>, timeout: &str, headers: &[(&str, &str)]) -> Result<Reply> {
    let mut request = somebody.request("POST", "/services/web/versions");
    request = request.header("Content-Type", "application/yaml");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    somebody.tower.ask(request, document("web", timeout)).await
}

#[tokio::test]
async fn of_two_who_saw_the_same_one_is_told_what_the_other_did() -> Result<()> {
    let world = World::start().await?;
    let (ann, bob) = (world.somebody(&["admin"], &[]).await?, world.somebody(&["owner"], &["web"]).await?);
    expect(&upload(&ann, "1s", &[]).await?, 201)?;
    let seen = ann.get("/services/web").await?.ok()?;
    let etag = seen.headers["etag"].to_str()?.to_owned();
    assert_eq!(etag, format!("\"{}\"", seen.json()?["index"]));

    let condition = [("If-Match", etag.as_str())];
    let (one, other) = tokio::join!(upload(&ann, "2s", &condition), upload(&bob, "3s", &condition));
    let (one, other) = (one?, other?);
    let (winner, won, lost) = if one.status == 201 { ("admin", one, other) } else { ("owner", other, one) };
    assert_eq!(expect(&won, 201)?["version"], "web@2");
    let lost = expect(&lost, 412)?;
    assert_eq!((&lost["code"], &lost["field"]), (&json!("stale"), &json!("If-Match")), "{lost}");
    let since = &lost["since"][0];
    assert_eq!((&since["author"], &since["command"]), (&json!(winner), &json!("upload")), "{lost}");
    assert_eq!(lost["since"].as_array().map(Vec::len), Some(1));

    let now = ann.get("/services/web").await?.ok()?;
    let etag = now.headers["etag"].to_str()?.to_owned();
    expect(&upload(&bob, "4s", &[("If-Match", &etag)]).await?, 201)?;
    Ok(())
}

#[tokio::test]
async fn a_plan_is_activated_as_it_was_planned_or_not_at_all() -> Result<()> {
    let world = World::start().await?;
    let admin = world.admin()?;
    for timeout in ["1s", "2s"] {
        expect(&upload(&admin, timeout, &[]).await?, 201)?;
    }
    let plan = admin.json("POST", "/services/web/plan", &json!({"version": 2})).await?;
    let etag = plan.headers["etag"].to_str()?.to_owned();
    let plan = expect(&plan, 200)?;
    assert_eq!((&plan["version"], &plan["hosts"]["count"]), (&json!(2), &json!(0)));
    assert!(plan["release"].is_string(), "{plan}");
    expect(
        &admin.json("POST", "/services/web/versions/1/approve", &json!({"reason": "looked at"})).await?,
        200,
    )?;

    let activate = async |etag: &str| {
        let request = admin.request("POST", "/services/web/activations");
        let request = request.header("Content-Type", "application/json").header("If-Match", etag);
        let body = json!({"version": 2, "at_once": true, "reason": "as planned"});
        world.tower.ask(request, body.to_string()).await
    };
    let stale = expect(&activate(&etag).await?, 412)?;
    assert_eq!(stale["since"][0]["command"], "approve");
    let again = admin.json("POST", "/services/web/plan", &json!({"version": 2})).await?;
    let started = expect(&activate(again.headers["etag"].to_str()?).await?, 202)?;
    assert_eq!(started["activation"]["release"], plan["release"], "what was planned");
    Ok(())
}

#[tokio::test]
async fn a_key_makes_a_write_one_also_over_a_kill() -> Result<()> {
    let mut world = World::start().await?;
    let admin = world.admin()?.token;
    let key = [("Idempotency-Key", "deploy-17")];
    let first = {
        let admin = Somebody { tower: &world.tower, token: admin.clone() };
        expect(&upload(&admin, "1s", &key).await?, 201)?
    };
    world.tower.kill();
    world.tower.restart().await?;
    world.tower.wait_ready(crate::support::SOON).await?;
    let admin = Somebody { tower: &world.tower, token: admin };
    let second = expect(&upload(&admin, "1s", &key).await?, 201)?;
    let told =
        |uploaded: &Value| (uploaded["version"].clone(), uploaded["hash"].clone(), uploaded["index"].clone());
    assert_eq!(told(&first), told(&second));

    // The same key for something else is a mistake.
    let other =
        admin.request("POST", "/services/web/versions/1/retire").header("Idempotency-Key", "deploy-17");
    let reused = expect(&world.tower.ask(other, "").await?, 409)?;
    assert_eq!((&reused["code"], &reused["field"]), (&json!("key_reused"), &json!("Idempotency-Key")));
    // Another one's key is another one.
    let somebody = world.somebody(&["owner"], &["web"]).await?;
    let theirs = expect(&upload(&somebody, "2s", &key).await?, 201)?;
    assert_eq!(theirs["version"], "web@2");
    let versions = admin.get("/services/web/versions").await?.ok()?.json()?;
    assert_eq!(versions["versions"].as_array().context("no versions")?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_secret_is_told_once() -> Result<()> {
    let world = World::start().await?;
    let admin = world.admin()?;
    let issue = async || {
        let request = admin.request("POST", "/tokens").header("Content-Type", "application/json");
        let body = json!({"name": "ci", "roles": ["viewer"]});
        world.tower.ask(request.header("Idempotency-Key", "ci-token"), body.to_string()).await
    };
    assert!(expect(&issue().await?, 201)?["token"].is_string());
    assert_eq!(expect(&issue().await?, 409)?["code"], "conflict");
    let tokens = admin.get("/tokens").await?.ok()?.json()?;
    assert_eq!(tokens["tokens"].as_array().context("no tokens")?.len(), 2, "{tokens}");
    Ok(())
}

#[tokio::test]
async fn pages_have_everything_once() -> Result<()> {
    let world = World::start().await?;
    let admin = world.admin()?;
    for second in 1..=7 {
        expect(&upload(&admin, &format!("{second}s"), &[]).await?, 201)?;
    }
    let mut paths = vec![
        ("/services/web/versions?limit=3", "versions", "number"),
        ("/activity?limit=3", "entries", "index"),
        ("/activity?limit=3&order=oldest", "entries", "index"),
        ("/activity?limit=2&service=web&order=oldest&after=3", "entries", "index"),
    ];
    for (path, list, key) in paths.drain(..) {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = admin.get(&format!("{path}{cursor}")).await?.ok()?.json()?;
            let items = page[list].as_array().context("no list")?.clone();
            found.extend(items.iter().filter_map(|item| item[key].as_u64()));
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let mut expected: Vec<u64> = match path {
            _ if list == "versions" => (1..=7).collect(),
            _ if path.contains("after=3") => (4..=8).collect(),
            _ => (1..=8).collect(),
        };
        if !path.contains("oldest") {
            expected.reverse();
        }
        assert_eq!(found, expected, "{path}");
    }
    Ok(())
}
