//! What may be open towards a service.

use tower_common::document::model::{Callers, CircuitBreaker, Percent};
use tower_proto::envoy::envoy::{
    config::cluster::v3::{
        CircuitBreakers,
        circuit_breakers::{Thresholds, thresholds::RetryBudget},
    },
    r#type::v3,
};

use super::convert::number;

/// The limits that callers have; `None` if they are all Envoy's own.
///
/// They are in the cluster, so that changing them sets its connections up anew. In a runtime layer they would
/// not, but every Envoy would have to be started with that layer.
pub(super) fn breakers(callers: &Callers) -> Option<CircuitBreakers> {
    let CircuitBreaker { max_connections, max_pending_requests, max_requests, max_retries } =
        callers.circuit_breaker;
    // A budget is the cluster's, and the routes of a service say the same; of different ones the largest is
    // meant to be enough for its route.
    let budgets = callers.routes.iter().filter_map(|route| route.retry.as_ref()?.budget_percent);
    let thresholds = Thresholds {
        max_connections: max_connections.and_then(number),
        max_pending_requests: max_pending_requests.and_then(number),
        max_requests: max_requests.and_then(number),
        max_retries: max_retries.and_then(number),
        retry_budget: budgets.max_by_key(|budget| budget.basis_points()).map(budget),
        ..Default::default()
    };
    (thresholds != Thresholds::default())
        .then(|| CircuitBreakers { thresholds: vec![thresholds], ..Default::default() })
}

/// No limits: towards the application on the same host, whose callers have theirs.
pub(super) fn none() -> CircuitBreakers {
    let thresholds = Thresholds {
        max_connections: number(u32::MAX),
        max_pending_requests: number(u32::MAX),
        max_requests: number(u32::MAX),
        max_retries: number(u32::MAX),
        ..Default::default()
    };
    CircuitBreakers { thresholds: vec![thresholds], ..Default::default() }
}

fn budget(of: Percent) -> RetryBudget {
    RetryBudget { budget_percent: Some(v3::Percent { value: of.value() }), ..Default::default() }
}
