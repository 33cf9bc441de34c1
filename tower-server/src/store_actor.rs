//! The only writer of the store: applies transactions, gives each a revision, encodes it once, alone or with
//! others that come at the same time, and appends it to the frame log. Heartbeats come from here too, so that a
//! stuck store is a silent Tower.

mod catch_up;
mod core;
mod flushes;
mod journal;
mod listing;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{Actor, AsyncContext, Context, Handler, Message};
use bytes::Bytes;
use tower_common::{
    clock,
    served::Served,
    store::{Store, Transaction},
};
use tower_proto::v1;
use tracing::warn;

pub use self::{
    catch_up::Ask,
    core::{StoreCore, StoreSummary},
    listing::{ServiceCounts, ServiceSummary},
};
use self::{catch_up::Way, flushes::Flushes};
use crate::{
    fanout::{
        arrivals::Arrivals,
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
    flushes: Flushes,
    /// Whether a flush has been put off.
    put_off: bool,
    /// Since when a heartbeat is due, if one is.
    beat: Option<Instant>,
    arrivals: Arc<Arrivals>,
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
        arrivals: Arc<Arrivals>,
    ) -> Self {
        let core = StoreCore::serving(scope, served);
        Self {
            core,
            starts: StartCache::new(log.clone()),
            flushes: Flushes::new(clock::monotonic()),
            put_off: false,
            beat: None,
            arrivals,
            log,
            metrics,
            warn_services,
            warned: false,
        }
    }

    /// Whether something waits to be sent.
    fn is_waiting(&self) -> bool {
        self.beat.is_some() || self.flushes.sent() < self.core.revision()
    }

    /// Sends what waits, as soon as that may be.
    fn flush_soon(&mut self, context: &mut Context<Self>) {
        let wait = self.flushes.wait(clock::monotonic());
        if wait.is_zero() {
            self.flush();
        } else if !self.put_off {
            self.put_off = true;
            context.run_later(wait, |actor, _| {
                actor.put_off = false;
                actor.flush();
            });
        }
    }

    /// Sends what waits: the log is at the store's revision then.
    fn flush(&mut self) {
        let sent = self.flushes.sent();
        let mut frames = if sent < self.core.revision() { self.core.flush(sent) } else { Vec::new() };
        frames.extend(self.beat.take().map(|due| self.core.heartbeat(self.arrivals.sent(due))));
        if !frames.is_empty() {
            self.append(frames);
        }
    }

    /// Appends what brings readers to the store's revision.
    fn append(&mut self, frames: Vec<Bytes>) {
        self.metrics.frame_bytes.inc_by(frames.iter().map(|frame| frame.len() as u64).sum());
        self.log.append(frames, self.core.revision());
        self.flushes.flushed(self.core.revision(), self.log.readers(), clock::monotonic());
    }

    /// A start from this state, made now or a little earlier.
    fn start(&mut self, from: StartFrom, at_least: u64) -> Arc<Start> {
        if let Some(start) = self.starts.get(&from, at_least) {
            return start;
        }
        self.metrics.starts_encoded.inc();
        let frames = self.core.delivery_from(&from);
        self.starts.put(from, Start::new(frames, Some(self.here())))
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
        context.run_interval(HEARTBEAT_INTERVAL, |_, context| {
            // It waits for its turn as changes do.
            context.address().do_send(Beat(clock::monotonic()));
        });
    }
}

/// A heartbeat is due since then.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Beat(Instant);

impl Handler<Beat> for StoreActor {
    type Result = ();

    fn handle(&mut self, Beat(due): Beat, context: &mut Self::Context) {
        self.beat.get_or_insert(due);
        self.flush_soon(context);
        self.measure();
        self.count_services();
    }
}

impl Handler<Publish> for StoreActor {
    type Result = ();

    fn handle(&mut self, Publish(transaction): Publish, context: &mut Self::Context) {
        let loads = self.core.loads(&transaction);
        if loads {
            self.flush();
        }
        let alone = !self.is_waiting() && self.flushes.wait(clock::monotonic()).is_zero();
        if let Some(applied) = self.core.take(transaction, clock::monotonic()) {
            self.metrics.transactions.inc();
            if loads || alone {
                self.append(self.core.frames(applied));
            } else {
                self.flush_soon(context);
            }
        }
        self.measure();
    }
}

impl Handler<GetStart> for StoreActor {
    type Result = actix::MessageResult<GetStart>;

    fn handle(&mut self, GetStart(ask): GetStart, _: &mut Self::Context) -> Self::Result {
        self.flush();
        let start = match self.core.way(&ask) {
            Way::There => Arc::new(Start::new(self.core.nothing_new(), Some(self.here()))),
            Way::From(from) => self.start(from, 0),
            Way::Ask(count) => {
                let ask_buckets = Some(v1::AskBuckets { count });
                let ask = v1::WatchResponse { ask_buckets, ..Default::default() };
                Arc::new(Start::new(vec![frame::framed(&ask)], None))
            }
        };
        actix::MessageResult(start)
    }
}

impl Handler<GetBuckets> for StoreActor {
    type Result = actix::MessageResult<GetBuckets>;

    fn handle(&mut self, message: GetBuckets, _: &mut Self::Context) -> Self::Result {
        self.flush();
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

#[cfg(test)]
mod tests {
    use tower_common::resource::{Origin, Resource, ResourceKey};

    use super::*;
    use crate::fanout::{encoding::Encoding, log::Limits};

    fn publish(name: &str) -> Publish {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
        let origin = Origin { source: "zk".into(), index: 1 };
        let upserts = vec![Resource::new(key, origin, Bytes::new())];
        Publish(Transaction { upserts, ..Default::default() })
    }

    #[actix::test]
    async fn a_start_goes_on_where_the_log_ends_although_changes_wait() {
        let log = FrameLog::new(Limits::default());
        // So many that changes wait as long as they may.
        let readers: Vec<_> = (0..10_000).map(|_| log.reader(Encoding::Plain)).collect();
        let of_actor = log.clone();
        let store =
            StoreActor::new("", Served::All, 1000, of_actor, StoreMetrics::default(), Arc::default()).start();
        for name in ["a", "b", "c", "d"] {
            store.send(publish(name)).await.unwrap();
        }
        let ask = Ask { revision: Some(1), ..Default::default() };
        let start = store.send(GetStart(ask)).await.unwrap();
        assert_eq!(start.next, Some(Cursor { place: log.end(), revision: 4 }));
        // The first did not wait for others; what waited became one.
        assert_eq!(log.end(), 2);
        drop(readers);
    }
}
