//! Waiting for a Beacon, and for its Envoy: for init containers, and for units that start in order.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, timeout_at},
};

use crate::options::WaitOptions;

/// Often enough for an application not to notice, seldom enough for nobody else to.
const PAUSE: Duration = Duration::from_millis(100);

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// What is read of an answer.
const ANSWER_BYTES: usize = 4 << 10;

/// The path at which both say whether they are ready.
const READY: &str = "/ready";

/// That they were not ready in time.
#[derive(Debug, thiserror::Error)]
#[error("{what} at {address} was not ready within {} s: {reason}", .timeout.as_secs_f64())]
pub struct NotReady {
    what: &'static str,
    address: SocketAddr,
    timeout: Duration,
    reason: String,
}

/// Waits until the Beacon, and then the Envoy, if there is one, are ready.
///
/// # Errors
/// If the time is over; with what the last answer was.
pub async fn until_ready(options: &WaitOptions) -> Result<(), NotReady> {
    let end = Instant::now() + options.timeout;
    let envoy = options.envoy.map(|address| ("the Envoy", address));
    for (what, address) in std::iter::once(("the Beacon", options.admin)).chain(envoy) {
        loop {
            let Err(reason) = ask(address, end).await else { break };
            if Instant::now() + PAUSE >= end {
                return Err(NotReady { what, address, timeout: options.timeout, reason });
            }
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

async fn ask(address: SocketAddr, end: Instant) -> Result<(), String> {
    match timeout_at(end.min(Instant::now() + ANSWER_TIMEOUT), exchange(address)).await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(answer))) => Err(answer),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// What it answers, if that is not that it is ready.
async fn exchange(address: SocketAddr) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    tokio::spawn(connection);
    let request = Request::get(READY).header(header::HOST, address.to_string()).body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    if status.is_success() {
        return Ok(None);
    }
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await?.to_bytes();
    Ok(Some(format!("{status}: {}", String::from_utf8_lossy(&body).trim())))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// A server that gives these answers, one each.
    async fn server(answers: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await;
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        address
    }

    const NO: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 7\r\n\r\nnot yet";
    const YES: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    fn options(admin: SocketAddr, envoy: Option<SocketAddr>, millis: u64) -> WaitOptions {
        WaitOptions { timeout: Duration::from_millis(millis), admin, envoy }
    }

    #[tokio::test]
    async fn it_asks_until_both_are_ready() {
        let (beacon, envoy) = (server(&[NO, NO, YES]).await, server(&[NO, YES]).await);
        until_ready(&options(beacon, Some(envoy), 20_000)).await.unwrap();
    }

    #[tokio::test]
    async fn it_says_who_was_not_ready_and_why() {
        let (beacon, envoy) = (server(&[YES]).await, server(&[NO]).await);
        let error = until_ready(&options(beacon, Some(envoy), 50)).await.unwrap_err().to_string();
        assert!(error.contains("the Envoy") && error.contains("not yet"), "{error}");
        let gone = "127.0.0.1:1".parse().unwrap();
        let error = until_ready(&options(gone, None, 50)).await.unwrap_err().to_string();
        assert!(error.contains("the Beacon at 127.0.0.1:1") && error.contains("refused"), "{error}");
    }
}
