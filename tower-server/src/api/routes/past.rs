//! What was active for a host, at any moment of the log.

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use tower_common::{
    api::{
        Code, Problem,
        fleet::{Active, HostActive},
    },
    view::evaluate,
};
use utoipa::IntoParams;

use super::fleet::OfHost;
use crate::{
    api::{
        AppState,
        caller::unreadable,
        error::Refused,
        extract::{Path, Query, bounded},
    },
    registry::{
        replay::{At, ReplayError},
        service::Activation,
    },
};

/// No time and no index is larger: as much as the description says.
const MAX: u64 = i64::MAX as u64;

/// When; now if nothing is given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhenQuery {
    /// At this time, in milliseconds since 1970.
    at_unix_ms: Option<u64>,
    /// After the entry of the log with this index.
    at_index: Option<u64>,
}

impl WhenQuery {
    fn at(&self) -> Result<At, Refused> {
        for (field, value) in [("at_unix_ms", self.at_unix_ms), ("at_index", self.at_index)] {
            bounded(field, value, 0..=MAX)?;
        }
        match (self.at_unix_ms, self.at_index) {
            (None, None) => Ok(At::Index(u64::MAX)),
            (Some(time_ms), None) => Ok(At::Time(time_ms)),
            (None, Some(index)) => Ok(At::Index(index)),
            (Some(_), Some(_)) => {
                Err(Problem::new(Code::Invalid, "a moment is a time or an index, not both")
                    .field("at_index")
                    .next("leave one of at_unix_ms and at_index out")
                    .into())
            }
        }
    }
}

/// What was active for a host at a moment
///
/// The log is folded again up to there, and its assignments are evaluated for the host as it is known now.
#[utoipa::path(tag = "hosts", params(OfHost, WhenQuery), responses((status = 200, body = HostActive)))]
#[get("/api/v1/hosts/{host}/active")]
pub(crate) async fn host_active(
    state: web::Data<AppState>,
    Path(path): Path<OfHost>,
    Query(query): Query<WhenQuery>,
) -> Result<HttpResponse, Refused> {
    let at = query.at()?;
    let host = state.beacons.fleet().host(&path.host);
    let host = host.ok_or_else(|| Refused::no_such("host", &path.host, "/api/v1/hosts"))?;
    // The whole log may be read for this: one at a time.
    let _turn = state.costly.lock().await;
    let then = state.registry.state_at(at).await.map_err(|error| match error {
        ReplayError::Read(error) => unreadable(&error),
        ReplayError::Fold(error) => {
            Problem::new(Code::Internal, error.to_string()).object("the event log").into()
        }
    })?;
    let active = then.services().filter_map(|(name, service)| {
        let release = evaluate(&service.assignment, &host.facts).ok()?;
        Some(Active {
            service: name.to_owned(),
            version: service.version_of(release)?,
            release: release.to_owned(),
            activation: service.activations.last().map(|record| record.id().to_owned()),
        })
    });
    Ok(HttpResponse::Ok().json(HostActive {
        host: path.host,
        index: then.index(),
        time_unix_ms: (then.index() > 0).then(|| then.time_ms()),
        services: active.collect(),
    }))
}
