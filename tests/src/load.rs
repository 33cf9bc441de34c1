//! Steady traffic that counts every failure.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Request, header::HOST};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    sync::Mutex,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

/// Longer than any answer takes that is still to come.
const ANSWER: Duration = Duration::from_secs(5);

/// Callers at a time, each on a connection that it keeps.
const CALLERS: u32 = 8;

/// Requests to some hosts through one egress listener, at a steady rate, until it is stopped.
#[derive(Debug)]
pub struct Load {
    callers: JoinSet<()>,
    counted: Arc<Counted>,
    start: Instant,
}

#[derive(Debug, Default)]
struct Counted {
    good: AtomicU64,
    failures: Mutex<BTreeMap<String, Failures>>,
}

/// Failures of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// When the first was, since the start.
    pub first: Duration,
    /// When the last was.
    pub last: Duration,
}

impl Load {
    /// Starts it: so many requests a second, to the hosts in turn.
    pub fn start(egress: SocketAddr, hosts: &[&str], per_second: u32) -> Self {
        let counted = Arc::new(Counted::default());
        let start = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            let counted = counted.clone();
            let pace = Duration::from_secs(1) * CALLERS / per_second;
            callers.spawn(async move {
                let mut tick = interval(pace);
                tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
                let mut connection = None;
                for host in hosts.iter().cycle() {
                    tick.tick().await;
                    match timeout(ANSWER, call(&mut connection, egress, host)).await {
                        Ok(Ok(())) => {
                            counted.good.fetch_add(1, Ordering::Relaxed);
                        }
                        failed => {
                            connection = None;
                            let reason = match failed {
                                Ok(Err(error)) => format!("{host}: {error:#}"),
                                _ => format!("{host}: no answer within {ANSWER:?}"),
                            };
                            let at = start.elapsed();
                            let mut failures = counted.failures.lock().await;
                            let kind =
                                failures.entry(reason).or_insert(Failures { count: 0, first: at, last: at });
                            kind.count += 1;
                            kind.last = at;
                        }
                    }
                }
            });
        }
        Self { callers, counted, start }
    }

    /// How long it has been going.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How many requests were answered with 200.
    pub fn good(&self) -> u64 {
        self.counted.good.load(Ordering::Relaxed)
    }

    /// The failures so far, by kind.
    pub async fn failures(&self) -> BTreeMap<String, Failures> {
        self.counted.failures.lock().await.clone()
    }

    /// Ends it, and fails if any request has failed.
    pub async fn stop(mut self) -> Result<u64> {
        self.callers.shutdown().await;
        let failures = self.failures().await;
        if failures.is_empty() {
            return Ok(self.good());
        }
        bail!("{} requests were answered; these were not: {failures:?}", self.good())
    }
}

async fn call(
    connection: &mut Option<SendRequest<Empty<Bytes>>>,
    egress: SocketAddr,
    host: &str,
) -> Result<()> {
    let sender = match connection {
        Some(sender) if !sender.is_closed() => sender,
        _ => {
            let stream = TcpStream::connect(egress).await.context("cannot connect to Envoy")?;
            let (sender, io) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(io);
            connection.insert(sender)
        }
    };
    sender.ready().await?;
    let request = Request::get("/").header(HOST, host).body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await.context("the body broke off")?.to_bytes();
    if status != 200 {
        bail!("{status}: {}", String::from_utf8_lossy(&body).trim());
    }
    Ok(())
}
