//! `traffic`: how calls are split over subsets.

use reqwest::Method;
use serde::Serialize;
use serde_json::Value;
use tower_common::api::{activation::TrafficRequest, service::ServiceDetail};

use super::{Shell, activation, segment};
use crate::{
    cli,
    failure::{Exit, Failure},
    output::{Cell, Table},
    period::Period,
};

pub(super) async fn run(shell: &Shell<'_>, command: &cli::Traffic) -> Result<(), Failure> {
    match command {
        cli::Traffic::Get { service } => get(shell, service).await,
        cli::Traffic::Set { service, weights, route, ttl, reason, at_once, if_match, waiting } => {
            let mut request = TrafficRequest {
                weights: Default::default(),
                route: route.clone(),
                audience: None,
                steps: None,
                at_once: *at_once,
                reason: reason.clone(),
                ttl_seconds: ttl.map(Period::seconds),
            };
            for (subset, weight) in weights {
                if request.weights.insert(subset.clone(), *weight).is_some() {
                    return Err(Failure::usage(format!("{subset} has two weights")));
                }
            }
            let path = format!("/services/{}/traffic", segment(service));
            activation::start(shell, Method::PUT, &path, &request, if_match.as_deref(), waiting).await
        }
    }
}

/// A share of the calls.
#[derive(Debug, Serialize)]
struct Share {
    route: String,
    subset: String,
    weight: u64,
    percent: f64,
}

async fn get(shell: &Shell<'_>, service: &str) -> Result<(), Failure> {
    let path = format!("/services/{}", segment(service));
    let detail: ServiceDetail = shell.client.get(&path, &[("include", "effective")]).await?;
    let Some(effective) = detail.effective else {
        return Err(Failure::new(
            Exit::Failed,
            format!("{service} has no document in effect: all of its endpoints are called alike"),
        )
        .next("pcloud version upload -f FILE"));
    };
    let shares = shares(&effective.document);
    shell.output.print(
        &shares,
        |_| {
            let mut table = Table::new(&["ROUTE", "SUBSET", "WEIGHT", "SHARE"]);
            for share in &shares {
                table.row([
                    Cell::from(share.route.as_str()),
                    share.subset.as_str().into(),
                    share.weight.into(),
                    format!("{:.1} %", share.percent).into(),
                ]);
            }
            table
        },
        || shares.iter().map(|share| share.subset.clone()).collect(),
    )
}

fn shares(document: &Value) -> Vec<Share> {
    let routes = document.pointer("/spec/callers/routes").and_then(Value::as_array);
    let mut shares = Vec::new();
    for (number, route) in routes.into_iter().flatten().enumerate() {
        let name = route["name"].as_str().map_or_else(|| format!("[{number}]"), str::to_owned);
        let refs: Vec<&Value> = route["backendRefs"].as_array().into_iter().flatten().collect();
        // A reference without a weight counts 1, as in the Gateway API.
        let weight = |of: &Value| of["weight"].as_u64().unwrap_or(1);
        let total: u64 = refs.iter().map(|of| weight(of)).sum();
        for of in &refs {
            #[allow(clippy::cast_precision_loss, reason = "for people, with one digit")]
            let percent = if total == 0 { 0.0 } else { weight(of) as f64 * 100.0 / total as f64 };
            shares.push(Share {
                route: name.clone(),
                subset: of["subset"].as_str().unwrap_or("(all endpoints)").to_owned(),
                weight: weight(of),
                percent,
            });
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn weights_are_shares_of_their_route() {
        let document = json!({"spec": {"callers": {"routes": [
            {"name": "default", "backendRefs": [{"subset": "stable", "weight": 3}, {"subset": "canary"}]},
            {"backendRefs": [{"weight": 0}]},
        ]}}});
        let told: Vec<String> = shares(&document)
            .iter()
            .map(|share| format!("{} {} {} {}", share.route, share.subset, share.weight, share.percent))
            .collect();
        assert_eq!(told, ["default stable 3 75", "default canary 1 25", "[1] (all endpoints) 0 0"]);
    }
}
