//! Documents through the whole pipeline: uploaded to a Tower, activated, composed by a Beacon, served to an
//! Envoy on a host that runs all of the services and calls all of them.

use std::{collections::BTreeMap, net::SocketAddr};

use anyhow::{Context, Result, ensure};
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tower_common::document::{Owner, owner_of};
use tower_tests::{
    Ask, Beacon, BeaconOptions, Endpoint, EndpointFiles, Envoy, Mode, Reply, Tower, TowerOptions, eventually,
};

use crate::support::{SOON, rejections};

/// The zone of the host.
const ZONE: &str = "a";

/// Services, before anything is started.
#[derive(Debug, Default)]
pub(crate) struct Rig {
    services: Vec<(String, Value, Vec<Endpoint>)>,
}

/// An endpoint of a service.
#[derive(Debug, Clone)]
pub(crate) struct Instance(Endpoint);

/// An Envoy with the services.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) envoy: Envoy,
    _beacon: Beacon,
    pub(crate) tower: Tower,
    _files: EndpointFiles,
}

impl Instance {
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self(Endpoint::from(address))
    }

    pub(crate) fn label(mut self, name: &str, value: &str) -> Self {
        self.0.labels.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn zone(mut self, zone: &str) -> Self {
        self.0.zone = Some(zone.to_owned());
        self
    }
}

impl Rig {
    /// A service with this `spec`, in YAML, and its instances.
    pub(crate) fn service(mut self, name: &str, spec: &str, instances: &[Instance]) -> Result<Self> {
        let spec: Value = serde_saphyr::from_str(spec).with_context(|| spec.to_owned())?;
        let endpoints = instances.iter().map(|instance| instance.0.clone()).collect();
        self.services.push((name.to_owned(), spec, endpoints));
        Ok(self)
    }

    /// Starts it all, and returns when the Envoy has accepted everything.
    pub(crate) async fn start(self) -> Result<Running> {
        let files = EndpointFiles::new()?;
        for (name, _, endpoints) in &self.services {
            files.write(name, endpoints)?;
        }
        let options = TowerOptions { discovery: vec![files.discovery()], ..TowerOptions::default() };
        let tower = Tower::start(options).await?;
        tower.wait_ready(SOON).await?;
        let beacon = Beacon::start(BeaconOptions {
            zone: Some(ZONE.to_owned()),
            flags: self.services.iter().map(|(name, ..)| format!("--workload={name}")).collect(),
            ..BeaconOptions::of(tower.grpc())
        })
        .await?;
        beacon.wait_ready(SOON).await?;
        let envoy = beacon.envoy_of_one_worker(Mode::Delta).await?;
        let running = Running { envoy, _beacon: beacon, tower, _files: files };
        let mut activations = Vec::new();
        for (name, spec, _) in &self.services {
            activations.push(running.upload(name, spec).await?);
        }
        for activation in activations {
            running.succeeds(&activation).await;
        }
        ensure!(rejections(&running.envoy).await? == 0, "something was rejected");
        Ok(running)
    }
}

impl Running {
    /// Asks through the egress listener.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Reply> {
        ask.send(self.envoy.egress()).await
    }

    /// Uploads a document, each field by whom it belongs to, and activates it. Returns the activation's id.
    async fn upload(&self, service: &str, spec: &Value) -> Result<String> {
        let mut parts = BTreeMap::new();
        divide(spec, "spec", &mut parts);
        for owner in [Owner::Platform, Owner::Security] {
            if let Some(spec) = parts.remove(&owner) {
                let path = format!("/api/v1/{owner}/{service}?reason=a%20field");
                let put = Request::put(path).header(CONTENT_TYPE, "application/json");
                let reply = self.tower.ask(put, document(service, &spec)).await?;
                ensure!(reply.status == 200, "{} {}", reply.status, reply.body);
            }
        }
        let spec = parts.remove(&Owner::Service).unwrap_or(json!({}));
        let post = Request::post(format!("/api/v1/services/{service}/versions"));
        let post = post.header(CONTENT_TYPE, "application/json");
        let reply = self.tower.ask(post, document(service, &spec)).await?;
        ensure!(matches!(reply.status, 200 | 201), "{} {}", reply.status, reply.body);
        let version = reply.json()?["number"].clone();
        let body = json!({"version": version, "audience": "everyone", "at_once": true, "reason": "a field"});
        let path = format!("/api/v1/services/{service}/activations");
        let reply = self.tower.http_post(&path, &body).await?;
        ensure!(matches!(reply.status, 200 | 202), "{} {}", reply.status, reply.body);
        Ok(reply.json()?["activation"]["id"].as_str().context("nothing was to be done")?.to_owned())
    }

    async fn succeeds(&self, activation: &str) {
        eventually(SOON, format!("activation {activation:?} succeeds"), async || {
            let path = format!("/api/v1/activations/{activation}");
            let found = self.tower.http_get(&path).await?.ok()?.json()?;
            ensure!(found["state"] == "succeeded", "{found}");
            Ok(())
        })
        .await;
    }
}

fn document(service: &str, spec: &Value) -> String {
    let metadata = json!({ "name": service });
    json!({"apiVersion": "tower.mesh/v1", "kind": "MeshService", "metadata": metadata, "spec": spec})
        .to_string()
}

/// Divides what is at a path by owners.
fn divide(value: &Value, path: &str, parts: &mut BTreeMap<Owner, Value>) {
    if let Some(owner) = owner_of(path) {
        let mut at = parts.entry(owner).or_insert_with(|| json!({}));
        for field in path.split('.').skip(1) {
            at = &mut at[field];
        }
        at.clone_from(value);
    } else if let Value::Object(fields) = value {
        for (name, value) in fields {
            divide(value, &format!("{path}.{name}"), parts);
        }
    }
}

/// Makes sure that nothing of a document is lost when it is divided.
#[test]
fn a_document_is_divided_by_owners() {
    let spec = json!({
        "callers": {"routes": [{"name": "a.b"}], "tls": {"mode": "off"}, "accessLog": {"mode": "all", "path": "/x"}},
        "inbound": {"ports": []},
    });
    let mut parts = BTreeMap::new();
    divide(&spec, "spec", &mut parts);
    let platform = json!({"callers": {"accessLog": {"path": "/x"}}, "inbound": {"ports": []}});
    assert_eq!(parts[&Owner::Platform], platform);
    assert_eq!(parts[&Owner::Security], json!({"callers": {"tls": {"mode": "off"}}}));
    let service = json!({"callers": {"routes": [{"name": "a.b"}], "accessLog": {"mode": "all"}}});
    assert_eq!(parts[&Owner::Service], service);
}
