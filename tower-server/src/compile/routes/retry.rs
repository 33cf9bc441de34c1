//! Whether a request is tried again.

use tower_common::document::model::Retry;
use tower_proto::envoy::envoy::{
    config::route::v3::{
        RetryPolicy,
        retry_policy::{RetryBackOff, RetryHostPredicate, retry_host_predicate},
    },
    extensions::retry::host::previous_hosts::v3::PreviousHostsPredicate,
};

use super::{Place, Timeouts};
use crate::compile::{
    convert::{duration, number},
    messages::any,
};

/// How often another host is looked for.
const ANOTHER_HOST: i64 = 5;

/// Envoy's policy; `None` for none.
///
/// A caller whose document says nothing of retries tries once more after a connect failure, as it does without
/// a document: what was never connected was never seen, and an endpoint that is gone but still registered
/// should cost nobody a request. `attempts: 0` takes that away.
pub(super) fn policy(place: Place<'_>, of: Option<&Retry>, timeouts: &Timeouts) -> Option<RetryPolicy> {
    let mut policy = match (of, place) {
        (Some(retry), _) if retry.attempts > 0 => asked_for(retry),
        (None, Place::Callers { .. }) => RetryPolicy {
            retry_on: "connect-failure".to_owned(),
            num_retries: number(1),
            ..Default::default()
        },
        // Only for the time that each try may take.
        (Some(_), _) | (None, Place::Inbound { .. }) => {
            timeouts.backend_request?;
            RetryPolicy { num_retries: number(0), ..Default::default() }
        }
    };
    policy.per_try_timeout = timeouts.backend_request.filter(|limit| limit.as_millis() > 0).map(duration);
    let again = policy.num_retries.is_some_and(|retries| retries.value > 0);
    if again && matches!(place, Place::Callers { .. }) {
        policy.retry_host_predicate = vec![RetryHostPredicate {
            name: "envoy.retry_host_predicates.previous_hosts".to_owned(),
            config_type: Some(retry_host_predicate::ConfigType::TypedConfig(any(&PreviousHostsPredicate {}))),
        }];
        policy.host_selection_retry_max_attempts = ANOTHER_HOST;
    }
    Some(policy)
}

fn asked_for(of: &Retry) -> RetryPolicy {
    let mut on = Vec::new();
    let mut statuses = Vec::new();
    for condition in of.conditions() {
        match condition.parse() {
            Ok(status) => statuses.push(status),
            Err(_) => on.push(condition),
        }
    }
    if !statuses.is_empty() && !on.contains(&"retriable-status-codes") {
        on.push("retriable-status-codes");
    }
    RetryPolicy {
        retry_on: on.join(","),
        retriable_status_codes: statuses,
        num_retries: number(of.attempts),
        retry_back_off: of.backoff.as_ref().map(|backoff| RetryBackOff {
            base_interval: Some(duration(backoff.base)),
            max_interval: backoff.max.map(duration),
        }),
        ..Default::default()
    }
}
