//! `tower.v1.Sync` over HTTP/2. The Beacon's half is decoded as usual; Tower's half is [`WatchBody`].

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header::CONTENT_TYPE};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming, codec::Codec, server::NamedService};
use tonic_prost::ProstCodec;
use tower_common::{FEATURE_LEVEL, canonical_scope};
use tower_proto::v1;
use tracing::{info, warn};

use super::{
    beacons::{Beacons, Connected},
    body::{FetchFull, WatchBody},
    frame,
    log::FrameLog,
    peer::Peer,
};

/// How long a new stream may take to say hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A Beacon says little; what is larger than this is not from a Beacon.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// Asks for the full state, again and again.
pub type FullSource = Arc<dyn Fn() -> FetchFull + Send + Sync>;

/// The service. Cheap to clone.
#[derive(Clone)]
pub struct SyncService {
    shared: Arc<Shared>,
}

struct Shared {
    scope: String,
    welcome: Bytes,
    log: Arc<FrameLog>,
    full: FullSource,
    beacons: Arc<Beacons>,
}

impl SyncService {
    /// A service for this scope, whose streams start with `welcome`.
    pub fn new(
        scope: &str,
        welcome: v1::Welcome,
        log: Arc<FrameLog>,
        full: FullSource,
        beacons: Arc<Beacons>,
    ) -> Self {
        let welcome = v1::WatchResponse { welcome: Some(welcome), ..Default::default() };
        let (scope, welcome) = (scope.to_owned(), frame::framed(&welcome));
        Self { shared: Arc::new(Shared { scope, welcome, log, full, beacons }) }
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
    shared: Arc<Shared>,
    request: Request<tonic::body::Body>,
) -> Result<Response<tonic::body::Body>, Status> {
    let peer = Peer::of(request.extensions());
    let decoder = ProstCodec::<v1::WatchResponse, v1::WatchRequest>::default().decoder();
    let mut requests = Streaming::new_request(decoder, request.into_body(), None, Some(MAX_REQUEST_BYTES));
    let hello = tokio::time::timeout(HELLO_TIMEOUT, requests.message())
        .await
        .map_err(|_| Status::deadline_exceeded("no hello within 10 s"))??;
    let Some(v1::WatchRequest { request: Some(v1::watch_request::Request::Hello(hello)) }) = hello else {
        return Err(Status::invalid_argument("the first request of a stream must be a hello"));
    };
    let claimed = hello.node.as_ref().map(|node| node.id.clone()).unwrap_or_default();
    let node = check(&shared.scope, hello)
        .and_then(|node| peer.check(&node.id).map(|()| node))
        .inspect_err(|status| shared.beacons.refusals().hello(peer.address, &claimed, status))?;
    info!(node = node.id, zone = node.zone, peer = ?peer.address, "beacon connected");
    let connected = Arc::new(shared.beacons.connect(node.clone(), peer.address));
    let ended = CancellationToken::new();
    tokio::spawn(listen(requests, node.id, connected.clone(), ended.clone()));
    let full = shared.full.clone();
    let body = WatchBody::new(
        shared.welcome.clone(),
        shared.log.reader(),
        Box::new(move || full()),
        ended,
        connected,
    );
    let mut response = Response::new(tonic::body::Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, tonic::metadata::GRPC_CONTENT_TYPE);
    Ok(response)
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

/// Takes the Beacon's reports until it ends its half, or the body is dropped.
async fn listen(
    mut requests: Streaming<v1::WatchRequest>,
    node: String,
    connected: Arc<Connected>,
    ended: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            () = ended.cancelled() => break,
            next = requests.message() => next,
        };
        match next {
            Ok(Some(v1::WatchRequest { request: Some(v1::watch_request::Request::Report(report)) })) => {
                connected.report(report);
            }
            // Every stream gets everything, which is more than any interest.
            Ok(Some(v1::WatchRequest { request: Some(v1::watch_request::Request::Interest(_)) })) => {}
            Ok(Some(v1::WatchRequest { request: Some(v1::watch_request::Request::Hello(_)) })) => {
                warn!(node, "a second hello on a stream is ignored");
            }
            // From a newer Beacon.
            Ok(Some(v1::WatchRequest { request: None })) => {}
            Ok(None) => break,
            Err(status) => {
                info!(node, %status, "beacon's stream failed");
                break;
            }
        }
    }
    info!(node, "beacon disconnected");
    ended.cancel();
}

#[cfg(test)]
mod tests;
