//! Before the log can be read.

use std::time::Duration;

use tokio::sync::mpsc;
use tower_common::backoff::Backoff;

use super::{Ask, EventLog, Follower, open};
use crate::{event_log::OpenError, registry::handle::SubmitError};

/// A log that cannot be reached is tried again after this, and no later than that.
const AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

impl Follower {
    /// Opens the log, however long that takes. None: Tower is stopping.
    pub(super) async fn open(&mut self, asks: &mut mpsc::Receiver<Ask>) -> Option<EventLog> {
        let mut backoff = Backoff::new(AGAIN.0, AGAIN.1);
        self.tell().await;
        loop {
            let wait = tokio::time::sleep(backoff.next_wait(&mut rand::rng()));
            tokio::pin!(wait);
            loop {
                tokio::select! {
                    () = &mut wait => break,
                    ask = asks.recv() => {
                        let reason = self.shared.status.borrow().reason.clone();
                        let _ = ask?.answer.send(Err(SubmitError::Unavailable(reason)));
                    }
                }
            }
            match open(&self.options).await {
                Ok(log) => return Some(log),
                Err(error) => {
                    if let error @ (OpenError::Locked { .. } | OpenError::Unusable { .. }) = &error {
                        tracing::error!(%error, "the event log cannot be used");
                    }
                    self.shared.status.send_modify(|status| status.reason = error.to_string());
                }
            }
        }
    }
}
