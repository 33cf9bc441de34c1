//! What routes do to requests and answers: rewrites, redirects, answers of Envoy's own, headers.

use anyhow::Result;
use tower_tests::{Ask, Echo};

use super::rig::{Instance, Rig};

const SPEC: &str = r"
callers:
  routes:
  - {name: a, matches: [{path: {value: /a}}], rewrite: {prefix: /b}}
  - {name: strip, matches: [{path: {value: /v1.0}}], rewrite: {prefix: /}}
  - {name: exact, matches: [{path: {type: Exact, value: /exact}}], rewrite: {prefix: /else, host: other.example.com}}
  - {name: whole, matches: [{path: {value: /whole}}], rewrite: {path: '/new\1'}}
  - name: regex
    matches: [{path: {value: /r}}]
    rewrite: {regex: {pattern: '^/r/([a-z]+)/', substitution: '/\1/is/'}}
  - name: redirect
    matches: [{path: {value: /old}}]
    redirect: {scheme: https, host: new.example.com, port: 8443, prefix: /new, status: 308}
  - {name: root, matches: [{path: {value: /gone}}], redirect: {prefix: /}}
  - {name: moved, matches: [{path: {value: /moved}}], redirect: {path: /there, status: 301}}
  - {name: direct, matches: [{path: {value: /direct}}], directResponse: {status: 418, body: 'a 100% teapot'}}
  - name: headers
    matches: [{path: {value: /headers}}]
    requestHeaders:
      set: [{name: x-set, value: '100%'}, {name: x-empty, value: ''}]
      add: [{name: x-add, value: two}]
      remove: [x-remove]
    responseHeaders: {set: [{name: x-answer, value: set}], remove: [x-secret]}
  - {name: rest, rewrite: {prefix: /under}}
";

#[tokio::test]
async fn paths_are_rewritten() -> Result<()> {
    let echo = Echo::start("alpha").await?;
    let running = Rig::default().service("web", SPEC, &[Instance::at(echo.address())])?.start().await?;
    let paths = [
        ("/a", "/b"),
        ("/a/x?q=1", "/b/x?q=1"),
        ("/v1.0", "/"),
        ("/v1.0/x", "/x"),
        ("/v1.0/v1.0/x", "/v1.0/x"),
        ("/exact", "/else"),
        ("/whole/x?q=1", r"/new\1?q=1"),
        ("/r/web/x", "/web/is/x"),
        ("/other", "/under/other"),
    ];
    for (path, expected) in paths {
        running.ask(&Ask::get("web", path)).await?.ok()?;
        assert_eq!(echo.last()?.path, expected, "{path}");
    }
    running.ask(&Ask::get("web", "/exact")).await?.ok()?;
    assert_eq!(echo.last()?.host, "other.example.com");
    running.ask(&Ask::get("web", "/a")).await?.ok()?;
    assert_eq!(echo.last()?.host, "web", "nobody has asked for another");
    Ok(())
}

#[tokio::test]
async fn clients_are_sent_elsewhere_or_answered() -> Result<()> {
    let running = Rig::default().service("web", SPEC, &[])?.start().await?;
    let cases = [
        ("/old/x?q=1", 308, "https://new.example.com:8443/new/x?q=1"),
        ("/gone", 302, "http://web/"),
        ("/gone/x", 302, "http://web/x"),
        ("/moved/x", 301, "http://web/there"),
    ];
    for (path, status, location) in cases {
        let reply = running.ask(&Ask::get("web", path)).await?;
        assert_eq!((reply.status, reply.headers["location"].to_str()?), (status, location), "{path}");
    }
    let reply = running.ask(&Ask::get("web", "/direct")).await?;
    assert_eq!((reply.status, reply.body.as_str()), (418, "a 100% teapot"));
    Ok(())
}

#[tokio::test]
async fn headers_are_removed_set_and_added() -> Result<()> {
    let echo = Echo::start("alpha").await?;
    echo.say("x-answer", "own");
    echo.say("x-secret", "hush");
    let running = Rig::default().service("web", SPEC, &[Instance::at(echo.address())])?.start().await?;
    let ask = Ask::get("web", "/headers").header("x-set", "0").header("x-add", "one").header("x-remove", "1");
    let reply = running.ask(&ask).await?.ok()?;
    assert_eq!((&reply.headers["x-answer"], reply.headers.get("x-secret")), (&"set".parse()?, None));
    let seen = echo.last()?;
    assert_eq!((seen.header("x-set"), seen.header("x-empty")), (Some("100%"), Some("")));
    let added: Vec<_> = seen.headers.get_all("x-add").iter().collect();
    assert_eq!(added, ["one", "two"]);
    assert_eq!(seen.header("x-remove"), None);
    Ok(())
}
