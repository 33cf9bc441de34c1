//! Clients of the peers, by the thousand, in one thread, as the simulated Beacons are: raw sockets, HTTP/2 by
//! hand, and what many receive is decoded once.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use mio::{Events, Interest, Poll, Token, Waker};
use tower_common::clock;

use super::{
    protocol::{Decoder, Protocol, Wanted},
    subscriber::{Said, Subscriber},
};
use crate::swarm::{
    connection::{Connection, Target},
    messages::body,
};

/// The name of the thread, by which its CPU time is found.
pub const THREAD: &str = "clients";

/// So many connect at a time.
const CONNECTING: usize = 200;

const WAKER: Token = Token(usize::MAX);

/// Between two looks at how far they are.
const LOOK: Duration = Duration::from_millis(2);

/// The clients of one server. They leave when this is dropped.
#[derive(Debug)]
pub struct Clients {
    /// How many.
    pub count: usize,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    end: AtomicBool,
    ready: AtomicUsize,
    bytes: AtomicU64,
    fault: Mutex<Option<String>>,
    mark: Mutex<Mark>,
}

/// A change, and when it came to whom.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    number: usize,
    wanted: Wanted,
    start: Option<Instant>,
    /// From the request until a client had it, in milliseconds.
    pub millis: Vec<f32>,
}

impl Clients {
    /// Connects so many, one after the other.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(count: usize, address: SocketAddr, protocol: Protocol) -> Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let run = move || {
            let mut slots = Vec::new();
            slots.resize_with(count, || None);
            let decoder = Decoder::new(protocol.clone());
            let shared = of_thread.clone();
            let run = Loop { poll, slots, opened: 0, address, protocol, decoder, shared }.run();
            if let Err(why) = run {
                *of_thread.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        };
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(run);
        let thread = Some(thread.context("the clients have no thread")?);
        Ok(Self { count, shared, waker, thread })
    }

    /// Waits until all have what there is.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn until_ready(&self, limit: Duration) -> Result<()> {
        self.until("are connected", limit, || self.shared.ready.load(Relaxed)).await
    }

    /// A change is about to be made. Now its time begins.
    pub fn mark(&self, wanted: Wanted) {
        let mut mark = self.shared.mark();
        let millis = Vec::with_capacity(self.count);
        *mark = Mark { number: mark.number + 1, wanted, start: Some(clock::monotonic()), millis };
    }

    /// Waits until all have it.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn until_seen(&self, limit: Duration) -> Result<Mark> {
        self.until("have the change", limit, || self.shared.mark().millis.len()).await?;
        Ok(self.shared.mark().clone())
    }

    /// Bytes that were received so far.
    pub fn bytes(&self) -> f64 {
        self.shared.bytes.load(Relaxed) as f64
    }

    async fn until(&self, what: &str, limit: Duration, so_far: impl Fn() -> usize) -> Result<()> {
        let start = clock::monotonic();
        loop {
            if let Some(why) = &*self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) {
                bail!("the clients have ended: {why}");
            }
            let done = so_far();
            if done == self.count {
                return Ok(());
            }
            ensure!(start.elapsed() < limit, "after {limit:?} {done} of {} clients {what}", self.count);
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.shared.end.store(true, Relaxed);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn mark(&self) -> MutexGuard<'_, Mark> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Loop {
    poll: Poll,
    slots: Vec<Option<Slot>>,
    opened: usize,
    address: SocketAddr,
    protocol: Protocol,
    decoder: Decoder,
    shared: Arc<Shared>,
}

struct Slot {
    link: Link,
    /// What has begun; ready when it is all.
    begun: usize,
    /// The last change that it has.
    seen: usize,
}

enum Link {
    Grpc(Box<Connection>),
    Nats(Subscriber),
}

impl Loop {
    fn run(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 256 << 10];
        while !self.shared.end.load(Relaxed) {
            while self.opened < self.slots.len() && self.opened - self.shared.ready.load(Relaxed) < CONNECTING
            {
                let number = self.opened;
                self.open(number).map_err(|error| format!("client {number}: {error}"))?;
                self.opened += 1;
            }
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.to_string()),
                Ok(()) | Err(_) => {}
            }
            for event in &events {
                let number = event.token().0;
                if event.token() != WAKER {
                    self.drive(number, &mut buffer).map_err(|why| format!("client {number}: {why}"))?;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, number: usize) -> io::Result<()> {
        let mut link = match self.protocol.kind() {
            Some(kind) => {
                let target = Target { address: self.address, tls: None, kind };
                let mut connection = Connection::open(&target, number)?;
                connection.say(&self.protocol.opening(number));
                Link::Grpc(Box::new(connection))
            }
            None => Link::Nats(Subscriber::open(self.address)?),
        };
        let tcp = match &mut link {
            Link::Grpc(connection) => connection.tcp(),
            Link::Nats(subscriber) => &mut subscriber.tcp,
        };
        self.poll.registry().register(tcp, Token(number), Interest::READABLE | Interest::WRITABLE)?;
        self.slots[number] = Some(Slot { link, begun: 0, seen: 0 });
        Ok(())
    }

    /// Reads and writes as far as that goes.
    fn drive(&mut self, number: usize, buffer: &mut [u8]) -> Result<(), String> {
        let Self { slots, shared, decoder, protocol, .. } = self;
        let Some(Slot { link, begun, seen }) = slots[number].as_mut() else { return Ok(()) };
        let ready = *begun >= protocol.beginnings();
        link.flush().map_err(|error| error.to_string())?;
        while let Some((read, more)) = link.read(buffer).map_err(|error| error.to_string())? {
            shared.bytes.fetch_add(read as u64, Relaxed);
            match link {
                Link::Grpc(connection) => connection.take(&buffer[..read], |message, say| {
                    let mut mark = shared.mark();
                    let heard = decoder.hear(&body(message)?, mark.number, &mark.wanted)?;
                    say.extend_from_slice(heard.answer.as_deref().unwrap_or_default());
                    *begun += heard.begun;
                    if heard.found {
                        mark.note(seen);
                    }
                    Ok(())
                })?,
                Link::Nats(subscriber) => subscriber.take(&buffer[..read], |said| match said {
                    Said::Pong => *begun += 1,
                    Said::Message(_) => shared.mark().note(seen),
                    Said::Ping | Said::Other => {}
                })?,
            }
            if !more {
                break;
            }
        }
        if !ready && *begun >= protocol.beginnings() {
            shared.ready.fetch_add(1, Relaxed);
        }
        link.flush().map_err(|error| error.to_string())
    }
}

impl Mark {
    /// A client has it, which had those up to `seen`.
    fn note(&mut self, seen: &mut usize) {
        if let Some(start) = self.start.filter(|_| *seen < self.number) {
            *seen = self.number;
            #[allow(clippy::cast_possible_truncation, reason = "milliseconds need no more digits")]
            self.millis.push((clock::monotonic().duration_since(start).as_secs_f64() * 1000.0) as f32);
        }
    }
}

impl Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, bool)>> {
        match self {
            Self::Grpc(connection) => connection.read(buffer),
            Self::Nats(subscriber) => subscriber.read(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Grpc(connection) => connection.flush(),
            Self::Nats(subscriber) => subscriber.flush(),
        }
    }
}
