//! An activation until traffic follows, through one Envoy, over and over: from the command to the first answer
//! that shows the new release, and until Tower has been told that the Envoy has accepted it.
//!
//! The clock starts before the request to Tower, so the figure has everything in it: deciding, compiling, the
//! synced log, publication, the Beacon, xDS, and a request that is made again and again on connections of its
//! own. Of the steps by default the first host is the only one, so it shows the release as soon as at once;
//! the pauses between steps are in the time until it has succeeded.

use anyhow::{Context, Result, ensure};
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tower_common::clock;
use tower_tests::{
    Beacon, BeaconOptions, Caller, EndpointFiles, Mode, Protocol, Tower, TowerOptions, Upstream,
};

use crate::{
    figures::{Report, millis, quantile, sorted},
    mesh::until,
};

/// The service that is activated.
pub const SERVICE: &str = "bench";

/// The header by which an answer shows its release.
const HEADER: &str = "x-bench-release";

/// Activations in each run in steps, each of which takes the pauses between them.
const IN_STEPS: usize = 3;

/// Measures `activations` at once, and a few in steps, in each run.
pub async fn run(report: &mut Report, activations: usize) -> Result<()> {
    let files = EndpointFiles::new()?;
    let upstream = Upstream::start("bench").await?;
    files.write(SERVICE, &[upstream.address().into()])?;
    let tower =
        Tower::start(TowerOptions { discovery: vec![files.discovery()], ..Default::default() }).await?;
    until("Tower is ready", async || Ok(tower.http_get("/readyz").await?.status == 200)).await?;
    let beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
    let envoy = beacon.envoy(Mode::Delta).await?;
    let caller = envoy.caller(Protocol::Http1);
    let mut subject = Subject { tower: &tower, caller, next: 0 };
    let at_once = json!({ "at_once": true, "reason": "a benchmark" });
    for _ in 0..report.runs {
        subject.measure(report, "activation_at_once", &at_once, activations).await?;
        subject.measure(report, "activation_in_steps", &json!({}), IN_STEPS).await?;
    }
    Ok(())
}

/// A Tower, and a caller through an Envoy that it serves. The service [`SERVICE`] has an upstream.
#[derive(Debug)]
pub struct Subject<'a> {
    /// It.
    pub tower: &'a Tower,
    /// Calls the service.
    pub caller: Caller<'a>,
    /// What the next release says.
    pub next: usize,
}

impl Subject<'_> {
    /// Measures so many activations, one after the other, each of a new version; `how` is what is said of each
    /// besides the version.
    pub async fn measure(
        &mut self,
        report: &mut Report,
        name: &str,
        how: &Value,
        activations: usize,
    ) -> Result<()> {
        let (mut uploaded, mut acknowledged) = (Vec::new(), Vec::new());
        let (mut seen, mut succeeded) = (Vec::new(), Vec::new());
        for _ in 0..activations {
            let mark = format!("release-{}", self.next);
            self.next += 1;
            let start = clock::monotonic();
            let mut body = how.clone();
            body["version"] = self.upload(&mark).await?.into();
            uploaded.push(millis(start.elapsed()));

            let start = clock::monotonic();
            let ask = async {
                let path = format!("/api/v1/services/{SERVICE}/activations");
                let reply = self.tower.http_post(&path, &body).await?;
                ensure!(reply.status == 202, "{} {}", reply.status, reply.body);
                acknowledged.push(millis(start.elapsed()));
                Ok(reply.json()?["activation"]["id"].as_str().context("nothing was to be done")?.to_owned())
            };
            let see = until("an answer shows the new release", async || {
                let reply = self.caller.get(SERVICE).await?;
                Ok(reply.headers.get(HEADER).is_some_and(|value| value.as_bytes() == mark.as_bytes()))
            });
            let see = async {
                see.await?;
                seen.push(millis(start.elapsed()));
                anyhow::Ok(())
            };
            let (activation, ()) = tokio::try_join!(ask, see)?;
            until("the activation has succeeded", async || {
                let told = self.tower.http_get(&format!("/api/v1/activations/{activation}")).await?.json()?;
                ensure!(told["state"] == "progressing" || told["state"] == "succeeded", "{told}");
                Ok(told["state"] == "succeeded")
            })
            .await?;
            succeeded.push(millis(start.elapsed()));
        }
        note(report, &format!("{name}_upload"), uploaded)?;
        note(report, &format!("{name}_acknowledged"), acknowledged)?;
        note(report, &format!("{name}_seen"), seen)?;
        note(report, &format!("{name}_succeeded"), succeeded)
    }

    /// Uploads a document whose answers bear this mark. Returns the number of the version.
    async fn upload(&self, mark: &str) -> Result<u64> {
        let document = format!(
            "apiVersion: tower.mesh/v1
kind: MeshService
metadata: {{name: {SERVICE}, owner: bench-team}}
spec:
  callers:
    outlierDetection: {{consecutive5xx: 5}}
    routes:
    - name: default
      timeouts: {{request: 5s}}
      responseHeaders: {{set: [{{name: {HEADER}, value: {mark}}}]}}
"
        );
        let request = Request::post(format!("/api/v1/services/{SERVICE}/versions"));
        let reply = self.tower.ask(request.header(CONTENT_TYPE, "application/yaml"), document).await?;
        ensure!(reply.status == 201, "{} {}", reply.status, reply.body);
        reply.json()?["number"].as_u64().context("no number")
    }
}

/// Notes the middle, and the slow end, of durations in milliseconds.
pub fn note(report: &mut Report, name: &str, values: Vec<f64>) -> Result<()> {
    let values = sorted(values);
    let most = *values.last().context("nothing was measured")?;
    report.note(&format!("{name}_p50_ms"), quantile(&values, 0.5));
    report.note(&format!("{name}_p99_ms"), quantile(&values, 0.99));
    report.note(&format!("{name}_max_ms"), most);
    Ok(())
}
