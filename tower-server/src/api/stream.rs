//! The activity log as server-sent events. A stream is an index into the log, and holds no more than one event:
//! the next is read when the client has taken the one before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use tokio_util::sync::CancellationToken;
use tower_common::api::Code;
use tower_proto::v1::LogEntry;

use super::{error::Refused, told};
use crate::registry::Registry;

/// How often something is said if there is nothing to say, so that both ends know that the other is there. Whether
/// the credential is still good is looked at as often.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// More streams are refused.
const MAX_STREAMS: usize = 200;

/// How soon a client should come back, in milliseconds.
const RETRY_MS: u64 = 1000;

/// Which entries are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// About this service.
    pub service: Option<String>,
    /// By whom.
    pub author: Option<String>,
    /// By this command.
    pub command: Option<String>,
}

/// The streams that are open.
#[derive(Debug, Clone)]
pub struct Streams {
    open: Arc<AtomicUsize>,
    stopping: CancellationToken,
}

/// A stream's place among those that are open.
#[derive(Debug)]
pub struct Place {
    open: Arc<AtomicUsize>,
    stopping: CancellationToken,
}

impl Filter {
    /// Whether this one is.
    pub fn takes(&self, entry: &LogEntry) -> bool {
        let author = entry.actor.as_ref().map_or("", |actor| &actor.name);
        self.author.as_deref().is_none_or(|wanted| wanted == author)
            && self.command.as_deref().is_none_or(|wanted| wanted == entry.command)
            && self
                .service
                .as_deref()
                .is_none_or(|wanted| entry.events.iter().any(|event| event.service == wanted))
    }
}

impl Streams {
    /// None is open. All end when this is cancelled.
    pub fn new(stopping: CancellationToken) -> Self {
        Self { open: Arc::default(), stopping }
    }

    /// Room for one more.
    ///
    /// # Errors
    /// If there is none.
    pub fn enter(&self) -> Result<Place, Refused> {
        let place = Place { open: self.open.clone(), stopping: self.stopping.clone() };
        if self.open.fetch_add(1, Ordering::Relaxed) < MAX_STREAMS {
            return Ok(place);
        }
        Err(Refused::new(Code::Unavailable, format!("there are {MAX_STREAMS} streams already")))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Events for the entries after this index. Ends when Tower does, and when the credential is good no more.
pub fn events(
    registry: Registry,
    after: u64,
    filter: Filter,
    still_known: impl Fn() -> bool + 'static,
    place: Place,
) -> impl Stream<Item = Result<Bytes, Refused>> {
    let begin = Bytes::from(format!("retry: {RETRY_MS}\n\n"));
    let state = (Cursor { registry, after, filter, place }, still_known, Some(begin));
    futures::stream::unfold(state, |(mut cursor, still_known, begin)| async move {
        if let Some(begin) = begin {
            return Some((Ok(begin), (cursor, still_known, None)));
        }
        let stopping = cursor.place.stopping.clone();
        let next = tokio::time::timeout(HEARTBEAT, cursor.next());
        let event = tokio::select! {
            () = stopping.cancelled() => return None,
            next = next => next,
        };
        if !still_known() {
            return None;
        }
        match event {
            Ok(Some(event)) => Some((Ok(event), (cursor, still_known, None))),
            // The log cannot be read: the client comes back and is told.
            Ok(None) => None,
            Err(_) => Some((Ok(Bytes::from_static(b": still here\n\n")), (cursor, still_known, None))),
        }
    })
}

struct Cursor {
    registry: Registry,
    after: u64,
    filter: Filter,
    place: Place,
}

impl Cursor {
    /// The next event; none if the log cannot be read. May be dropped while it waits.
    async fn next(&mut self) -> Option<Bytes> {
        let mut applied = self.registry.applied();
        loop {
            applied.wait_for(|applied| *applied > self.after).await.ok()?;
            let entries = self.registry.entries(self.after + 1, 1).await.ok()?;
            let entry = entries.first()?;
            self.after = entry.index;
            if self.filter.takes(entry) {
                // What can be serialized once can be serialized always.
                let data = serde_json::to_string(&told::activity::entry(entry)).ok()?;
                return Some(Bytes::from(format!("id: {}\nevent: entry\ndata: {data}\n\n", entry.index)));
            }
        }
    }
}
