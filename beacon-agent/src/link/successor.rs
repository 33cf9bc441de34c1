//! The stream that takes over from one whose Tower has said goodbye: found while the old one still flows.

use std::time::Duration;

use rand::{SeedableRng, rngs::StdRng};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower_common::{
    delivery::{Delivery, Event},
    digest::Buckets,
};
use tower_proto::v1::{self, goodbye::Reason, watch_request::Request};
use tracing::warn;

use super::{
    Link, backoff, count_end,
    stream::{End, Stream, WELCOME_TIMEOUT},
    towers::Towers,
};

/// A stream, and what brings the mirror to where it is.
pub(super) struct Successor {
    pub(super) stream: Stream,
    pub(super) welcome: v1::Welcome,
    pub(super) delivery: Delivery,
}

/// Finds one, no sooner than the goodbye says. `over` is cancelled when the old stream has ended.
///
/// # Errors
/// If there is none: the old stream has ended and the last attempt failed, or its Tower is about to go and
/// no Tower can be had. It is not to be kept from going.
pub(super) async fn find(
    link: &Link,
    towers: &Towers,
    goodbye: v1::Goodbye,
    over: CancellationToken,
) -> Result<Successor, End> {
    let mut rng = StdRng::from_os_rng();
    let mut backoff = backoff();
    let mut end = End::Goodbye(goodbye);
    for attempt in 1.. {
        sleep(backoff.next_wait(&mut rng) + end.retry_after()).await;
        let tower = towers.next();
        end = match prepare(link, tower, &over).await {
            Ok(successor) => return Ok(successor),
            Err(end) => end,
        };
        warn!(tower, reason = %end, "no stream that could take over");
        count_end(link, &end);
        if over.is_cancelled() || (goodbye.reason() == Reason::Draining && attempt >= towers.len()) {
            break;
        }
    }
    Err(end)
}

/// Opens a stream, and follows it aside until the mirror can go on with it.
async fn prepare(link: &Link, tower: &str, over: &CancellationToken) -> Result<Successor, End> {
    let mut stream = Stream::open(link, tower).await?;
    let mut silence_limit = WELCOME_TIMEOUT;
    let mut begun = v1::Welcome::default();
    let mut staged: Option<Delivery> = None;
    loop {
        let events = tokio::select! {
            events = timeout(silence_limit, stream.next()) => events.map_err(|_| End::Silent(silence_limit))??,
            // It may be behind, but it is what there is.
            () = over.cancelled(), if staged.is_some() => Vec::new(),
        };
        for event in events {
            match event {
                Event::Welcome(welcome) => {
                    silence_limit = Duration::from_millis(welcome.silence_limit_ms.into());
                    begun = welcome;
                }
                Event::Delivery(later) => match &mut staged {
                    None => staged = Some(later),
                    Some(staged) => staged.merge(later)?,
                },
                Event::Heartbeat(heartbeat) => {
                    if let Some(staged) = &mut staged {
                        staged.move_sources(heartbeat.sources);
                    }
                }
                Event::AskBuckets(count) => {
                    let buckets = link.mirror.lock().buckets(count.min(Buckets::MAX));
                    stream.say(Request::Buckets(buckets)).await?;
                }
                Event::Goodbye(goodbye) => return Err(End::Goodbye(goodbye)),
            }
        }
        if let Some(delivery) =
            staged.take_if(|staged| over.is_cancelled() || link.mirror.lock().can_go_on_with(&begun, staged))
        {
            return Ok(Successor { stream, welcome: begun, delivery });
        }
    }
}
