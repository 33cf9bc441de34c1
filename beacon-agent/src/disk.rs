//! Keeps the snapshot on disk in step with the mirror, off the hot path.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tower_common::{
    clock,
    snapshot::{self, SnapshotDir},
};
use tracing::{error, info, warn};

use crate::{
    metrics::{Metrics, Times},
    mirror::Mirror,
};

/// The least time between two snapshots: at most 12 a minute, each of two file syncs. What a crash loses
/// is only newness: Tower sends it again.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long a restored state is held back for Tower's answer. Towers that refuse end the wait at once.
const TOWER_MAY_ANSWER: Duration = Duration::from_millis(800);

/// Serves what was restored, unless Tower answers in time.
pub async fn serve_in_time(mirror: Arc<Mutex<Mirror>>) {
    tokio::time::sleep(TOWER_MAY_ANSWER).await;
    mirror.lock().serve_from_disk();
}

/// Fills the mirror from the newest snapshot that can be used.
pub fn restore(dir: &SnapshotDir, scope: &str, mirror: &Mutex<Mirror>, metrics: &Metrics) {
    let loaded = dir.load(scope);
    for rejected in &loaded.rejected {
        metrics.snapshots_rejected.inc();
        let (path, reason) = (rejected.path.display(), &rejected.reason);
        error!(%path, %reason, "a snapshot cannot be used, and is set aside");
    }
    let Some(snapshot) = loaded.snapshot else {
        info!("there is no snapshot to start from");
        return;
    };
    let (resources, taken_unix_ms) = (snapshot.store.len(), snapshot.taken_unix_ms);
    metrics.times.snapshot_taken.store(taken_unix_ms, Ordering::Relaxed);
    mirror.lock().restore(snapshot);
    info!(resources, taken_unix_ms, "restored from the snapshot");
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
    let mut not_before = Instant::now();
    let mut failed = false;
    loop {
        if !failed {
            tokio::select! {
                biased;
                () = changed.notified() => {}
                () = stopping.cancelled() => return,
            }
        }
        // What changes meanwhile is in the same snapshot.
        tokio::select! {
            () = stopping.cancelled() => {}
            () = sleep_until(not_before) => {}
        }
        not_before = Instant::now() + INTERVAL;
        failed = !write(&dir, &scope, &mirror, &metrics).await;
        if failed && stopping.is_cancelled() {
            return;
        }
    }
}

/// Returns whether the disk has what there is to keep.
async fn write(dir: &SnapshotDir, scope: &str, mirror: &Arc<Mutex<Mirror>>, metrics: &Metrics) -> bool {
    let (dir, scope, mirror) = (dir.clone(), scope.to_owned(), mirror.clone());
    let written = tokio::task::spawn_blocking(move || {
        let taken = clock::unix_millis();
        let file = {
            let mirror = mirror.lock();
            // A store that is being compared with Tower's is not one that Tower published. There is another
            // notification when it is.
            if !mirror.is_sound() {
                return Ok(None);
            }
            snapshot::encode(mirror.store(), &scope, taken)
        };
        dir.write(&file).map(|()| Some((file.len() as u64, taken)))
    });
    match written.await.expect("writing does not panic") {
        Ok(None) => true,
        Ok(Some((bytes, taken))) => {
            metrics.snapshot_writes.inc();
            metrics.snapshot_bytes.inc_by(bytes);
            metrics.times.snapshot_taken.store(taken, Ordering::Relaxed);
            true
        }
        Err(failure) => {
            metrics.snapshot_errors.inc();
            let age_seconds = Times::age_seconds(&metrics.times.snapshot_taken);
            warn!(%failure, age_seconds, "the snapshot cannot be written; the last one stays");
            false
        }
    }
}
