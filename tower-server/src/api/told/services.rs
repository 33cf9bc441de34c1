//! Services: what is discovered of them, and what the log says.

use tower_common::api::service::{Endpoint, Release, Rule, Service};
use tower_proto::v1;

use super::{audience, some};
use crate::{
    registry::{self, service::Activation},
    store_actor::ServiceSummary,
};

/// A service that is discovered, or in the log, or both.
pub fn service(
    name: &str,
    discovered: Option<&ServiceSummary>,
    logged: Option<&registry::Service>,
) -> Service {
    let stamp = logged.and_then(|logged| logged.changes.last()?.stamp.as_ref());
    Service {
        name: name.to_owned(),
        endpoints: discovered.map_or(0, |summary| summary.endpoints as u64),
        served: discovered.is_some_and(|summary| summary.served),
        domain: discovered.and_then(|summary| summary.domain.clone()),
        refused: discovered.and_then(|summary| summary.refused.clone()),
        owner: logged.and_then(|logged| some(logged.owner())),
        latest_version: logged.map(|logged| logged.versions.len() as u64).filter(|number| *number != 0),
        active: logged.and_then(|logged| release(logged, &logged.assignment.default_release)),
        rules: logged.map_or(0, |logged| logged.assignment.rules.len() as u64),
        activation: logged.and_then(|logged| Some(logged.running()?.id().to_owned())),
        index: logged.map_or(0, |logged| logged.etag),
        changed_unix_ms: stamp.map(|stamp| stamp.time_ms),
    }
}

/// A release of a service; nothing, if it is what a service has without a document.
pub fn release(service: &registry::Service, release: &str) -> Option<Release> {
    let release = some(release)?;
    let version = service.version_of(&release).unwrap_or(0);
    Some(Release { release, version })
}

/// An assignment as rules, the default last.
pub fn rules(service: &registry::Service, assignment: &v1::Assignment) -> Vec<Rule> {
    let rule = |rule: &v1::assignment::Rule| Rule {
        audience: audience(rule.audience.as_ref()),
        release: release(service, &rule.release),
        activation: some(&rule.activation),
    };
    let default = Rule {
        audience: audience(None),
        release: release(service, &assignment.default_release),
        activation: None,
    };
    assignment.rules.iter().map(rule).chain([default]).collect()
}

/// An endpoint of a source.
pub fn endpoint((source, endpoint): (String, v1::Endpoint)) -> Endpoint {
    Endpoint {
        source,
        state: endpoint.state().as_str_name().trim_start_matches("STATE_").to_owned(),
        weight: endpoint.weight.unwrap_or(1.0),
        zone: endpoint.locality.map(|locality| locality.zone).unwrap_or_default(),
        address: endpoint.address,
        port: endpoint.port,
        port_name: endpoint.port_name,
        labels: endpoint.labels.into_iter().collect(),
    }
}
