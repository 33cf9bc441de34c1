//! What is told of a change afterwards: the activity log, and the stream of it.

use anyhow::{Context, Result};
use serde_json::json;
use tower_tests::Events;

use super::{Somebody, World, document, expect};
use crate::support::SOON;

const STREAM: &str = "/api/v1/activity/stream";

async fn upload(somebody: &Somebody<'_>, service: &str, seconds: u32) -> Result<()> {
    let text = document(service, &format!("{seconds}s"));
    let path = format!("/services/{service}/versions?reason=upload%20{seconds}");
    expect(&somebody.document("POST", &path, &text).await?, 201)?;
    Ok(())
}

/// The commands and reasons of the next events.
async fn next(events: &mut Events, count: usize) -> Result<Vec<(u64, String)>> {
    let mut found = Vec::new();
    for _ in 0..count {
        let event = events.next().await?.context("the stream has ended")?;
        assert_eq!((event.event.as_str(), event.data["index"].as_u64()), ("entry", Some(event.id)));
        found.push((event.id, event.data["reason"].as_str().unwrap_or_default().to_owned()));
    }
    Ok(found)
}

#[tokio::test]
async fn a_stream_goes_on_where_it_ended_also_over_a_kill() -> Result<()> {
    let mut world = World::start().await?;
    let token = world.admin()?.token;
    let mut events = Events::open(world.tower.http(), &format!("{STREAM}?after=0"), &token, None).await?;
    // The token of the first admin.
    assert_eq!(next(&mut events, 1).await?[0].0, 1);
    for second in 1..=2 {
        upload(&world.admin()?, "web", second).await?;
    }
    assert_eq!(next(&mut events, 2).await?, [(2, "upload 1".to_owned()), (3, "upload 2".to_owned())]);
    world.tower.kill();
    assert_eq!(events.next().await?, None);

    world.tower.restart().await?;
    world.tower.wait_ready(SOON).await?;
    for second in 3..=4 {
        upload(&world.admin()?, "web", second).await?;
    }
    let mut events = Events::open(world.tower.http(), STREAM, &token, Some(3)).await?;
    assert_eq!(next(&mut events, 2).await?, [(4, "upload 3".to_owned()), (5, "upload 4".to_owned())]);
    // What is about something else is left out, and new ones alone are wanted if nothing is said.
    let mut of_ads = Events::open(world.tower.http(), &format!("{STREAM}?service=ads"), &token, None).await?;
    upload(&world.admin()?, "web", 5).await?;
    upload(&world.admin()?, "ads", 1).await?;
    assert_eq!(next(&mut of_ads, 1).await?, [(7, "upload 1".to_owned())]);
    // A Tower that stops does not wait for those who listen.
    assert!(world.tower.terminate().await?.success());
    next(&mut events, 2).await?;
    assert_eq!(events.next().await?, None);
    Ok(())
}

#[tokio::test]
async fn a_stream_ends_with_its_token() -> Result<()> {
    let world = World::start().await?;
    let viewer = world.somebody(&["viewer"], &[]).await?;
    let id = viewer.get("/whoami").await?.ok()?.json()?["credential"].as_str().context("nobody")?.to_owned();
    let mut events = Events::open(world.tower.http(), STREAM, &viewer.token, None).await?;
    upload(&world.admin()?, "web", 1).await?;
    next(&mut events, 1).await?;
    let revoke = world.admin()?.request("DELETE", &format!("/tokens/{id}"));
    expect(&world.tower.ask(revoke, "").await?, 200)?;
    assert_eq!(events.next().await?, None);
    assert!(Events::open(world.tower.http(), STREAM, &viewer.token, None).await.is_err());
    Ok(())
}

#[tokio::test]
async fn every_change_tells_who_what_why_from_where_before_and_after() -> Result<()> {
    let world = World::start().await?;
    let owner = world.somebody(&["owner"], &["web"]).await?;
    upload(&owner, "web", 1).await?;
    upload(&owner, "web", 2).await?;
    for (version, reason) in [(1, "begin"), (2, "slower is fine")] {
        let body = json!({"version": version, "at_once": true, "reason": reason});
        expect(&owner.json("POST", "/services/web/activations", &body).await?, 202)?;
    }
    let activity = owner.get("/activity?service=web&author=owner&include=changes").await?.ok()?.json()?;
    let entries = activity["entries"].as_array().context("no entries")?;
    let who = owner.get("/whoami").await?.ok()?.json()?;
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            assert_eq!((&entry["author"], &entry["credential"]), (&who["name"], &who["credential"]));
            assert!(entry["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")));
            assert!(entry["time_unix_ms"].as_u64().is_some_and(|time| time > 0));
            (entry["command"].as_str().unwrap_or_default(), entry["reason"].as_str().unwrap_or_default())
        })
        .collect();
    let expected = [
        ("activate", "slower is fine"),
        ("activate", "begin"),
        ("upload", "upload 2"),
        ("upload", "upload 1"),
    ];
    assert_eq!(told, expected);

    let event = |entry: usize, kind: &str| {
        let events = entries[entry]["events"].as_array().into_iter().flatten();
        events.clone().find(|event| event["kind"] == kind).cloned().context(format!("no {kind}"))
    };
    let uploaded = event(2, "version_uploaded")?;
    let change = json!({
        "field": "spec.callers.routes[default].timeouts.request",
        "before": "1s", "after": "2s", "owner": "service",
    });
    assert_eq!(uploaded["changes"], json!([change]));
    let assigned = event(0, "assigned")?;
    let change = &assigned["changes"][0];
    assert_eq!(change["field"], "assignment[everyone]");
    assert_eq!((&change["before"]["version"], &change["after"]["version"]), (&json!(1), &json!(2)));
    assert_eq!(event(1, "assigned")?["changes"][0]["before"], json!(null), "it had its defaults");

    let one = owner.get(&format!("/activity/{}", entries[2]["index"])).await?.ok()?.json()?;
    assert_eq!(one, entries[2]);
    Ok(())
}
