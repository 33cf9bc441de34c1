//! The only writer of the store: applies transactions, gives each a revision, encodes it once, and
//! appends it to the frame log. Heartbeats come from here too, so that a stuck store is a silent Tower.

mod catch_up;
mod core;
mod journal;
mod listing;

use std::{sync::Arc, time::Duration};

use actix::{Actor, AsyncContext, Context, Handler, Message};
use tower_common::{
    clock,
    served::Served,
    store::{Store, Transaction},
};
use tower_proto::v1;
use tracing::warn;

use self::catch_up::Way;
pub use self::{
    catch_up::Ask,
    core::{StoreCore, StoreSummary},
    listing::{ServiceCounts, ServiceSummary},
};
use crate::{
    fanout::{
        frame,
        log::{Cursor, FrameLog},
        start::{Start, StartCache, StartFrom},
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

/// Asks for the start of a stream.
#[derive(Debug, Message)]
#[rtype(result = "Arc<Start>")]
pub struct GetStart(pub Ask);

/// Asks for what differs from a store with these buckets.
#[derive(Debug, Message)]
#[rtype(result = "Arc<Start>")]
pub struct GetBuckets {
    /// The buckets.
    pub buckets: v1::Buckets,
    /// The place in the log to which the start is to lead, at least.
    pub at_least: u64,
}

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

/// Asks for all that there is.
#[derive(Debug, Message)]
#[rtype(result = "Store")]
pub struct CopyStore;

/// The actor around [`StoreCore`].
#[derive(Debug)]
pub struct StoreActor {
    core: StoreCore,
    log: Arc<FrameLog>,
    starts: StartCache,
    metrics: StoreMetrics,
    warn_services: usize,
    /// Whether more services are served than is good, and the log says so.
    warned: bool,
}

impl StoreActor {
    /// An actor with an empty store, which warns beyond so many services that are served.
    pub fn new(
        scope: &str,
        served: Served,
        warn_services: usize,
        log: Arc<FrameLog>,
        metrics: StoreMetrics,
    ) -> Self {
        let core = StoreCore::serving(scope, served);
        Self { core, starts: StartCache::new(log.clone()), log, metrics, warn_services, warned: false }
    }

    /// A start from this state, made now or a little earlier.
    fn start(&mut self, from: StartFrom, at_least: u64) -> Arc<Start> {
        if let Some(start) = self.starts.get(&from, at_least) {
            return start;
        }
        self.metrics.starts_encoded.inc();
        let frames = self.core.delivery_from(&from);
        self.starts.put(from, Start { frames, next: Some(self.here()) })
    }

    fn here(&self) -> Cursor {
        Cursor { place: self.log.end(), revision: self.core.revision() }
    }

    fn measure(&self) {
        self.metrics.observe(&self.core.summary(), self.log.usage());
    }

    /// Every Beacon wants every service, and every Envoy pays for each.
    fn count_services(&mut self) {
        let counts = self.core.service_counts();
        self.metrics.observe_services(counts);
        let (services, bound) = (counts.served, self.warn_services);
        if services > bound && !self.warned {
            warn!(services, bound, "every Beacon is sent more services than is good for its Envoys");
        }
        self.warned = services > bound;
    }
}

impl Actor for StoreActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
        context.run_interval(HEARTBEAT_INTERVAL, |actor, _| {
            let probe = actor.metrics.probes.next(clock::monotonic());
            actor.log.append(vec![actor.core.heartbeat(probe)], actor.core.revision());
            actor.measure();
            actor.count_services();
        });
    }
}

impl Handler<Publish> for StoreActor {
    type Result = ();

    fn handle(&mut self, Publish(transaction): Publish, _: &mut Self::Context) {
        if let Some(frames) = self.core.apply(transaction, clock::monotonic()) {
            self.metrics.transactions.inc();
            self.metrics.frame_bytes.inc_by(frames.iter().map(|frame| frame.len() as u64).sum());
            self.log.append(frames, self.core.revision());
        }
        self.measure();
    }
}

impl Handler<GetStart> for StoreActor {
    type Result = actix::MessageResult<GetStart>;

    fn handle(&mut self, GetStart(ask): GetStart, _: &mut Self::Context) -> Self::Result {
        let start = match self.core.way(&ask) {
            Way::There => Arc::new(Start { frames: self.core.nothing_new(), next: Some(self.here()) }),
            Way::From(from) => self.start(from, 0),
            Way::Ask(count) => {
                let ask_buckets = Some(v1::AskBuckets { count });
                let ask = v1::WatchResponse { ask_buckets, ..Default::default() };
                Arc::new(Start { frames: vec![frame::framed(&ask)], next: None })
            }
        };
        actix::MessageResult(start)
    }
}

impl Handler<GetBuckets> for StoreActor {
    type Result = actix::MessageResult<GetBuckets>;

    fn handle(&mut self, message: GetBuckets, _: &mut Self::Context) -> Self::Result {
        actix::MessageResult(self.start(StartFrom::Buckets(message.buckets.sums), message.at_least))
    }
}

impl Handler<Describe> for StoreActor {
    type Result = actix::MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        actix::MessageResult(self.core.summary())
    }
}

impl Handler<CopyStore> for StoreActor {
    type Result = actix::MessageResult<CopyStore>;

    fn handle(&mut self, _: CopyStore, _: &mut Self::Context) -> Self::Result {
        actix::MessageResult(self.core.store().clone())
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
