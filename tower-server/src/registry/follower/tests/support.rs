//! A registry on an embedded log, for tests.

use std::{path::Path, sync::Arc, time::Duration};

use actix::{Actor, Addr};
use bytes::Bytes;
use prost::Message;
use tower_common::{
    resource::{Origin, Resource, ResourceKey},
    served::Served,
    store::Transaction,
};
use tower_proto::v1;

use crate::{
    event_log::Target,
    fanout::log::{FrameLog, Limits},
    metrics::StoreMetrics,
    registry::{Command, Options, Registry, Request, Status, commands::IssueToken, prepare::Hosts},
    store_actor::{Publish, StoreActor},
};

struct NoHosts;

impl Hosts for NoHosts {
    fn first_of(&self, _: &v1::Audience, _: &str) -> Option<String> {
        None
    }
}

pub(crate) fn store() -> Addr<StoreActor> {
    let metrics = StoreMetrics::new(&mut prometheus_client::registry::Registry::default(), Arc::default());
    StoreActor::new("", Served::All, 500, FrameLog::new(Limits::default()), metrics).start()
}

pub(crate) fn options(data_dir: &Path, store: &Addr<StoreActor>) -> Options {
    Options {
        target: Target::Embedded,
        data_dir: data_dir.to_owned(),
        scope: String::new(),
        run: "t".into(),
        checkpoint_every: 5,
        store: store.clone(),
        hosts: Arc::new(NoHosts),
    }
}

pub(crate) fn by(credential: &str, command_id: &str) -> Request {
    let actor = v1::Actor { name: credential.into(), credential: credential.into(), ..Default::default() };
    Request { actor, command_id: command_id.into(), reason: "because".into(), if_match: None }
}

pub(crate) fn issue(id: &str, role: &str) -> Command {
    let issued = v1::TokenIssued {
        id: id.into(),
        name: id.into(),
        hash: vec![7; 32].into(),
        roles: vec![role.into()],
        ..Default::default()
    };
    Command::IssueToken(IssueToken { issued })
}

pub(crate) async fn until(registry: &Registry, condition: impl Fn(&Status) -> bool) -> Status {
    let mut status = registry.status();
    let found = tokio::time::timeout(Duration::from_secs(10), status.wait_for(|status| condition(status)));
    found.await.unwrap_or_else(|_| panic!("{:?}", registry.status().borrow())).unwrap().clone()
}

/// Registers an endpoint with the label `track`.
pub(crate) async fn endpoint(store: &Addr<StoreActor>, service: &str, track: &str) {
    let key = ResourceKey::new("", v1::Kind::Endpoint, service, &format!("10.0.0.1:80/{track}"));
    let endpoint = v1::Endpoint {
        address: "10.0.0.1".into(),
        port: 80,
        labels: [("track".to_owned(), track.to_owned())].into(),
        ..Default::default()
    };
    let origin = Origin { source: "files".into(), index: 1 };
    let upserts = vec![Resource::new(key, origin, Bytes::from(endpoint.encode_to_vec()))];
    store.send(Publish(Transaction { upserts, ..Transaction::default() })).await.unwrap();
}
