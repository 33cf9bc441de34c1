//! What is decided about services, with Towers as processes: rejections are taken back, crashes in the middle
//! cost nothing, and Towers that share a log agree to the byte.

mod crashes;
mod rejections;
mod tampered;
mod towers;

use anyhow::{Context, Result, ensure};
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tower_tests::{Tower, eventually};

use crate::support::SOON;

/// A document of a service, with this request timeout.
fn document(service: &str, milliseconds: u32) -> String {
    format!(
        "apiVersion: tower.mesh/v1
kind: MeshService
metadata: {{name: {service}, owner: {service}-team}}
spec:
  callers:
    routes:
    - name: default
      timeouts: {{request: {milliseconds}ms}}
"
    )
}

/// Uploads a document. Returns the number of its version.
async fn upload(tower: &Tower, service: &str, document: String) -> Result<u64> {
    let path = format!("/api/v1/services/{service}/versions");
    let request = Request::post(path).header(CONTENT_TYPE, "application/yaml");
    let reply = tower.ask(request, document).await?;
    ensure!(matches!(reply.status, 200 | 201), "{} {}", reply.status, reply.body);
    reply.json()?["number"].as_u64().context("no number")
}

/// Activates a version so. Returns the activation's id.
async fn activate(tower: &Tower, service: &str, how: Value) -> Result<String> {
    let reply = tower.http_post(&format!("/api/v1/services/{service}/activations"), &how).await?;
    ensure!(matches!(reply.status, 200 | 202), "{} {}", reply.status, reply.body);
    Ok(reply.json()?["activation"]["id"].as_str().context("nothing was to be done")?.to_owned())
}

/// Activates a version for everyone at once, and waits until it has succeeded.
async fn stand(tower: &Tower, service: &str, version: u64) -> Result<()> {
    let how = json!({ "version": version, "at_once": true, "reason": "to begin with" });
    let id = activate(tower, service, how).await?;
    let ended = ended(tower, &id).await;
    ensure!(ended["state"] == "succeeded", "{ended}");
    Ok(())
}

/// Waits until an activation has ended.
async fn ended(tower: &Tower, id: &str) -> Value {
    eventually(SOON, format!("activation {id:?} ends"), async || {
        let found = tower.http_get(&format!("/api/v1/activations/{id}")).await?.ok()?.json()?;
        ensure!(found["state"] != "progressing", "{found}");
        Ok(found)
    })
    .await
}
