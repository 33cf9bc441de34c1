//! A registry on an embedded log, for tests.

use std::{path::Path, sync::Arc};

use actix::{Actor, Addr};
use tower_common::served::Served;

use crate::{
    event_log::Target,
    fanout::log::{FrameLog, Limits},
    fleet::Fleet,
    metrics::StoreMetrics,
    registry::{self, Registry},
    store_actor::StoreActor,
};

/// A store with nothing in it.
pub fn store() -> Addr<StoreActor> {
    let log = FrameLog::new(Limits::default());
    StoreActor::new("", Served::All, 1000, log, StoreMetrics::default(), Arc::default()).start()
}

/// A registry with its log in this folder.
pub async fn registry(folder: &Path) -> Registry {
    let options = registry::Options {
        target: Target::Embedded,
        data_dir: folder.to_owned(),
        scope: String::new(),
        run: "test".into(),
        checkpoint_every: 1000,
        store: store(),
        hosts: Arc::new(Fleet::default()),
    };
    registry::start(options).await.unwrap()
}
