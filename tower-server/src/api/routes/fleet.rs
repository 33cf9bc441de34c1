//! Hosts: what they hold, what their Envoys made of it, and who lacks what he should have.

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use tower_common::{
    api::fleet::{Fleet, Held, Host, HostDetail, HostList, HostState, Lack, Lacking, Latency},
    view::evaluate,
};
use tower_proto::v1;
use utoipa::IntoParams;

use super::{groups, queries::PageQuery};
use crate::{
    api::{
        AppState,
        error::Refused,
        extract::{Path, Query},
        page::Page,
        told::{self, fleet as words, some},
    },
    fleet::standing::{self, Counts, Question, judge},
    registry::{Service, State},
    store_actor::HEARTBEAT_INTERVAL,
};

/// Which hosts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Part of the name, or of the zone's.
    search: Option<String>,
    /// Only those that are so.
    #[param(inline)]
    state: Option<HostState>,
    /// Only those of this zone.
    zone: Option<String>,
    /// Only those with this label, as `KEY=VALUE`.
    #[param(pattern = "=")]
    label: Option<String>,
    /// Only those on which this runs: a service, or `SERVICE/CLUSTER`.
    workload: Option<String>,
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
    let wanted = query.wanted()?;
    let mut hosts = state.beacons.fleet().hosts();
    hosts.retain(|host| wanted.takes(host));
    let total = hosts.len() as u64;
    let told = match query.include {
        Some(Include::Types) => words::host_with_types,
        None => words::host,
    };
    let page = Page { cursor: query.cursor.as_deref(), limit: query.limit };
    let (hosts, next) = page.of(hosts.iter().map(|host| told(host)), |host: &Host| host.name.clone())?;
    Ok(HttpResponse::Ok().json(HostList { hosts, total, next }))
}

/// How all hosts are, and those that have something in common
#[utoipa::path(tag = "hosts", responses((status = 200, body = Fleet)))]
#[get("/api/v1/fleet")]
pub(crate) async fn get_fleet(state: web::Data<AppState>) -> HttpResponse {
    let refused = state.beacons.refusals().list().into_iter().map(told::sources::refusal).collect();
    HttpResponse::Ok().json(groups::fleet(&state.beacons.fleet().hosts(), refused))
}

/// How long what this Tower sends takes until Beacons have applied it
#[utoipa::path(tag = "hosts", responses((status = 200, body = Latency)))]
#[get("/api/v1/latency")]
pub(crate) async fn get_latency(state: web::Data<AppState>) -> HttpResponse {
    let outcomes = state.beacons.arrivals().outcomes();
    let interval_ms = u64::try_from(HEARTBEAT_INTERVAL.as_millis()).unwrap_or(u64::MAX);
    HttpResponse::Ok().json(Latency { interval_ms, probes: outcomes.iter().map(words::probe).collect() })
}

impl ListQuery {
    fn wanted(&self) -> Result<Wanted<'_>, Refused> {
        let label = self.label.as_deref().map(|label| {
            let parts = label.split_once('=');
            parts.ok_or_else(|| Refused::malformed("label", "it is written KEY=VALUE".to_owned()))
        });
        Ok(Wanted {
            search: self.search.as_deref().unwrap_or_default().to_lowercase(),
            state: self.state,
            zone: self.zone.as_deref(),
            label: label.transpose()?,
            workload: self.workload.as_deref(),
        })
    }
}

/// Which hosts a list is of.
struct Wanted<'a> {
    search: String,
    state: Option<HostState>,
    zone: Option<&'a str>,
    label: Option<(&'a str, &'a str)>,
    workload: Option<&'a str>,
}

impl Wanted<'_> {
    fn takes(&self, host: &crate::fleet::Host) -> bool {
        let facts = &host.facts;
        let has = |text: &str| text.to_lowercase().contains(&self.search);
        // A host that says nothing of a label is in the group without a name.
        let labelled = |(key, value): (&str, &str)| facts.labels.get(key).map_or("", String::as_str) == value;
        let runs = |wanted: &str| {
            words::workloads(host).any(|workload| {
                workload == wanted || workload.split('/').next().is_some_and(|service| service == wanted)
            })
        };
        (has(&facts.id) || has(&facts.zone))
            && self.state.is_none_or(|state| state == words::condition(host.condition()))
            && self.zone.is_none_or(|zone| facts.zone == zone)
            && self.label.is_none_or(labelled)
            && self.workload.is_none_or(runs)
    }
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
            version: service.version_of(&standing.release),
            wanted_version: service.version_of(&standing.wanted),
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
    let lacking =
        standings.iter().filter(|standing| standing.state != standing::HostState::Accepted).map(words::lack);
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

/// A release of which the log says something: its service, and what it was made of.
pub(super) fn find<'a>(
    folded: &'a State,
    release: &str,
) -> Option<(&'a str, &'a Service, &'a v1::ReleaseMade)> {
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
