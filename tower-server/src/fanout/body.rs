//! One stream's response: the welcome, a start, and then the frame log, as bytes that are shared with all
//! other streams.
//!
//! It is a body and not a stream of messages, because encoding a message for each stream, even a small
//! one, costs more than all the rest of a delivery.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::task::AtomicWaker;
use http::HeaderMap;
use http_body::{Body, Frame};
use parking_lot::Mutex;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tonic::Status;
use tower_proto::v1;

use super::{
    admission::{Admission, Admitted},
    beacons::Connected,
    frame,
    log::{Cursor, Read, Reader},
    start::Start,
};
use crate::store_actor::Ask;

/// Asks the owner of the store for a start; `None` if it is going away.
pub type FetchStart = Pin<Box<dyn Future<Output = Option<Arc<Start>>> + Send>>;

/// When a stream is to be left, and what its Beacon is told then.
pub type Leave = Pin<Box<dyn Future<Output = v1::Goodbye> + Send>>;

/// When a Beacon shall come back that could not be let in. It adds jitter.
const RETRY_AFTER_MS: u32 = 1000;

/// What small frames are joined to: the largest DATA frame that every HTTP/2 receiver takes.
const PIECE_BYTES: usize = 16 << 10;

/// What a body is made of.
pub struct Parts {
    /// The first frame.
    pub welcome: Bytes,
    /// Reads the log.
    pub reader: Reader,
    /// What the Beacon says of its state.
    pub ask: Ask,
    /// Fetches starts.
    pub fetch: Box<dyn Fn(Ask) -> FetchStart + Send>,
    /// Where starts come from that the Beacon asks for by its buckets.
    pub inbox: Arc<Inbox>,
    /// Lets starts in.
    pub admission: Arc<Admission>,
    /// Says goodbye when it is time for the Beacon to go to another Tower.
    pub leave: Leave,
    /// How long a Beacon that has been said goodbye to may go on following, until it has another stream.
    pub hand_over: Duration,
    /// Cancelled when the Beacon has ended its half, and when the body is dropped.
    pub ended: CancellationToken,
    /// Keeps the Beacon listed.
    pub connected: Arc<Connected>,
}

/// Passes things from the task that listens to a Beacon to the Beacon's body.
#[derive(Debug)]
pub struct Inbox {
    start: Mutex<Option<Arc<Start>>>,
    /// What is wrong with what the Beacon said.
    fault: Mutex<Option<Status>>,
    waker: Arc<AtomicWaker>,
}

/// The response body of one `Watch`.
pub struct WatchBody {
    reader: Reader,
    stage: Stage,
    pending: VecDeque<Bytes>,
    /// A start that is sent when the log has been read up to it.
    next_start: Option<Arc<Start>>,
    fetch: Box<dyn Fn(Ask) -> FetchStart + Send>,
    inbox: Arc<Inbox>,
    admission: Arc<Admission>,
    /// As long as a start is being sent.
    admitted: Option<Admitted>,
    /// Until goodbye has been said.
    leave: Option<Leave>,
    hand_over: Duration,
    /// When the stream ends that goodbye has been said on.
    end: Option<Pin<Box<Sleep>>>,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    _request: DropGuard,
    _connected: Arc<Connected>,
}

enum Stage {
    Fetching(FetchStart),
    /// The Beacon has been asked for its buckets.
    Asked,
    Following(Cursor),
    /// Only the trailers are left.
    Ending,
    Done,
}

impl Inbox {
    /// An inbox whose body is the one that this reader reads for.
    pub fn new(reader: &Reader) -> Arc<Self> {
        Arc::new(Self { start: Mutex::default(), fault: Mutex::default(), waker: reader.waker() })
    }

    /// Hands a start over.
    pub fn put(&self, start: Arc<Start>) {
        *self.start.lock() = Some(start);
        self.waker.wake();
    }

    /// Notes why the stream is about to end.
    pub fn fail(&self, status: Status) {
        *self.fault.lock() = Some(status);
    }

    fn take(&self) -> Option<Arc<Start>> {
        self.start.lock().take()
    }
}

impl WatchBody {
    /// A body that has yet to fetch its start.
    pub fn new(parts: Parts) -> Self {
        Self {
            reader: parts.reader,
            stage: Stage::Fetching((parts.fetch)(parts.ask)),
            pending: VecDeque::from([parts.welcome]),
            next_start: None,
            fetch: parts.fetch,
            inbox: parts.inbox,
            admission: parts.admission,
            admitted: None,
            leave: Some(parts.leave),
            hand_over: parts.hand_over,
            end: None,
            ended: Box::pin(parts.ended.clone().cancelled_owned()),
            _request: parts.ended.drop_guard(),
            _connected: parts.connected,
        }
    }

    /// Sends a start, or a goodbye if there is no room for it.
    fn begin(&mut self, start: &Start) {
        let Some(admitted) = self.admission.admit(start.bytes()) else {
            let reason = v1::goodbye::Reason::Overloaded.into();
            self.say_goodbye(v1::Goodbye { reason, retry_after_ms: RETRY_AFTER_MS });
            return;
        };
        self.admitted = Some(admitted);
        self.pending.extend(start.frames(self.reader.encoding()).iter().cloned());
        self.stage = start.next.map_or(Stage::Asked, Stage::Following);
    }

    /// Who follows goes on following for a while, so that changes still arrive until there is another stream.
    fn say_goodbye(&mut self, goodbye: v1::Goodbye) {
        if self.end.is_none() {
            let goodbye = v1::WatchResponse { goodbye: Some(goodbye), ..Default::default() };
            self.pending.push_back(frame::framed(&goodbye));
        }
        self.leave = None;
        match self.stage {
            Stage::Following(_) => {
                let hand_over = self.hand_over;
                self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep(hand_over)));
            }
            Stage::Fetching(_) | Stage::Asked | Stage::Ending | Stage::Done => self.stage = Stage::Ending,
        }
    }

    /// Whether it is time to say goodbye, or to go. A start that is being made is sent first.
    fn is_leaving(&mut self, context: &mut Context<'_>) -> bool {
        if !matches!(self.stage, Stage::Fetching(_))
            && let Some(leave) = &mut self.leave
            && let Poll::Ready(goodbye) = leave.as_mut().poll(context)
        {
            self.say_goodbye(goodbye);
            return true;
        }
        let over = self.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready());
        if over {
            self.stage = Stage::Ending;
        }
        over
    }

    /// Moves on by one step: either there is something to send then, or the stage is another.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.stage {
            Stage::Fetching(fetch) => match fetch.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(start)) => self.begin(&start),
                Poll::Ready(None) => self.stage = Stage::Ending,
            },
            Stage::Asked => {
                self.inbox.waker.register(context.waker());
                match self.inbox.take() {
                    Some(start) => self.begin(&start),
                    None => return Poll::Pending,
                }
            }
            Stage::Following(at) => {
                let at = *at;
                self.next_start = self.next_start.take().or_else(|| self.inbox.take());
                let until = self.next_start.as_ref().and_then(|start| start.next).map(|next| next.place);
                if until.is_some_and(|until| until <= at.place)
                    && let Some(start) = self.next_start.take()
                {
                    self.begin(&start);
                    return Poll::Ready(());
                }
                match self.reader.poll(at, until.unwrap_or(u64::MAX), context.waker()) {
                    Read::Frames(frames, next) => {
                        self.pending = frames.into();
                        self.stage = Stage::Following(next);
                    }
                    // Whoever filled the inbox before the waker was registered woke nobody.
                    Read::Pending => match self.inbox.take() {
                        Some(start) => self.next_start = Some(start),
                        None => return Poll::Pending,
                    },
                    Read::Lagged => {
                        self.next_start = None;
                        let ask = Ask { revision: Some(at.revision), ..Ask::default() };
                        self.stage = Stage::Fetching((self.fetch)(ask));
                    }
                }
            }
            Stage::Ending | Stage::Done => {}
        }
        Poll::Ready(())
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        loop {
            if let Some(bytes) = this.pending.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(join(bytes, &mut this.pending)))));
            }
            this.admitted = None;
            match this.stage {
                Stage::Done => return Poll::Ready(None),
                Stage::Ending => {
                    this.stage = Stage::Done;
                    let status = this.inbox.fault.lock().take().unwrap_or_else(|| Status::ok(""));
                    return Poll::Ready(Some(Ok(trailers(&status))));
                }
                Stage::Fetching(_) | Stage::Asked | Stage::Following(_) => {}
            }
            if this.ended.as_mut().poll(context).is_ready() {
                this.stage = Stage::Ending;
                continue;
            }
            if this.is_leaving(context) {
                continue;
            }
            if this.step(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// Joins small frames to one piece. HTTP/2 stacks take very many small unread pieces for an attack, and each
/// costs as much as a larger one.
fn join(first: Bytes, pending: &mut VecDeque<Bytes>) -> Bytes {
    let fits =
        |length: usize, next: Option<&Bytes>| next.is_some_and(|next| length + next.len() <= PIECE_BYTES);
    if !fits(first.len(), pending.front()) {
        return first;
    }
    let mut piece = BytesMut::with_capacity(PIECE_BYTES);
    piece.extend_from_slice(&first);
    while fits(piece.len(), pending.front())
        && let Some(next) = pending.pop_front()
    {
        piece.extend_from_slice(&next);
    }
    piece.freeze()
}

fn trailers(status: &Status) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    // A status that does not fit into headers still ends the stream, as unknown.
    let _ = status.add_header(&mut trailers);
    Frame::trailers(trailers)
}
