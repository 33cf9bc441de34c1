//! Starts that come to nothing are counted, on disk: a snapshot with which the Beacon dies again and again
//! is worse than none.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::mirror::Mirror;

const FILE: &str = "starts";

/// A start has succeeded when the Beacon has been ready for this long: what kills it may well be the first
/// Envoy that asks.
const STEADY: Duration = Duration::from_secs(5);

/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(500);

/// The count, in a file beside the snapshot.
#[derive(Debug, Clone)]
pub struct Starts {
    path: PathBuf,
}

impl Starts {
    /// The count in this folder.
    pub fn new(dir: &Path) -> Self {
        Self { path: dir.join(FILE) }
    }

    /// Counts this start, before anything is done that may fail. Returns how many before it, in a row, did
    /// not succeed.
    pub fn begin(&self) -> u32 {
        // A file that is missing, or that a crash has torn, says that nothing is known against anybody.
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let failed = text.trim().parse().unwrap_or(0);
        self.write(failed + 1);
        failed
    }

    /// Counts this start as the first.
    pub fn begin_anew(&self) {
        self.write(1);
    }

    /// Notes that this start has succeeded.
    pub fn succeeded(&self) {
        match fs::remove_file(&self.path) {
            Err(failure) if failure.kind() != io::ErrorKind::NotFound => self.complain(&failure),
            _ => {}
        }
    }

    fn write(&self, count: u32) {
        let write = || {
            if let Some(dir) = self.path.parent() {
                fs::create_dir_all(dir)?;
            }
            let mut file = File::create(&self.path)?;
            writeln!(file, "{count}")?;
            file.sync_all()
        };
        if let Err(failure) = write() {
            self.complain(&failure);
        }
    }

    fn complain(&self, failure: &io::Error) {
        warn!(path = %self.path.display(), %failure, "starts are not counted");
    }
}

/// Notes that the start has succeeded, once it has: when the Beacon has been ready for a while, or is
/// ready when it is told to stop.
pub async fn settle(starts: Starts, mirror: Arc<Mutex<Mirror>>, stopping: CancellationToken) {
    let is_ready = || mirror.lock().summary().complete;
    let steady = async {
        let mut ready_for = Duration::ZERO;
        while ready_for < STEADY {
            sleep(PAUSE).await;
            ready_for = if is_ready() { ready_for + PAUSE } else { Duration::ZERO };
        }
    };
    let succeeded = tokio::select! {
        () = steady => true,
        () = stopping.cancelled() => is_ready(),
    };
    if succeeded {
        starts.succeeded();
    }
}

#[cfg(test)]
mod tests {
    use tower_common::audience::NodeFacts;

    use super::*;

    #[test]
    fn starts_are_counted_until_one_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let starts = Starts::new(&dir.path().join("not/yet/there"));
        assert_eq!([starts.begin(), starts.begin(), starts.begin()], [0, 1, 2]);
        starts.begin_anew();
        assert_eq!(starts.begin(), 1);
        starts.succeeded();
        starts.succeeded();
        assert_eq!(starts.begin(), 0);
        fs::write(&starts.path, "torn").unwrap();
        assert_eq!(starts.begin(), 0);
    }

    #[test]
    fn a_disk_that_refuses_does_not_keep_it_from_starting() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let starts = Starts::new(&dir.path().join("file"));
        assert_eq!([starts.begin(), starts.begin()], [0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_beacon_that_is_never_ready_has_not_succeeded() {
        let dir = tempfile::tempdir().unwrap();
        let starts = Starts::new(dir.path());
        starts.begin();
        let stopping = CancellationToken::new();
        let mirror = Arc::new(Mutex::new(Mirror::new("", NodeFacts::default())));
        let settling = tokio::spawn(settle(starts.clone(), mirror, stopping.clone()));
        sleep(STEADY * 10).await;
        stopping.cancel();
        settling.await.unwrap();
        assert_eq!(starts.begin(), 1);
    }
}
