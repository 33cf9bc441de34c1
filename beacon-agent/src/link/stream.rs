//! One stream from a Tower, and why it ends.

use std::time::Duration;

use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, codec::CompressionEncoding};
use tower_common::{
    FEATURE_LEVEL,
    delivery::{DeliveryError, Event, Staging},
};
use tower_proto::v1::{self, sync_client::SyncClient, watch_request::Request};

use super::{
    LONGEST_WAIT, Link,
    dialer::{DialError, chain},
};
use crate::metrics::EndReason;

/// How long a Tower may take to accept a stream.
pub(super) const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);

/// Tower cuts far below this.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// A stream that a Tower has accepted.
pub(super) struct Stream {
    pub(super) tower: String,
    requests: mpsc::Sender<v1::WatchRequest>,
    responses: Streaming<v1::WatchResponse>,
    staging: Staging,
}

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("{0}")]
    Dial(#[from] DialError),
    #[error("it refuses: {}", chain(.0))]
    Refused(Status),
    #[error("it did not accept the stream within {} s", WELCOME_TIMEOUT.as_secs())]
    NotAccepted,
    #[error("the stream broke: {}", chain(.0))]
    Broken(Status),
    #[error("it ended the stream")]
    Closed,
    #[error("it was silent for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("it says goodbye: {}", .0.reason().as_str_name())]
    Goodbye(v1::Goodbye),
    #[error("{0}")]
    Invalid(#[from] DeliveryError),
}

impl End {
    pub(super) fn reason(&self) -> EndReason {
        match self {
            Self::Dial(_) | Self::Refused(_) | Self::NotAccepted => EndReason::Refused,
            Self::Broken(_) | Self::Closed => EndReason::Broken,
            Self::Silent(_) => EndReason::Silent,
            Self::Goodbye(_) => EndReason::Goodbye,
            Self::Invalid(_) => EndReason::Invalid,
        }
    }

    /// How long Tower wants to be left alone.
    pub(super) fn retry_after(&self) -> Duration {
        match self {
            Self::Goodbye(goodbye) => Duration::from_millis(goodbye.retry_after_ms.into()).min(LONGEST_WAIT),
            Self::Dial(_)
            | Self::Refused(_)
            | Self::NotAccepted
            | Self::Broken(_)
            | Self::Closed
            | Self::Silent(_)
            | Self::Invalid(_) => Duration::ZERO,
        }
    }
}

impl Stream {
    /// Connects, says hello, and waits until the stream is accepted.
    pub(super) async fn open(link: &Link, tower: &str) -> Result<Self, End> {
        let channel = link.dialer.connect(tower).await?;
        let (requests, receiver) = mpsc::channel(4);
        requests.try_send(hello(link)).expect("the channel is new");
        let mut client = SyncClient::new(channel)
            .accept_compressed(CompressionEncoding::Zstd)
            .max_decoding_message_size(MAX_RESPONSE_BYTES);
        let call = client.watch(ReceiverStream::new(receiver));
        let responses = timeout(WELCOME_TIMEOUT, call)
            .await
            .map_err(|_| End::NotAccepted)?
            .map_err(End::Refused)?
            .into_inner();
        Ok(Self { tower: tower.to_owned(), requests, responses, staging: Staging::new() })
    }

    /// What the next response amounts to. Nothing is lost if this is given up.
    pub(super) async fn next(&mut self) -> Result<Vec<Event>, End> {
        let response = self.responses.message().await.map_err(End::Broken)?.ok_or(End::Closed)?;
        Ok(self.staging.accept(response)?)
    }

    /// Says something, once there is room; what is said before is on its way.
    pub(super) async fn say(&self, what: Request) -> Result<(), End> {
        self.requests.send(request(what)).await.map_err(|_| End::Closed)
    }

    /// Says something if there is room; tells whether there was.
    pub(super) fn try_say(&self, what: Request) -> bool {
        self.requests.try_send(request(what)).is_ok()
    }
}

fn hello(link: &Link) -> v1::WatchRequest {
    let mut hello = v1::Hello {
        node: Some(link.dialer.introduce(&link.node)),
        scope: link.scope.clone(),
        feature_level: FEATURE_LEVEL,
        interest: Some(v1::Interest { all: true, services: Vec::new() }),
        ..Default::default()
    };
    link.mirror.lock().introduce(&mut hello);
    request(Request::Hello(hello))
}

fn request(request: Request) -> v1::WatchRequest {
    v1::WatchRequest { request: Some(request) }
}
