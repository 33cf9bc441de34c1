//! A server that remembers what it was asked, and answers as it is told.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header::HOST};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::ports;

/// An HTTP server on 127.0.0.1 that answers with its name, over HTTP/1.1 and HTTP/2 on one port. It is gone,
/// with its connections, when it is dropped.
#[derive(Debug)]
pub struct Echo {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    accept: JoinHandle<()>,
}

/// A request as it has arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its method.
    pub method: Method,
    /// Its path with the query.
    pub path: String,
    /// The host that was asked for.
    pub host: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// The version of HTTP.
    pub version: http::Version,
}

#[derive(Debug)]
struct Shared {
    name: String,
    status: StatusCode,
    delay: Duration,
    held: watch::Sender<bool>,
    headers: HeaderMap,
    seen: Vec<Seen>,
    connections: usize,
}

impl Echo {
    /// Starts one, which answers 200 at once.
    pub async fn start(name: &str) -> Result<Self> {
        let listener = TcpListener::bind(ports::free_address()).await;
        let listener = listener.with_context(|| format!("cannot listen for {name}"))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Mutex::new(Shared {
            name: name.to_owned(),
            status: StatusCode::OK,
            delay: Duration::ZERO,
            held: watch::Sender::new(false),
            headers: HeaderMap::new(),
            seen: Vec::new(),
            connections: 0,
        }));
        let accept = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accept })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with this status from now on.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn answer(&self, status: u16) {
        self.with(|shared| shared.status = StatusCode::from_u16(status).expect("a status"));
    }

    /// Takes so long for an answer from now on.
    pub fn take(&self, delay: Duration) {
        self.with(|shared| shared.delay = delay);
    }

    /// Answers nothing until [`let_go`](Self::let_go), also what it was asked before and has not answered.
    pub fn hold(&self) {
        self.with(|shared| shared.held.send_replace(true));
    }

    /// Answers what it has held back, and what it is asked from now on.
    pub fn let_go(&self) {
        self.with(|shared| shared.held.send_replace(false));
    }

    /// Answers with this header from now on.
    ///
    /// # Panics
    ///
    /// If it cannot be one.
    pub fn say(&self, name: &'static str, value: &str) {
        self.with(|shared| shared.headers.insert(name, value.parse().expect("a header's value")));
    }

    /// What it was asked so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.with(|shared| shared.seen.clone())
    }

    /// What it was asked last.
    pub fn last(&self) -> Result<Seen> {
        self.with(|shared| shared.seen.last().cloned()).context("it was not asked")
    }

    /// How often somebody has connected to it.
    pub fn connections(&self) -> usize {
        self.with(|shared| shared.connections)
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Shared) -> T) -> T {
        with(&self.shared, use_it)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

impl Seen {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn with<T>(shared: &Mutex<Shared>, use_it: impl FnOnce(&mut Shared) -> T) -> T {
    use_it(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn accept(listener: TcpListener, shared: Arc<Mutex<Shared>>) {
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
        with(&shared, |shared| shared.connections += 1);
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move { Ok::<_, Infallible>(answer(request, &shared).await) }
        });
        connections.spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            // An error is the client's: it has closed, or spoken nonsense.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: &Mutex<Shared>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    // A server that answers before it was asked in full may be taken for one that has failed.
    let _ = body.collect().await;
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
    let seen = Seen {
        method: head.method,
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        host: host.to_owned(),
        headers: head.headers.clone(),
        version: head.version,
    };
    let (delay, mut held, mut response) = with(shared, |shared| {
        shared.seen.push(seen);
        let mut response = Response::new(Full::new(Bytes::from(shared.name.clone())));
        *response.status_mut() = shared.status;
        response.headers_mut().extend(shared.headers.clone());
        (shared.delay, shared.held.subscribe(), response)
    });
    if response.status() == StatusCode::NO_CONTENT {
        *response.body_mut() = Full::default();
    }
    tokio::time::sleep(delay).await;
    // It ends with what it is answered for.
    let _ = held.wait_for(|held| !held).await;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Protocol};

    #[tokio::test]
    async fn it_remembers_and_obeys() {
        let echo = Echo::start("alpha").await.expect("it starts");
        echo.answer(503);
        echo.say("x-mood", "bad");
        for protocol in Protocol::ALL {
            let ask = Ask::get("web.mesh", "/a?b=c").header("x-test", "1").over(protocol);
            let reply = ask.send(echo.address()).await.expect("an answer");
            assert_eq!((reply.status, reply.body.as_str()), (503, "alpha"));
            assert_eq!(reply.headers["x-mood"], "bad");
            let seen = echo.last().expect("it was asked");
            assert_eq!((seen.path.as_str(), seen.host.as_str()), ("/a?b=c", "web.mesh"));
            assert_eq!((seen.method.as_str(), seen.header("x-test")), ("GET", Some("1")));
        }
        assert_eq!((echo.seen().len(), echo.connections()), (2, 2));
    }
}
