//! Documents as they are written: of the size, and with the fields, that most have.

use anyhow::{Result, anyhow};
use prost::Message;
use tower_common::document::{self, Owner, Parts};
use tower_server::compile;

/// How many teams own services.
const TEAMS: usize = 200;

/// A document, and what it compiles to.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) text: String,
    /// The hash of the canonical form.
    pub(super) hash: [u8; 32],
    pub(super) owner: String,
    pub(super) bundle: Vec<u8>,
}

/// The name of a service; it is registered under it, too.
pub(super) fn name(service: usize) -> String {
    format!("service-{service:05}")
}

/// Of one of so many services, the document of a version, counted from 1. Each differs from the one before it
/// in its weights and a timeout, as most edits do.
pub(super) fn text(service: usize, of: usize, version: usize) -> String {
    let (name, team) = (name(service), service % TEAMS);
    let dependencies = [self::name((service + 1) % of), self::name((service + 7) % of)];
    let (canary, timeout) = (version * 5, 200 + version * 50);
    format!(
        "apiVersion: tower.mesh/v1
kind: MeshService
metadata: {{name: {name}, owner: team-{team:03}}}
spec:
  callers:
    subsets: {{stable: {{release: stable}}, canary: {{release: canary}}}}
    loadBalancer: {{type: LeastRequest}}
    circuitBreaker: {{maxRequests: 2000}}
    outlierDetection: {{consecutive5xx: 5, maxEjectionPercent: 20}}
    routes:
    - name: rank
      matches: [{{path: {{type: PathPrefix, value: /rank}}, method: POST}}]
      backendRefs: [{{subset: stable, weight: {stable}}}, {{subset: canary, weight: {canary}}}]
      timeouts: {{request: {timeout}ms, backendRequest: 100ms}}
      retry: {{attempts: 1, retryOn: [connect-failure, \"503\"], budgetPercent: 20}}
    - name: admin
      matches: [{{path: {{type: PathPrefix, value: /admin}}, headers: [{{name: x-admin, value: \"1\"}}]}}]
      responseHeaders: {{set: [{{name: x-served-by, value: {name}}}], remove: [x-internal]}}
    - name: default
      timeouts: {{request: 1s}}
  inbound:
    rateLimits:
      local: {{requests: 500, interval: 1s, mode: shadow}}
  outbound:
    dependencies:
    - {{service: {first}, overrides: {{timeouts: {{request: 80ms}}}}}}
    - {{service: {second}}}
  tiers:
  - {{name: canary, clusters: [{name}-canary]}}
  - {{name: main, clusters: [{name}-a, {name}-b]}}
",
        stable = 100 - canary,
        first = dependencies[0],
        second = dependencies[1],
    )
}

/// Compiles a document as Tower does, without parts of platform and security.
pub(super) fn compiled(name: &str, text: String) -> Result<Compiled> {
    let wrong = |found: Vec<document::Finding>| anyhow!("{name}: {found:?}");
    let parsed = document::parse(name, &text, Owner::Service).map_err(wrong)?;
    let service = &parsed.document;
    let parts = Parts {
        service,
        platform: None,
        platform_for_service: None,
        security: None,
        security_for_service: None,
    };
    let effective = document::merge(&parts).map_err(wrong)?;
    let bundle = compile::compile(&effective, name).map_err(wrong)?.encode_to_vec();
    let owner = service.metadata.owner.clone().unwrap_or_default();
    Ok(Compiled { hash: service.hash(), owner, bundle, text })
}
