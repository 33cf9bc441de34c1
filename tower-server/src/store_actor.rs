//! The only writer of the store: applies transactions, gives each a revision, encodes it once, and
//! appends it to the frame log. Heartbeats come from here too, so that a stuck store is a silent Tower.

mod core;

use std::{sync::Arc, time::Duration};

use actix::{Actor, AsyncContext, Context, Handler, Message};
use tower_common::store::Transaction;
use tower_proto::v1;

pub use self::core::{ServiceSummary, StoreCore, StoreSummary};
use crate::{
    fanout::{
        full::{FullCache, FullState},
        log::FrameLog,
    },
    metrics::StoreMetrics,
};

/// How often a heartbeat is sent.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Transactions and questions that wait; senders wait beyond it.
const MAILBOX: usize = 1024;

/// A source's transaction. The answer means that it has been applied.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Publish(pub Transaction);

/// Asks for everything, as frames.
#[derive(Debug, Message)]
#[rtype(result = "Arc<FullState>")]
pub struct GetFull;

/// Asks how the store is.
#[derive(Debug, Message)]
#[rtype(result = "StoreSummary")]
pub struct Describe;

/// Asks which services there are.
#[derive(Debug, Message)]
#[rtype(result = "Vec<ServiceSummary>")]
pub struct ListServices;

/// Asks for the endpoints of a service: the id of the source, and the endpoint.
#[derive(Debug, Message)]
#[rtype(result = "Vec<(String, v1::Endpoint)>")]
pub struct ListEndpoints {
    /// The service.
    pub service: String,
}

/// The actor around [`StoreCore`].
#[derive(Debug)]
pub struct StoreActor {
    core: StoreCore,
    log: Arc<FrameLog>,
    fulls: Arc<FullCache>,
    metrics: StoreMetrics,
}

impl StoreActor {
    /// An actor with an empty store.
    pub fn new(scope: &str, log: Arc<FrameLog>, fulls: Arc<FullCache>, metrics: StoreMetrics) -> Self {
        Self { core: StoreCore::new(scope), log, fulls, metrics }
    }

    fn measure(&self) {
        self.metrics.observe(&self.core.summary(), self.log.usage());
    }
}

impl Actor for StoreActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
        context.run_interval(HEARTBEAT_INTERVAL, |actor, _| {
            actor.log.append(vec![actor.core.heartbeat()]);
            actor.measure();
        });
    }
}

impl Handler<Publish> for StoreActor {
    type Result = ();

    fn handle(&mut self, Publish(transaction): Publish, _: &mut Self::Context) {
        if let Some(frames) = self.core.apply(transaction) {
            self.metrics.transactions.inc();
            self.metrics.frame_bytes.inc_by(frames.iter().map(|frame| frame.len() as u64).sum());
            self.log.append(frames);
        }
        self.measure();
    }
}

impl Handler<GetFull> for StoreActor {
    type Result = actix::MessageResult<GetFull>;

    fn handle(&mut self, _: GetFull, _: &mut Self::Context) -> Self::Result {
        // Others may have asked while this one waited.
        let full = self.fulls.get().unwrap_or_else(|| {
            self.metrics.full_encodings.inc();
            self.fulls.put(FullState { frames: self.core.full(), place: self.log.end() })
        });
        actix::MessageResult(full)
    }
}

impl Handler<Describe> for StoreActor {
    type Result = actix::MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        actix::MessageResult(self.core.summary())
    }
}

impl Handler<ListServices> for StoreActor {
    type Result = Vec<ServiceSummary>;

    fn handle(&mut self, _: ListServices, _: &mut Self::Context) -> Self::Result {
        self.core.services()
    }
}

impl Handler<ListEndpoints> for StoreActor {
    type Result = Vec<(String, v1::Endpoint)>;

    fn handle(&mut self, message: ListEndpoints, _: &mut Self::Context) -> Self::Result {
        self.core.endpoints(&message.service)
    }
}
