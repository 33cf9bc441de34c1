//! The smallest server that can say who it is.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

use crate::ports;

/// The header that holds the version in which an upstream was asked.
pub const VERSION_HEADER: HeaderName = HeaderName::from_static("x-upstream-version");

/// An HTTP server on 127.0.0.1 that answers each request with its own name, over HTTP/1.1 and
/// HTTP/2 on one port, and any gRPC call as well. It is gone, with its connections, when it is dropped.
#[derive(Debug)]
pub struct Upstream {
    name: String,
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    accept: JoinHandle<()>,
}

impl Upstream {
    /// Starts one. Its port is not given again after it has gone, so nobody else is ever taken for
    /// it by an Envoy that has yet to hear of its end.
    pub async fn start(name: &str) -> Result<Self> {
        Self::start_at(name, ports::free_address()).await
    }

    /// Starts one at an address, as an instance does that comes back.
    pub async fn start_at(name: &str, address: SocketAddr) -> Result<Self> {
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("cannot listen for upstream {name}"))?;
        let address = listener.local_addr()?;
        let requests = Arc::new(AtomicU64::new(0));
        let accept = tokio::spawn(accept(listener, name.to_owned(), Arc::clone(&requests)));
        Ok(Self { name: name.to_owned(), address, requests, accept })
    }

    /// What it answers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it has answered.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

async fn accept(listener: TcpListener, name: String, requests: Arc<AtomicU64>) {
    let name = Bytes::from(name);
    // Owned by this task, so that they end with it.
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // The client has gone before it was accepted.
                Err(_) => continue,
            },
            Some(_) = connections.join_next() => continue,
        };
        let (name, requests) = (name.clone(), Arc::clone(&requests));
        let service = service_fn(move |request| {
            requests.fetch_add(1, Ordering::Relaxed);
            let name = name.clone();
            async move { Ok::<_, Infallible>(answer(request, name).await) }
        });
        connections.spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            // An error is the client's: it has closed, or spoken nonsense.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

async fn answer(request: Request<Incoming>, name: Bytes) -> Answer {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|value| value.starts_with("application/grpc")) {
        return answer_grpc(request, &name).await;
    }
    let mut response = Response::new(Full::new(name).boxed_unsync());
    let version = match request.version() {
        http::Version::HTTP_2 => "HTTP/2.0",
        http::Version::HTTP_11 => "HTTP/1.1",
        _ => "other",
    };
    response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(version));
    response
}

/// To any unary call of gRPC: one message, which is the name.
async fn answer_grpc(request: Request<Incoming>, name: &Bytes) -> Answer {
    // A server that answers before it was asked in full may be taken for one that has failed.
    let _ = request.into_body().collect().await;
    // Not compressed, its length, the message.
    let mut message = vec![0];
    message.extend(u32::try_from(name.len()).expect("a short name").to_be_bytes());
    message.extend_from_slice(name);
    let status = HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from(0))]);
    let body = Full::new(Bytes::from(message)).with_trailers(async { Some(Ok(status)) });
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Protocol, get};

    #[tokio::test]
    async fn it_says_who_it_is_in_either_version() {
        let upstream = Upstream::start("alpha").await.expect("it starts");
        for protocol in Protocol::ALL {
            let reply = get(upstream.address(), protocol, "alpha.mesh", "/").await;
            let reply = reply.expect("it answers");
            assert_eq!((reply.status, reply.body.as_str()), (200, "alpha"));
            assert_eq!(reply.upstream_version(), Some(protocol.version()));
        }
        assert_eq!(upstream.requests(), 2);
    }

    #[tokio::test]
    async fn it_is_gone_when_dropped() {
        let upstream = Upstream::start("alpha").await.expect("it starts");
        let address = upstream.address();
        drop(upstream);
        crate::eventually(std::time::Duration::from_secs(5), "refused", async || {
            match get(address, Protocol::Http1, "alpha.mesh", "/").await {
                Ok(reply) => anyhow::bail!("answered by {}", reply.body),
                Err(_) => Ok(()),
            }
        })
        .await;
    }
}
