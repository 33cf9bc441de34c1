//! `tower.v1.Sync` over HTTP/2. The Beacon's half is decoded as usual; Tower's half is [`WatchBody`].

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, header::CONTENT_TYPE};
use rand::Rng;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming, codec::BufferSettings, server::NamedService};
use tonic_prost::ProstCodec;
use tower_common::{FEATURE_LEVEL, canonical_scope, digest::Buckets};
use tower_proto::v1;
use tracing::{info, warn};

use super::{
    admission::Admission,
    beacons::{Beacons, Connected},
    body::{self, FetchStart, Inbox, Leave, WatchBody},
    encoding::Encoding,
    frame,
    log::FrameLog,
    peer::Peer,
};
use crate::store_actor::Ask;

/// How long a new stream may take to say hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A Beacon says little; what is larger than this is not from a Beacon.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// What is set aside for each stream to put its Beacon's requests together: most reports fit, and it grows for
/// those that do not. By default it would be a quarter of all that a stream costs.
const REQUEST_BUFFER_BYTES: usize = 512;

/// On average, between two Beacons that leave a Tower that is about to go, unless they are so many that it
/// would take longer than half of the time that they have.
const BETWEEN_LEAVES: Duration = Duration::from_micros(500);

/// Where starts come from: the owner of the store.
pub trait Starts: Send + Sync {
    /// The start for a Beacon that describes its state so.
    fn start(&self, ask: Ask) -> FetchStart;

    /// The start for a Beacon whose buckets are these, leading at least to this place in the log.
    fn buckets(&self, buckets: v1::Buckets, at_least: u64) -> FetchStart;
}

/// The service. Cheap to clone.
#[derive(Clone)]
pub struct SyncService {
    shared: Arc<Options>,
}

/// What the service is made of.
pub struct Options {
    /// The mesh or region; Beacons of others are refused.
    pub scope: String,
    /// How each stream begins.
    pub welcome: v1::Welcome,
    /// What all streams read.
    pub log: Arc<FrameLog>,
    /// Where starts come from.
    pub starts: Arc<dyn Starts>,
    /// Lets starts in.
    pub admission: Arc<Admission>,
    /// Who is connected.
    pub beacons: Arc<Beacons>,
    /// How old a stream gets, give or take half, before its Beacon is sent to the next Tower.
    pub stream_age: Duration,
    /// How long a Beacon that has been said goodbye to may go on following, until it has another stream.
    pub hand_over: Duration,
    /// Cancelled when Tower is about to go.
    pub stopping: CancellationToken,
}

impl SyncService {
    /// The service.
    pub fn new(options: Options) -> Self {
        Self { shared: Arc::new(options) }
    }
}

impl NamedService for SyncService {
    const NAME: &'static str = "tower.v1.Sync";
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl tower_service::Service<Request<tonic::body::Body>> for SyncService {
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        let shared = self.shared.clone();
        Box::pin(async move {
            let result = match request.uri().path() {
                "/tower.v1.Sync/Watch" => watch(shared, request).await,
                path => Err(Status::unimplemented(format!("there is no method {path}"))),
            };
            Ok(result.unwrap_or_else(Status::into_http))
        })
    }
}

async fn watch(
    shared: Arc<Options>,
    request: Request<tonic::body::Body>,
) -> Result<Response<tonic::body::Body>, Status> {
    let peer = Peer::of(request.extensions());
    let encoding = Encoding::accepted(request.headers());
    let buffers = BufferSettings::new(REQUEST_BUFFER_BYTES, REQUEST_BUFFER_BYTES);
    let decoder = ProstCodec::<v1::WatchResponse, v1::WatchRequest>::raw_decoder(buffers);
    let mut requests = Streaming::new_request(decoder, request.into_body(), None, Some(MAX_REQUEST_BYTES));
    let hello = tokio::time::timeout(HELLO_TIMEOUT, requests.message())
        .await
        .map_err(|_| Status::deadline_exceeded("no hello within 10 s"))??;
    let Some(v1::WatchRequest { request: Some(v1::watch_request::Request::Hello(hello)) }) = hello else {
        return Err(Status::invalid_argument("the first request of a stream must be a hello"));
    };
    let ask = ask(&shared.welcome, &hello);
    let claimed = hello.node.as_ref().map(|node| node.id.clone()).unwrap_or_default();
    let node = check(&shared.scope, hello)
        .and_then(|node| peer.check(&node.id).map(|()| node))
        .inspect_err(|status| shared.beacons.refusals().hello(peer.address, &claimed, status))?;
    info!(node = node.id, zone = node.zone, peer = ?peer.address, "beacon connected");
    let connected = Arc::new(shared.beacons.connect(node.clone(), peer.address));
    let ended = CancellationToken::new();
    let reader = shared.log.reader(encoding);
    let inbox = Inbox::new(&reader);
    let listener = Listener {
        node: node.id,
        shared: shared.clone(),
        connected: connected.clone(),
        inbox: inbox.clone(),
        ended: ended.clone(),
    };
    tokio::spawn(listener.run(requests));
    let welcome = v1::WatchResponse { welcome: Some(shared.welcome.clone()), ..Default::default() };
    let starts = shared.starts.clone();
    let body = WatchBody::new(body::Parts {
        welcome: frame::framed(&welcome),
        reader,
        ask,
        fetch: Box::new(move |ask| starts.start(ask)),
        inbox,
        admission: shared.admission.clone(),
        leave: leave(shared.clone()),
        hand_over: shared.hand_over,
        ended,
        connected,
    });
    let mut response = Response::new(tonic::body::Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE);
    encoding.announce(response.headers_mut());
    Ok(response)
}

/// At a jittered age, or when Tower is about to go.
fn leave(shared: Arc<Options>) -> Leave {
    let age = tokio::time::sleep(shared.stream_age.mul_f64(rand::rng().random_range(0.5..1.5)));
    // A child, because all streams look at it with each change.
    let stopping = shared.stopping.child_token();
    Box::pin(async move {
        let goodbye = |reason: v1::goodbye::Reason, wait: Duration| v1::Goodbye {
            reason: reason.into(),
            retry_after_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
        };
        tokio::select! {
            () = age => goodbye(v1::goodbye::Reason::Age, Duration::ZERO),
            () = stopping.cancelled() => {
                // The other Towers are to get them one after the other, and in time.
                let all = BETWEEN_LEAVES.saturating_mul(u32::try_from(shared.beacons.len()).unwrap_or(u32::MAX));
                let wait = all.min(shared.hand_over / 2).mul_f64(rand::rng().random_range(0.0..1.0));
                goodbye(v1::goodbye::Reason::Draining, wait)
            }
        }
    })
}

fn check(scope: &str, hello: v1::Hello) -> Result<v1::Node, Status> {
    if canonical_scope(&hello.scope) != canonical_scope(scope) {
        let message = format!("this Tower serves the scope {scope:?}, not {:?}", hello.scope);
        return Err(Status::failed_precondition(message));
    }
    if hello.feature_level < FEATURE_LEVEL {
        let message = format!(
            "the mesh is at feature level {FEATURE_LEVEL}, this Beacon at {}: update the Beacon",
            hello.feature_level
        );
        return Err(Status::failed_precondition(message));
    }
    let node = hello.node.unwrap_or_default();
    if node.id.is_empty() {
        return Err(Status::invalid_argument("hello.node.id is empty"));
    }
    Ok(node)
}

fn ask(welcome: &v1::Welcome, hello: &v1::Hello) -> Ask {
    let same_run = !hello.tower.is_empty() && hello.tower == welcome.tower;
    Ask {
        revision: same_run.then_some(hello.revision),
        digest: hello.digest.clone(),
        positions: hello.positions.clone(),
    }
}

/// Takes what a Beacon says until it ends its half, or the body is dropped.
struct Listener {
    node: String,
    shared: Arc<Options>,
    connected: Arc<Connected>,
    inbox: Arc<Inbox>,
    ended: CancellationToken,
}

impl Listener {
    async fn run(self, mut requests: Streaming<v1::WatchRequest>) {
        loop {
            let next = tokio::select! {
                () = self.ended.cancelled() => break,
                next = requests.message() => next,
            };
            match next {
                // Without a request it is one from a newer Beacon.
                Ok(Some(v1::WatchRequest { request })) => {
                    let Some(request) = request else { continue };
                    if !self.take(request).await {
                        break;
                    }
                }
                Ok(None) => break,
                Err(status) => {
                    info!(node = self.node, %status, "beacon's stream failed");
                    self.inbox.fail(status);
                    break;
                }
            }
        }
        info!(node = self.node, "beacon disconnected");
        self.ended.cancel();
    }

    /// Returns whether the stream can go on.
    async fn take(&self, request: v1::watch_request::Request) -> bool {
        match request {
            v1::watch_request::Request::Report(report) => self.connected.report(report),
            // Every stream gets everything, which is more than any interest.
            v1::watch_request::Request::Interest(_) => {}
            v1::watch_request::Request::Hello(_) => {
                warn!(node = self.node, "a second hello on a stream is ignored");
            }
            v1::watch_request::Request::Buckets(buckets) => {
                if Buckets::from_proto(&buckets).is_none() {
                    let bytes = buckets.sums.len();
                    warn!(node = self.node, bytes, "buckets.sums are not 1 to 32768 sums of 16 bytes");
                    let fault = format!("buckets.sums has {bytes} bytes, not 1 to 32768 sums of 16 bytes");
                    self.inbox.fail(Status::invalid_argument(fault));
                    return false;
                }
                // What the Beacon has been sent since does not matter: its buckets tell the difference,
                // and the start is sent when the log has been read up to it.
                let start = self.shared.starts.buckets(buckets, self.shared.log.end()).await;
                let Some(start) = start else { return false };
                self.inbox.put(start);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
