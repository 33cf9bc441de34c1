//! Whether what the API says of itself is true: Schemathesis makes requests of its description, good ones and bad
//! ones, and looks at the answers.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::{process::Command, time::timeout};
use tower_tests::{Beacon, BeaconOptions, programs, rounds};

use super::{World, document, expect};
use crate::support::SOON;

/// What Schemathesis takes for granted about the answers to good and to bad requests. A good request may well
/// be about something that is not there, or not so.
const CONFIG: &str = "\
[checks.positive_data_acceptance]
expected-statuses = [\"2xx\", 401, 403, 404, 406, 409, 412, 415, 422, 428]
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428]
";

/// No run takes so long.
const DEADLINE: Duration = Duration::from_secs(600);

#[tokio::test]
async fn schemathesis_finds_nothing() -> Result<()> {
    let world = World::start().await?;
    let admin = world.admin()?;
    let beacon = Beacon::start(BeaconOptions::of(world.tower.grpc())).await?;
    beacon.wait_ready(SOON).await?;
    let hosts = admin.get("/hosts").await?.ok()?.json()?;
    let host = hosts["hosts"][0]["name"].as_str().context("no host")?;
    for seconds in 1..=2 {
        let text = document("web", &format!("{seconds}s"));
        expect(&admin.document("POST", "/services/web/versions", &text).await?, 201)?;
    }
    let activate = json!({"version": 1, "at_once": true, "reason": "something to look at"});
    expect(&admin.json("POST", "/services/web/activations", &activate).await?, 202)?;

    // That the same is asked of things that there are.
    let there = format!(
        "[parameters]\n\"path.service\" = \"web\"\n\"path.number\" = 1\n\"path.host\" = \"{host}\"\n"
    );
    let examples = rounds(8, 300).to_string();
    for (seed, config) in [("1", CONFIG.to_owned()), ("2", format!("{there}{CONFIG}"))] {
        let path = world.tower.folder().join("schemathesis.toml");
        std::fs::write(&path, config).context("cannot write the configuration")?;
        let location = format!("http://{}/api/v1/openapi.json", world.tower.http());
        let mut command = Command::new(programs::schemathesis()?);
        command
            .current_dir(world.tower.folder())
            .arg("--config-file")
            .arg(&path)
            .args(["run", &location, "--no-color", "--continue-on-failure", "--seed", seed])
            .args([
                "--max-examples",
                &examples,
                "--header",
                &format!("Authorization: Bearer {}", admin.token),
            ])
            // The one never ends; the other would end the run's own token.
            .args(["--exclude-path", "/api/v1/activity/stream", "--exclude-operation-id", "revoke_token"])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = timeout(DEADLINE, command.output()).await.context("it does not end")??;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "seed {seed}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        ensure!(!text.contains("operations returned only 401"), "it was not let in: {text}");
    }
    assert_eq!(admin.get("/services/web/versions/1").await?.status, 200, "Tower is well");
    Ok(())
}
