//! What is compiled is what Envoy takes: random documents, composed as a Beacon composes them, and Envoy's own
//! opinion of the whole.

mod composed;
mod random;

use anyhow::{Context, Result, bail};
use rand::{SeedableRng, rngs::StdRng};
use tower_common::document::{Document, Effective};
use tower_server::compile::compile;
use tower_tests::{Envoy, rounds};

use self::composed::{Service, bootstrap};
use crate::support::seed;

/// How many documents one Envoy looks at.
const AT_ONCE: usize = 100;

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
