//! One stream's response: the welcome, the full state, and then the frame log, as bytes that are shared
//! with all other streams.
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
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{
    beacons::Connected,
    full::FullState,
    log::{Read, Reader},
};

/// Asks the owner of the store for the full state; `None` if it is going away.
pub type FetchFull = Pin<Box<dyn Future<Output = Option<Arc<FullState>>> + Send>>;

/// The response body of one `Watch`.
pub struct WatchBody {
    reader: Reader,
    stage: Stage,
    pending: VecDeque<Bytes>,
    fetch: Box<dyn Fn() -> FetchFull + Send>,
    /// Cancelled when the Beacon has ended its half.
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Ends the task that reads the Beacon's half, however this body goes.
    _request: tokio_util::sync::DropGuard,
    /// Keeps the Beacon listed.
    _connected: Arc<Connected>,
}

enum Stage {
    Fetching(FetchFull),
    Following(u64),
    Done,
}

impl WatchBody {
    /// A body that starts with `welcome`.
    pub fn new(
        welcome: Bytes,
        reader: Reader,
        fetch: Box<dyn Fn() -> FetchFull + Send>,
        ended: CancellationToken,
        connected: Arc<Connected>,
    ) -> Self {
        Self {
            reader,
            stage: Stage::Fetching(fetch()),
            pending: VecDeque::from([welcome]),
            fetch,
            ended: Box::pin(ended.clone().cancelled_owned()),
            _request: ended.drop_guard(),
            _connected: connected,
        }
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
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.ended.as_mut().poll(context).is_ready() && !matches!(this.stage, Stage::Done) {
                return Poll::Ready(Some(Ok(this.finish())));
            }
            match &mut this.stage {
                Stage::Fetching(fetch) => match fetch.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(full)) => {
                        this.pending.extend(full.frames.iter().cloned());
                        this.stage = Stage::Following(full.place);
                    }
                    Poll::Ready(None) => return Poll::Ready(Some(Ok(this.finish()))),
                },
                Stage::Following(place) => match this.reader.poll(*place, context.waker()) {
                    Read::Frames(frames, next) => {
                        this.pending = frames.into();
                        *place = next;
                    }
                    Read::Pending => return Poll::Pending,
                    Read::Lagged => this.stage = Stage::Fetching((this.fetch)()),
                    Read::Closed => return Poll::Ready(Some(Ok(this.finish()))),
                },
                Stage::Done => return Poll::Ready(None),
            }
        }
    }
}

impl WatchBody {
    /// The trailers of an orderly end.
    fn finish(&mut self) -> Frame<Bytes> {
        self.stage = Stage::Done;
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
        Frame::trailers(trailers)
    }
}
