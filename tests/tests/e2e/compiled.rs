//! What is compiled is what Envoy takes: random documents, composed as a Beacon composes them, and Envoy's own
//! opinion of the whole.

mod composed;
mod random;

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use rand::{SeedableRng, rngs::StdRng};
use tower_common::document::{Document, Effective, Severity, World, check, model::Outbound};
use tower_server::compile::compile;
use tower_tests::{Authority, Envoy, ports, rounds};

use self::{
    composed::{Service, bootstrap},
    random::Files,
};
use crate::{fields::rig::Rig, support::seed};

/// How many documents one Envoy serves at a time.
const TOGETHER: usize = 8;

/// How many documents one Envoy looks at.
const AT_ONCE: usize = 100;

/// So that nothing is shown about documents which nobody could upload.
#[test]
fn random_documents_are_accepted_by_the_checks() {
    let mut rng = StdRng::seed_from_u64(seed());
    let mut refused = BTreeSet::new();
    for number in 0..rounds(200, 2000) {
        let document = random::document(&mut rng, number);
        let effective = Effective { document, ..Effective::default() };
        let findings = check(&effective, &World::unknown()).into_iter();
        let errors = findings.filter(|finding| finding.severity == Severity::Error);
        refused.extend(errors.map(|finding| finding.to_string()));
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
async fn envoy_refuses_nothing_that_documents_lead_to() -> Result<()> {
    let mut rng = StdRng::seed_from_u64(seed());
    let documents: Vec<_> = (0..rounds(50, 2000)).map(|number| random::document(&mut rng, number)).collect();
    for batch in documents.chunks(AT_ONCE) {
        if let Err(error) = accepted(batch).await {
            return Err(error.context(culprit(batch).await));
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_running_envoy_takes_all_of_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let issued = Authority::new("mesh")?.issue(folder.path(), &["web"])?;
    let path = |name: &str| issued.path(name).display().to_string();
    let files = Files { certificate: path("cert.pem"), key: path("key.pem"), authority: path("ca.pem") };
    let mut rng = StdRng::seed_from_u64(seed());
    let mut numbers = 0..rounds(8, 200);
    while !numbers.is_empty() {
        let mut rig = Rig::default();
        for number in numbers.by_ref().take(TOGETHER) {
            let mut document = random::with(&mut rng, number, &files, &mut ports::free_port);
            // What a service may call depends on what that is.
            document.spec.outbound = Outbound::default();
            let name = document.metadata.name;
            rig = rig.service(&name, &serde_json::to_string(&document.spec)?, &[])?;
        }
        rig.start().await?;
    }
    Ok(())
}

/// It shows that Envoy has looked at what we believe it has.
#[tokio::test]
async fn envoy_refuses_what_is_wrong() -> Result<()> {
    let mut rng = StdRng::seed_from_u64(1);
    let documents: Vec<_> = (0..3).map(|number| random::document(&mut rng, number)).collect();
    accepted(&documents).await?;
    // Of what the compiler does not see itself.
    let patches = [
        (
            r#"{"target": {"kind": "Cluster", "name": "s1"}, "merge": {"lb_policy": "CLUSTER_PROVIDED"}}"#,
            "cluster provided LB",
        ),
        (
            r#"{"target": {"kind": "VirtualHost", "name": "s1"}, "merge": {"routes": [
                {"match": {"safe_regex": {"regex": "("}}, "direct_response": {"status": 200}}
            ]}}"#,
            "missing )",
        ),
        (
            r#"{"target": {"kind": "Listener", "name": "inbound/s1/app"}, "merge": {"filter_chains": []}}"#,
            "no filter chains",
        ),
    ];
    for (patch, reason) in patches {
        let mut wrong = documents.clone();
        wrong[1].spec =
            serde_json::from_str(r#"{"inbound": {"ports": [{"name": "app", "port": 1, "appPort": 2}]}}"#)?;
        accepted(&wrong).await?;
        wrong[1].spec.patches = vec![serde_json::from_str(patch)?];
        let error = format!("{:#}", accepted(&wrong).await.expect_err("it is refused"));
        assert!(error.contains(reason), "{error}");
        let culprit = culprit(&wrong).await;
        assert!(culprit.contains(r#""name":"s1""#), "{culprit}");
    }
    Ok(())
}

/// Has Envoy look at these documents together.
async fn accepted(documents: &[Document]) -> Result<()> {
    let mut services = Vec::new();
    for document in documents {
        let effective = Effective { document: document.clone(), ..Effective::default() };
        let name = &document.metadata.name;
        match compile(&effective, name) {
            Ok(bundle) => services.push(Service { name: name.clone(), bundle }),
            Err(findings) => bail!("{name}: {findings:?}"),
        }
    }
    Envoy::validate(&bootstrap(&services)?).await
}

/// The one of these documents that is refused by itself, if there is one.
async fn culprit(documents: &[Document]) -> String {
    let mut suspects = documents;
    while suspects.len() > 1 {
        let (first, second) = suspects.split_at(suspects.len() / 2);
        suspects = if accepted(first).await.is_err() { first } else { second };
    }
    match suspects {
        [one] if accepted(suspects).await.is_err() => {
            let json =
                serde_json::to_string(one).context("a document").unwrap_or_else(|error| error.to_string());
            format!("this document is refused: {json}")
        }
        _ => "each document is accepted by itself".to_owned(),
    }
}
