//! Requests over HTTP/1.1 and HTTP/2, and who answered them.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    marker::PhantomData,
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Uri,
    header::{CONTENT_TYPE, HOST},
};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, time::timeout};

use crate::upstream::VERSION_HEADER;

/// Longer than any answer on loopback takes, also on a busy machine.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// What a caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 in clear text with prior knowledge, as gRPC does.
    Http2,
}

impl Protocol {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Http1, Self::Http2];

    /// The name that an [`Upstream`](crate::Upstream) gives it in `x-upstream-version`.
    pub fn version(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as text.
    pub body: String,
}

impl Reply {
    /// The version in which the upstream was asked, from its header.
    pub fn upstream_version(&self) -> Option<&str> {
        self.headers.get(VERSION_HEADER)?.to_str().ok()
    }

    /// The body, read as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.body).with_context(|| format!("not JSON: {}", self.body))
    }

    /// This reply, if its status is 200.
    pub fn ok(self) -> Result<Self> {
        ensure!(self.status == 200, "status {}: {}", self.status, self.body.trim());
        Ok(self)
    }
}

/// Asks for `path` at `address`, naming `host`, over a connection of its own.
///
/// One connection per request lets each be balanced anew, and leaves none behind that a server which
/// drains would have to wait for.
pub async fn get(address: SocketAddr, protocol: Protocol, host: &str, path: &str) -> Result<Reply> {
    timeout(ANSWER, exchange(address, protocol, host, path))
        .await
        .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {ANSWER:?}")))
        .with_context(|| format!("GET {path} at {address} as {host}"))
}

/// Posts JSON to `path` at `address`, as tools do.
pub async fn post(address: SocketAddr, path: &str, body: &serde_json::Value) -> Result<Reply> {
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    send(address, request.body(Bytes::from(body.to_string()))?).await
}

/// Sends any request over HTTP/1.1, on a connection of its own.
pub async fn send(address: SocketAddr, mut request: Request<Bytes>) -> Result<Reply> {
    let what = format!("{} {} at {address}", request.method(), request.uri());
    request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
    let exchange = async {
        let stream = TokioIo::new(TcpStream::connect(address).await?);
        let (mut sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(connection);
        collect(sender.send_request(request.map(Full::new)).await?).await
    };
    timeout(ANSWER, exchange)
        .await
        .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {ANSWER:?}")))
        .context(what)
}

async fn exchange(address: SocketAddr, protocol: Protocol, host: &str, path: &str) -> Result<Reply> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let response = match protocol {
        Protocol::Http1 => {
            let (mut sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(connection);
            let request = Request::get(path).header(HOST, host).body(Empty::<Bytes>::new())?;
            // Without a sender the connection closes: collect before it goes.
            return collect(sender.send_request(request).await?).await;
        }
        Protocol::Http2 => {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(connection);
            // HTTP/2 takes :authority from the URI, and has no Host header.
            let uri = Uri::builder().scheme("http").authority(host).path_and_query(path).build()?;
            let request = Request::get(uri).body(Empty::<Bytes>::new())?;
            sender.send_request(request).await?
        }
    };
    collect(response).await
}

pub(crate) async fn collect(response: http::Response<Incoming>) -> Result<Reply> {
    let (head, body) = response.into_parts();
    let body = body.collect().await.context("the body broke off")?.to_bytes();
    Ok(Reply {
        status: head.status.as_u16(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// A caller of services through an Envoy's egress listener, which it cannot outlive.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'envoy> {
    egress: SocketAddr,
    protocol: Protocol,
    envoy: PhantomData<&'envoy ()>,
}

impl Caller<'_> {
    /// A caller through the listener at `egress`.
    pub fn new(egress: SocketAddr, protocol: Protocol) -> Self {
        Self { egress, protocol, envoy: PhantomData }
    }

    /// What it speaks.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Calls `host`.
    pub async fn get(&self, host: &str) -> Result<Reply> {
        get(self.egress, self.protocol, host, "/").await
    }

    /// Calls `host` several times, and counts who answers.
    pub async fn tally(&self, host: &str, requests: usize) -> Result<Tally> {
        let mut tally = Tally::default();
        for _ in 0..requests {
            let reply = self.get(host).await?;
            if reply.status == 200 {
                *tally.answers.entry(reply.body).or_default() += 1;
            } else {
                *tally.failures.entry(reply.status).or_default() += 1;
            }
        }
        Ok(tally)
    }
}

/// How often each upstream answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Answers with status 200, by the name of the upstream.
    pub answers: BTreeMap<String, usize>,
    /// Other answers, by their status.
    pub failures: BTreeMap<u16, usize>,
}

impl Tally {
    /// How many requests this upstream has answered.
    pub fn of(&self, name: &str) -> usize {
        self.answers.get(name).copied().unwrap_or_default()
    }

    /// Whether these upstreams have answered, all of them and nobody else, without a failure.
    pub fn is_exactly(&self, names: &[&str]) -> bool {
        self.failures.is_empty()
            && self.answers.len() == names.len()
            && names.iter().all(|name| self.answers.contains_key(*name))
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = self.answers.iter().map(|(name, count)| format!("{name} {count}"));
        let failures = self.failures.iter().map(|(status, count)| format!("HTTP {status}: {count}"));
        f.write_str(&answers.chain(failures).collect::<Vec<_>>().join(", "))
    }
}
