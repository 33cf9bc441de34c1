//! Tasks without which the process must not go on.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// Runs a future. If it panics, the process ends: what it did would stay undone behind a process that
/// seems to work. Where panics abort in any case this changes nothing.
pub(super) async fn vital<T>(name: &str, future: impl Future<Output = T>) -> T {
    match AssertUnwindSafe(future).catch_unwind().await {
        Ok(value) => value,
        Err(_) => {
            tracing::error!(task = name, "a vital task panicked; the process ends");
            std::process::abort();
        }
    }
}
