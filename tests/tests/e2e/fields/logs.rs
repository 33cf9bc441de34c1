//! Access logs.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tower_tests::{Ask, Echo, eventually, ports};

use super::rig::{Instance, Rig};
use crate::support::SOON;

fn lines(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).context("no log yet")?;
    text.lines().map(|line| serde_json::from_str(line).context("no JSON")).collect()
}

/// Waits until the log has these statuses, and nothing else.
async fn logged(path: &Path, expected: &[u64]) -> Vec<Value> {
    eventually(SOON, format!("{expected:?} are logged"), async || {
        let lines = lines(path)?;
        let statuses: Vec<_> = lines.iter().filter_map(|line| line["status"].as_u64()).collect();
        ensure!(statuses == expected, "{statuses:?}");
        Ok(lines)
    })
    .await
}

#[tokio::test]
async fn requests_are_written_about_on_both_sides() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let app = Echo::start("app").await?;
    let at = ports::free_address();
    let path = |name: &str| folder.path().join(name);
    let spec = |of: &str| format!("callers: {{accessLog: {of}}}");
    let (all, own, inbound) = (path("all"), path("own"), path("inbound"));
    let instance = [Instance::at(app.address())];
    let running = Rig::default()
        .service("all", &spec(&format!("{{mode: all, path: {}}}", all.display())), &instance)?
        .service("errors", &spec(&format!("{{mode: errors, path: {}}}", all.display())), &instance)?
        .service("silent", "callers: {}", &instance)?
        .service(
            "own",
            &spec(&format!(
                "{{mode: all, path: {}, fields: {{status: '%RESPONSE_CODE%', who: '%REQ(X-WHO)%'}}}}",
                own.display()
            )),
            &instance,
        )?
        .service(
            "web",
            &format!(
                "inbound: {{ports: [{{name: app, port: {}, appPort: {}}}], accessLog: {{mode: errors, path: {}}}}}",
                at.port(),
                app.address().port(),
                inbound.display()
            ),
            &[],
        )?
        .start()
        .await?;
    let everyone = async || {
        for host in ["all", "errors", "silent", "own"] {
            running.ask(&Ask::get(host, "/x").header("x-who", "me")).await?;
        }
        Ask::get("web", "/x").send(at).await
    };
    everyone().await?;
    app.answer(500);
    everyone().await?;
    // One log of two services: what one of them has only of errors.
    let lines = logged(&all, &[200, 500, 500]).await;
    assert_eq!(
        (&lines[0]["host"], &lines[0]["path"], &lines[0]["method"]),
        (&"all".into(), &"/x".into(), &"GET".into())
    );
    assert_eq!(lines[2]["host"], "errors");
    let lines = logged(&own, &[200, 500]).await;
    assert_eq!(lines[0], serde_json::json!({"status": 200, "who": "me"}));
    logged(&inbound, &[500]).await;
    Ok(())
}
