//! In front of the application: ports, routes, limits, and who may call.

use std::net::SocketAddr;

use anyhow::Result;
use http::Method;
use tower_tests::{Ask, Echo, Protocol, ports};

use super::rig::Rig;

/// The address of a port of the service's own host.
pub(super) fn inbound() -> SocketAddr {
    ports::free_address()
}

fn port(name: &str, at: SocketAddr, app: &Echo, more: &str) -> String {
    format!("{{name: {name}, port: {}, appPort: {}{more}}}", at.port(), app.address().port())
}

async fn status(at: SocketAddr, path: &str) -> Result<u16> {
    Ask::get("web", path).send(at).await.map(|reply| reply.status)
}

#[tokio::test]
async fn a_port_leads_to_the_application_behind_it() -> Result<()> {
    let (app, ops) = (Echo::start("app").await?, Echo::start("ops").await?);
    let (at, ops_at) = (inbound(), inbound());
    let spec = format!(
        "
inbound:
  ports: [{}, {}]
  routes:
  - {{name: metrics, matches: [{{path: {{value: /metrics}}}}], rewrite: {{prefix: /m}}, backendRefs: [{{port: ops}}]}}
  - {{name: closed, matches: [{{path: {{value: /closed}}}}], directResponse: {{status: 410}}}}
  - {{name: rest, responseHeaders: {{set: [{{name: x-from, value: inbound}}]}}}}
",
        port("app", at, &app, ", address: 127.0.0.1"),
        port("ops", ops_at, &ops, ", protocol: http2")
    );
    let _running = Rig::default().service("web", &spec, &[])?.start().await?;
    for protocol in Protocol::ALL {
        let reply = Ask::get("anything", "/x").over(protocol).send(at).await?.ok()?;
        assert_eq!((reply.body.as_str(), &reply.headers["x-from"]), ("app", &"inbound".parse()?));
        assert_eq!(format!("{:?}", app.last()?.version), protocol.version());
        let reply = Ask::get("anything", "/x").over(protocol).send(ops_at).await?.ok()?;
        assert_eq!(reply.body, "ops", "a port without a backend is its own");
        assert_eq!(format!("{:?}", ops.last()?.version), "HTTP/2.0");
    }
    let reply = Ask::get("anything", "/metrics/a").send(at).await?.ok()?;
    assert_eq!((reply.body.as_str(), ops.last()?.path.as_str()), ("ops", "/m/a"));
    assert_eq!(status(at, "/closed").await?, 410);
    Ok(())
}

#[tokio::test]
async fn the_application_is_spared() -> Result<()> {
    let app = Echo::start("app").await?;
    let at = inbound();
    let spec = format!(
        "
inbound:
  ports: [{}]
  rateLimits: {{local: {{requests: 2, interval: 1h}}}}
  routes:
  - {{name: own, matches: [{{path: {{value: /own}}}}], rateLimits: {{local: {{requests: 1, interval: 1h, mode: shadow}}}}}}
  - {{name: rest}}
",
        port("app", at, &app, "")
    );
    let running = Rig::default().service("web", &spec, &[])?.start().await?;
    let mut statuses = Vec::new();
    for path in ["/", "/x", "/y", "/own", "/own"] {
        statuses.push(status(at, path).await?);
    }
    assert_eq!(statuses, [200, 200, 429, 200, 200]);
    let counted = running.envoy.stat("inbound_web_app.http_local_rate_limit.shadow_mode").await?;
    assert_eq!(counted, Some(1));
    Ok(())
}

#[tokio::test]
async fn only_some_may_call() -> Result<()> {
    let app = Echo::start("app").await?;
    let (at, shadow, nobody, elsewhere) = (inbound(), inbound(), inbound(), inbound());
    let spec = |at: SocketAddr, allowed: &str| {
        format!("inbound: {{ports: [{}], allowedCallers: {allowed}}}", port("app", at, &app, ""))
    };
    let rules = "rules: [{name: local, addresses: [127.0.0.0/8], methods: [GET], paths: [{value: /public}, \
                 {type: RegularExpression, value: '/v[0-9]/.*'}]}]";
    let running = Rig::default()
        .service("web", &spec(at, &format!("{{{rules}}}")), &[])?
        .service("shadow", &spec(shadow, &format!("{{mode: shadow, {rules}}}")), &[])?
        .service("nobody", &spec(nobody, "{rules: []}"), &[])?
        .service("elsewhere", &spec(elsewhere, "{rules: [{name: far, addresses: [192.0.2.1]}]}"), &[])?
        .start()
        .await?;
    let cases = [
        ("/public", 200),
        ("/public/a", 200),
        ("/publicity", 403),
        ("/v1/x", 200),
        ("/secret", 403),
        ("/public/../secret", 403),
        ("/public/%2e%2e/secret", 403),
        ("/public%2f..%2fsecret", 400),
    ];
    for (path, expected) in cases {
        assert_eq!(status(at, path).await?, expected, "{path}");
    }
    let post = Ask::get("web", "/public").method(Method::POST);
    assert_eq!(post.send(at).await?.status, 403);
    assert_eq!(status(shadow, "/secret").await?, 200);
    let denied = running.envoy.stat("http.inbound_shadow_app.rbac.shadow_denied").await?;
    assert_eq!(denied, Some(1), "it is counted who would have been refused");
    assert_eq!((status(nobody, "/").await?, status(elsewhere, "/").await?), (403, 403));
    Ok(())
}
