//! What a host's Envoys are served, worked out from what the host is sent, as its Beacon does it.

use std::sync::Arc;

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use tower_common::{
    api::{
        Code,
        config::{HostConfig, Resource, Served},
    },
    audience::NodeFacts,
    store::{Store, Transaction},
    view::{Layer, NodeView, XdsResource, composer::Composer, listener, route},
};
use tower_proto::v1;
use utoipa::IntoParams;

use super::fleet::{OfHost, find};
use crate::{
    api::{
        AppState,
        caller::unreadable,
        error::Refused,
        extract::{Path, Query},
        told::hex,
    },
    compile::messages::to_json,
    registry::publication,
    store_actor::CopyStore,
};

/// Where an Envoy listens for calls that leave the host, if its Beacon and its bootstrap say nothing else.
const EGRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 5875);

/// Which of it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConfigQuery {
    /// The type of resources; all of them if absent.
    #[param(inline)]
    what: Option<Served>,
    /// Part of the resource's name.
    search: Option<String>,
    /// Names, versions and sizes alone.
    #[serde(default)]
    index: bool,
    /// As if this release were assigned to the host, such as one that it has refused.
    release: Option<String>,
}

/// What a host's Envoys are served
#[utoipa::path(tag = "hosts", params(OfHost, ConfigQuery), responses((status = 200, body = HostConfig)))]
#[get("/api/v1/hosts/{host}/config")]
pub(crate) async fn host_config(
    state: web::Data<AppState>,
    Path(path): Path<OfHost>,
    Query(query): Query<ConfigQuery>,
) -> Result<HttpResponse, Refused> {
    let host = state.beacons.fleet().host(&path.host);
    let host = host.ok_or_else(|| Refused::no_such("host", &path.host, "/api/v1/hosts"))?;
    let supposed = match &query.release {
        Some(release) => Some(suppose(&state, release).await?),
        None => None,
    };
    // All of a large mesh is composed for this: one at a time.
    let _turn = state.costly.lock().await;
    let mut store = state.ask_store(CopyStore).await?;
    if let Some(transaction) = supposed {
        store.apply(transaction);
    }
    let (scope, facts) = (state.scope.clone(), host.facts.clone());
    let composed = web::block(move || resources(&scope, facts, &store, &query)).await;
    let resources = composed.map_err(|error| Refused::new(Code::Internal, error.to_string()))??;
    Ok(HttpResponse::Ok().json(HostConfig { host: path.host, resources }))
}

/// What a store lacks in which a release is assigned to everybody.
async fn suppose(state: &AppState, release: &str) -> Result<Transaction, Refused> {
    let folded = state.registry.state();
    let found = find(&folded, release);
    let (name, _, made) =
        found.ok_or_else(|| Refused::no_such("release", release, "/api/v1/services/SERVICE"))?;
    let bundle = state.registry.body(&made.bundle).await.map_err(|error| unreadable(&error))?;
    let parts = publication::parts(&state.scope, name, release, folded.index(), &bundle);
    let mut upserts = parts.map_err(|problem| Refused::new(Code::Internal, problem))?;
    let assignment = v1::Assignment { default_release: release.to_owned(), ..v1::Assignment::default() };
    upserts.push(publication::assigning(&state.scope, name, folded.index(), &assignment));
    Ok(Transaction { upserts, ..Transaction::default() })
}

fn resources(
    scope: &str,
    facts: NodeFacts,
    store: &Store,
    query: &ConfigQuery,
) -> Result<Vec<Resource>, Refused> {
    let composer = Composer::of_store(scope, facts, store);
    let composition = composer.composition();
    let layer = |layer: &Layer| layer.values().cloned().collect::<Vec<_>>();
    let with = |first: XdsResource, rest: &Layer| [vec![first], layer(rest)].concat();
    let all: [(Served, &str, Vec<XdsResource>); 5] = [
        (
            Served::Listeners,
            "envoy.config.listener.v3.Listener",
            with(
                listener::egress(&NodeView::new(EGRESS.into()), &composition.access_logs),
                &composition.listeners,
            ),
        ),
        (
            Served::Routes,
            "envoy.config.route.v3.RouteConfiguration",
            with(route::compose(composition.virtual_hosts.values()), &composition.route_configs),
        ),
        (Served::Clusters, "envoy.config.cluster.v3.Cluster", layer(&composition.clusters)),
        (
            Served::Endpoints,
            "envoy.config.endpoint.v3.ClusterLoadAssignment",
            layer(&composition.assignments),
        ),
        (Served::Secrets, "envoy.extensions.transport_sockets.tls.v3.Secret", layer(&composition.secrets)),
    ];
    let mut found = Vec::new();
    for (what, type_name, resources) in all {
        if query.what.is_some_and(|wanted| wanted != what) {
            continue;
        }
        let named = |resource: &&XdsResource| {
            query.search.as_deref().is_none_or(|search| resource.name.contains(search))
        };
        for resource in resources.iter().filter(named) {
            let name: &Arc<str> = &resource.name;
            let json = || {
                to_json(type_name, &resource.body)
                    .map_err(|error| Refused::new(Code::Internal, format!("{type_name} {name:?}: {error}")))
            };
            found.push(Resource {
                what,
                name: name.to_string(),
                version: hex(&resource.version.0),
                bytes: resource.body.len() as u64,
                resource: (!query.index).then(json).transpose()?,
            });
        }
    }
    Ok(found)
}
