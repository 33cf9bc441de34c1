//! The HTTP API of a real Tower: who may do what, what happens once, what is told of it afterwards, and whether
//! its description is true.

mod access;
mod certificates;
mod conditions;
mod described;
mod sessions;
mod stream;

use anyhow::{Context, Result, ensure};
use http::{Request, header::AUTHORIZATION};
use serde_json::{Value, json};
use tower_tests::{EndpointFiles, Tower, TowerOptions, http::Reply};

use crate::support::SOON;

/// A Tower, and the folder of its endpoints.
struct World {
    tower: Tower,
    _files: EndpointFiles,
}

/// Somebody with a token.
struct Somebody<'a> {
    tower: &'a Tower,
    token: String,
}

impl World {
    async fn start() -> Result<Self> {
        let files = EndpointFiles::new()?;
        let options = TowerOptions { discovery: vec![files.discovery()], ..TowerOptions::default() };
        let tower = Tower::start(options).await?;
        tower.wait_ready(SOON).await?;
        Ok(Self { tower, _files: files })
    }

    /// The first admin.
    fn admin(&self) -> Result<Somebody<'_>> {
        let token = self.tower.admin_token().context("Tower has made no token")?;
        Ok(Somebody { tower: &self.tower, token })
    }

    /// Somebody new with these roles, who owns these services.
    async fn somebody(&self, roles: &[&str], services: &[&str]) -> Result<Somebody<'_>> {
        let body = json!({"name": roles.join(" and "), "roles": roles, "services": services});
        let issued = self.admin()?.json("POST", "/tokens", &body).await?.json()?;
        let token = issued["token"].as_str().with_context(|| format!("no token: {issued}"))?;
        Ok(Somebody { tower: &self.tower, token: token.to_owned() })
    }
}

impl Somebody<'_> {
    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
    }

    async fn get(&self, path: &str) -> Result<Reply> {
        self.tower.ask(self.request("GET", path), "").await
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> Result<Reply> {
        let request = self.request(method, path).header("Content-Type", "application/json");
        self.tower.ask(request, body.to_string()).await
    }

    async fn document(&self, method: &str, path: &str, text: &str) -> Result<Reply> {
        let request = self.request(method, path).header("Content-Type", "application/yaml");
        self.tower.ask(request, text.to_owned()).await
    }
}

/// A document of a service, with this time for its requests.
fn document(service: &str, timeout: &str) -> String {
    format!(
        "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {{name: {service}, owner: {service}-team}}\n\
         spec: {{callers: {{routes: [{{name: default, timeouts: {{request: {timeout}}}}}]}}}}\n"
    )
}

/// The answer, if it has this status.
fn expect(reply: &Reply, status: u16) -> Result<Value> {
    ensure!(reply.status == status, "status {}, and not {status}: {}", reply.status, reply.body);
    if reply.body.is_empty() { Ok(Value::Null) } else { reply.json() }
}
