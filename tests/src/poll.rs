//! Waiting for what takes time, without guessing how long.

use std::{fmt::Display, future::Future, panic::Location, time::Duration};

use anyhow::{Result, anyhow};
use tokio::time::{Instant, sleep, timeout_at};

/// Often enough to add nothing noticeable to a test, seldom enough to leave the CPU to the others.
const PAUSE: Duration = Duration::from_millis(20);

/// Tries again until `attempt` succeeds, and panics with its last error when `deadline` has passed.
///
/// ```ignore
/// let body = eventually(SECONDS, "alpha answers", async || {
///     let reply = caller.get("hello.mesh").await?;
///     ensure!(reply.body == "alpha", "answered by {}", reply.body);
///     Ok(reply.body)
/// }).await;
/// ```
#[track_caller]
pub fn eventually<T>(
    deadline: Duration,
    what: impl Display,
    attempt: impl AsyncFnMut() -> Result<T>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        match until(deadline, what, attempt).await {
            Ok(value) => value,
            Err(error) => panic!("{caller}: {error:#}"),
        }
    }
}

/// As [`eventually`], for callers that handle the failure themselves.
pub async fn until<T>(
    deadline: Duration,
    what: impl Display,
    mut attempt: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        let start = Instant::now();
        // An attempt that hangs is not to outlast the deadline.
        let error = match timeout_at(end, attempt()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(_) => anyhow!("the last attempt hung for {:?}", start.elapsed()),
        };
        if Instant::now() + PAUSE >= end {
            return Err(error.context(format!("not within {deadline:?}: {what}")));
        }
        sleep(PAUSE).await;
    }
}

/// How many rounds a randomised test or a soak makes: `short`, or `long` when `TOWER_LONG=1`.
pub fn rounds(short: usize, long: usize) -> usize {
    match std::env::var("TOWER_LONG") {
        Ok(value) if !matches!(value.as_str(), "" | "0") => long,
        _ => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_tries_until_it_succeeds() {
        let mut left = 3;
        let value = until(Duration::from_secs(1), "zero", async || {
            left -= 1;
            if left == 0 { Ok("done") } else { Err(anyhow!("{left} left")) }
        });
        assert_eq!(value.await.expect("it succeeds"), "done");
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_last_error() {
        let outcome = until(Duration::from_secs(1), "pigs fly", async || Err::<(), _>(anyhow!("no wings")));
        let error = format!("{:#}", outcome.await.expect_err("they do not"));
        assert_eq!(error, "not within 1s: pigs fly: no wings");
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_is_given_up() {
        let outcome =
            until(Duration::from_secs(1), "an answer", async || std::future::pending::<Result<()>>().await);
        let error = format!("{:#}", outcome.await.expect_err("it cannot"));
        assert_eq!(error, "not within 1s: an answer: the last attempt hung for 1s");
    }
}
