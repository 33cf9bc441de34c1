//! Hosts: what they hold, what their Envoys made of it, and who lacks what he should have.

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use tower_common::{
    api::fleet::{Held, Host, HostDetail, HostList, Lack, Lacking},
    view::evaluate,
};
use tower_proto::v1;
use utoipa::IntoParams;

use super::queries::PageQuery;
use crate::{
    api::{
        AppState,
        error::Refused,
        extract::{Path, Query},
        page::Page,
        told::{self, fleet as words, some},
    },
    fleet::standing::{Counts, HostState, Question, judge},
    registry::{Service, State},
};

/// Which hosts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Part of the name, or of the zone's.
    search: Option<String>,
    /// With what is otherwise only told of one host.
    #[param(inline)]
    include: Option<Include>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// What else is told of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Include {
    /// What its xDS clients made of each type.
    Types,
}

/// A host in the path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OfHost {
    /// The name of the host.
    pub host: String,
}

/// A release in the path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OfRelease {
    /// The id of the release.
    release: String,
}

/// Hosts that this Tower knows
#[utoipa::path(tag = "hosts", responses((status = 200, body = HostList)), params(ListQuery))]
#[get("/api/v1/hosts")]
pub(crate) async fn list_hosts(
    state: web::Data<AppState>,
    Query(query): Query<ListQuery>,
) -> Result<HttpResponse, Refused> {
    let search = query.search.as_deref().unwrap_or_default();
    let hosts = state.beacons.fleet().hosts();
    let found =
        hosts.iter().filter(|host| host.facts.id.contains(search) || host.facts.zone.contains(search));
    let told = match query.include {
        Some(Include::Types) => words::host_with_types,
        None => words::host,
    };
    let page = Page { cursor: query.cursor.as_deref(), limit: query.limit };
    let (hosts, next) = page.of(found.map(|host| told(host)), |host: &Host| host.name.clone())?;
    Ok(HttpResponse::Ok().json(HostList { hosts, next }))
}

/// A host, what it holds, and what its Envoys made of it
#[utoipa::path(tag = "hosts", responses((status = 200, body = HostDetail)), params(OfHost))]
#[get("/api/v1/hosts/{host}")]
pub(crate) async fn get_host(
    state: web::Data<AppState>,
    Path(path): Path<OfHost>,
) -> Result<HttpResponse, Refused> {
    let host = state.beacons.fleet().host(&path.host);
    let host = host.ok_or_else(|| Refused::no_such("host", &path.host, "/api/v1/hosts"))?;
    let folded = state.registry.state();
    let assigned = folded.services().filter(|(name, service)| {
        service.assignment != v1::Assignment::default() || host.releases.contains_key(*name)
    });
    let held = |(name, service): (&str, &std::sync::Arc<Service>)| {
        let standing = judge(&host, question(&state, name, service));
        Held {
            service: name.to_owned(),
            release: some(&standing.release),
            wanted: some(&standing.wanted),
            state: words::state(standing.state),
            detail: some(&standing.why),
            since_unix_ms: standing.since_unix_ms,
            rejection: standing.rejection.as_ref().map(told::activations::rejection),
        }
    };
    let detail = HostDetail { host: words::host_with_types(&host), releases: assigned.map(held).collect() };
    Ok(HttpResponse::Ok().json(detail))
}

/// Hosts that should have a release, and have not
#[utoipa::path(tag = "hosts", responses((status = 200, body = Lacking)), params(OfRelease, PageQuery))]
#[get("/api/v1/releases/{release}/lacking")]
pub(crate) async fn list_lacking(
    state: web::Data<AppState>,
    Path(path): Path<OfRelease>,
    Query(query): Query<PageQuery>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let found = find(&folded, &path.release);
    let (name, service, made) =
        found.ok_or_else(|| Refused::no_such("release", &path.release, "/api/v1/services/SERVICE"))?;
    let question = question(&state, name, service);
    let hosts = state.beacons.fleet().hosts();
    let wants = |host: &&std::sync::Arc<crate::fleet::Host>| {
        evaluate(&service.assignment, &host.facts).is_ok_and(|wanted| wanted == path.release)
    };
    let standings: Vec<_> = hosts.iter().filter(wants).map(|host| judge(host, question)).collect();
    let lacking = standings.iter().filter(|standing| standing.state != HostState::Accepted).map(words::lack);
    let (lacking, next) = query.page().of(lacking, |lack: &Lack| lack.host.clone())?;
    Ok(HttpResponse::Ok().json(Lacking {
        version: made.version,
        service: name.to_owned(),
        hosts: words::progress(&Counts::of(&standings)),
        release: path.release,
        lacking,
        next,
    }))
}

fn find<'a>(folded: &'a State, release: &str) -> Option<(&'a str, &'a Service, &'a v1::ReleaseMade)> {
    let mut services = folded.services();
    services.find_map(|(name, service)| Some((name, &**service, service.release(release)?)))
}

/// What is asked of hosts about a service: whether they have what it assigns now.
fn question<'a>(state: &AppState, name: &'a str, service: &'a Service) -> Question<'a> {
    let stamp =
        service.activations.last().and_then(|record| record.ended_stamp.as_ref().or(record.stamp.as_ref()));
    Question {
        service: name,
        assignment: &service.assignment,
        revision: state.registry.revision_of(name),
        since_unix_ms: stamp.map_or(0, |stamp| stamp.time_ms),
    }
}
