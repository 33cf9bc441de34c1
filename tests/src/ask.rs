//! One request, with all that can be said about it.

use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header::HOST};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::http::{ANSWER, Protocol, Reply, collect};

/// A request that is not sent yet.
#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    host: String,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    protocol: Protocol,
}

impl Ask {
    /// `GET path` of a host, over HTTP/1.1.
    pub fn get(host: &str, path: &str) -> Self {
        Self {
            method: Method::GET,
            host: host.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            protocol: Protocol::Http1,
        }
    }

    /// With another method.
    pub fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// In another version.
    pub fn over(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// With a header more.
    ///
    /// # Panics
    ///
    /// If it cannot be one.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = name.parse().expect("a header's name");
        self.headers.push((name, value.parse().expect("a header's value")));
        self
    }

    /// Sends it over a connection of its own.
    pub async fn send(&self, to: SocketAddr) -> Result<Reply> {
        let exchange = async { self.over_stream(TcpStream::connect(to).await?).await };
        timeout(ANSWER, exchange)
            .await
            .unwrap_or_else(|_| Err(anyhow!("no answer within {ANSWER:?}")))
            .with_context(|| format!("{} {} at {to} as {}", self.method, self.path, self.host))
    }

    /// Sends it over this connection, which is closed thereafter.
    pub async fn over_stream(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Reply> {
        let stream = TokioIo::new(stream);
        match self.protocol {
            Protocol::Http1 => {
                let (mut sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection);
                let mut request = self.request(self.path.parse()?)?;
                request.headers_mut().insert(HOST, self.host.parse()?);
                // Without a sender the connection closes: collect before it goes.
                collect(sender.send_request(request).await?).await
            }
            Protocol::Http2 => {
                let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
                tokio::spawn(connection);
                let uri = Uri::builder().scheme("http").authority(self.host.as_str());
                let request = self.request(uri.path_and_query(self.path.as_str()).build()?)?;
                collect(sender.send_request(request).await?).await
            }
        }
    }

    fn request(&self, uri: Uri) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(&self.method).uri(uri).body(Full::default())?;
        request.headers_mut().extend(self.headers.iter().cloned());
        Ok(request)
    }
}
