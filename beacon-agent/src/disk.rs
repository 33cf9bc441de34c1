//! Keeps the snapshot on disk in step with the mirror, and what else is to outlive the process, off the hot
//! path.

mod refusals;
mod starts;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::anyhow;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tower_common::{
    clock,
    snapshot::{self, Rejected, SnapshotDir, SnapshotError},
};
use tracing::{error, info, warn};

pub use self::{
    refusals::Refusals,
    starts::{Starts, settle},
};
use crate::{
    metrics::{Metrics, Times},
    mirror::Mirror,
};

/// The least time between two writes of a file: at most 12 a minute, each of two file syncs. What a crash loses
/// is only newness: Tower sends it again.
const INTERVAL: Duration = Duration::from_secs(5);

/// What snapshots may cost the disk on average: a large one waits longer for the next.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// Starts in a row from a snapshot, none of which became ready, after which it is set aside.
const MAX_STARTS: u32 = 3;

/// How long a restored state is held back for Tower's answer. Towers that refuse end the wait at once.
const TOWER_MAY_ANSWER: Duration = Duration::from_millis(800);

/// Serves what was restored, unless Tower answers in time.
pub async fn serve_in_time(mirror: Arc<Mutex<Mirror>>) {
    tokio::time::sleep(TOWER_MAY_ANSWER).await;
    mirror.lock().serve_from_disk();
}

/// Fills the mirror from the newest snapshot that can be used. Returns what cannot be used, and why.
///
/// # Errors
/// If there is a snapshot of another scope.
pub fn restore(
    dir: &SnapshotDir,
    starts: &Starts,
    scope: &str,
    mirror: &Mutex<Mirror>,
    metrics: &Metrics,
) -> anyhow::Result<Vec<String>> {
    let failed = starts.begin();
    let unready = if failed >= MAX_STARTS {
        starts.begin_anew();
        dir.set_aside(SnapshotError::Unready(failed))
    } else {
        None
    };
    let loaded = dir.load(scope).map_err(|Rejected { path, reason }| {
        anyhow!("{}: {reason}; give another --data-dir, or the right --scope", path.display())
    })?;
    let set_aside = unready.iter().chain(&loaded.rejected).map(|Rejected { path, reason }| {
        metrics.snapshots_rejected.inc();
        let path = path.display();
        error!(%path, %reason, "a snapshot cannot be used");
        format!("{path}: {reason}")
    });
    let set_aside = set_aside.collect();
    let Some(snapshot) = loaded.snapshot else {
        info!("there is no snapshot to start from");
        return Ok(set_aside);
    };
    let (resources, taken_unix_ms) = (snapshot.store.len(), snapshot.taken_unix_ms);
    metrics.times.snapshot_taken.store(taken_unix_ms, Ordering::Relaxed);
    mirror.lock().restore(snapshot);
    info!(resources, taken_unix_ms, "restored from the snapshot");
    Ok(set_aside)
}

/// Writes a snapshot whenever `changed` has been notified, not too often, again if that failed, and a last
/// one when it is time to stop.
pub async fn run(
    dir: SnapshotDir,
    scope: String,
    mirror: Arc<Mutex<Mirror>>,
    changed: Arc<Notify>,
    metrics: Metrics,
    stopping: CancellationToken,
) {
    let mut pace = Pace::new();
    while pace.due(changed.notified(), &stopping).await {
        pace.wrote(&write(&dir, &scope, &mirror, &metrics).await);
    }
}

/// When a file is to be written: whenever something has changed, not too often, again if that failed, and a
/// last time when it is time to stop.
struct Pace {
    began: Instant,
    not_before: Instant,
    failed: bool,
}

impl Pace {
    fn new() -> Self {
        let now = Instant::now();
        Self { began: now, not_before: now, failed: false }
    }

    /// Waits until it is to be written. Whether it is to be written at all any more.
    async fn due(&mut self, changed: impl Future<Output = ()>, stopping: &CancellationToken) -> bool {
        if self.failed {
            if stopping.is_cancelled() {
                return false;
            }
        } else {
            tokio::select! {
                biased;
                () = changed => {}
                () = stopping.cancelled() => return false,
            }
        }
        // What changes meanwhile is in the same file.
        tokio::select! {
            () = stopping.cancelled() => {}
            () = sleep_until(self.not_before) => {}
        }
        self.began = Instant::now();
        true
    }

    /// It has been written, or could not be.
    fn wrote(&mut self, written: &Written) {
        self.not_before = self.began + pause(written.bytes);
        self.failed = written.failed;
    }
}

/// How long to wait after a snapshot of this size.
fn pause(bytes: u64) -> Duration {
    INTERVAL.max(Duration::from_millis(bytes.saturating_mul(1000) / BYTES_PER_SECOND))
}

/// What became of an attempt to write.
struct Written {
    /// How many bytes were written, or were to be.
    bytes: u64,
    /// The disk does not have what there is to keep.
    failed: bool,
}

async fn write(dir: &SnapshotDir, scope: &str, mirror: &Arc<Mutex<Mirror>>, metrics: &Metrics) -> Written {
    let (dir, scope, mirror) = (dir.clone(), scope.to_owned(), mirror.clone());
    // What changes from here on may not be in the file.
    let unsaved = metrics.times.unsaved.swap(0, Ordering::Relaxed);
    let written = tokio::task::spawn_blocking(move || {
        let taken = clock::unix_millis();
        let file = {
            let mirror = mirror.lock();
            // A store that is being compared with Tower's is not one that Tower published. There is another
            // notification when it is.
            if !mirror.is_sound() {
                return None;
            }
            snapshot::encode(mirror.store(), &scope, taken)
        };
        Some((dir.write(&file), file.len() as u64, taken))
    });
    let Some((written, bytes, taken)) = written.await.expect("writing does not panic") else {
        return Written { bytes: 0, failed: false };
    };
    match &written {
        Ok(()) => {
            metrics.snapshot_writes.inc();
            metrics.snapshot_bytes.inc_by(bytes);
            metrics.times.snapshot_taken.store(taken, Ordering::Relaxed);
        }
        Err(failure) => {
            metrics.snapshot_errors.inc();
            metrics.times.unsaved.store(unsaved, Ordering::Relaxed);
            let age_seconds = Times::age_seconds(&metrics.times.snapshot_taken);
            warn!(%failure, age_seconds, "the snapshot cannot be written; the last one stays");
        }
    }
    Written { bytes, failed: written.is_err() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_written_to_at_a_bounded_rate() {
        assert_eq!(pause(0), INTERVAL);
        assert_eq!(pause(5 << 20), INTERVAL);
        assert_eq!(pause(100 << 20), Duration::from_secs(100));
    }
}
