//! A folder of endpoint lists.
//!
//! [`document`] says what a file may contain; [`folder`] reads them all; [`identity`] gives the folder the
//! positions that files have not. This module watches. Events only hasten the next look: folders that are
//! mounted, or replaced as a whole, send none, so there is a look every few seconds in any case.

mod document;
mod folder;
mod identity;

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::{
    sync::{Notify, mpsc},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use self::{folder::Folder, identity::Identity};
use super::{model::Input, spec::FilesSpec};

/// Between two looks without an event.
const RESCAN_EVERY: Duration = Duration::from_secs(5);

/// Whoever writes a file often writes more than once.
const SETTLE: Duration = Duration::from_millis(50);

/// Reads the folder until nobody listens any more. `record` is the file that keeps the folder's identity.
pub(super) async fn run(spec: FilesSpec, record: PathBuf, feed: mpsc::Sender<Input>) {
    let mut follower =
        Follower { state: Some(State { folder: Folder::new(spec.folder.clone()), identity: None }), record };
    let woken = Arc::new(Notify::new());
    let mut watched: Option<(RecommendedWatcher, Inode)> = None;
    loop {
        // A folder that was replaced is another one, of which the watch does not tell.
        let inode = inode(&spec.folder);
        if watched.as_ref().map(|(_, inode)| *inode) != inode {
            watched = inode.and_then(|inode| Some((watch(&spec.folder, &woken)?, inode)));
        }
        if let Some(input) = follower.look().await
            && feed.send(input).await.is_err()
        {
            return;
        }
        tokio::select! {
            () = feed.closed() => return,
            event = timeout(RESCAN_EVERY, woken.notified()) => {
                if event.is_ok() {
                    sleep(SETTLE).await;
                }
            }
        }
    }
}

/// The folder with what was read of it, while nobody is reading.
struct Follower {
    state: Option<State>,
    record: PathBuf,
}

struct State {
    folder: Folder,
    identity: Option<Identity>,
}

impl Follower {
    /// Reads the folder, if it has changed. Files are read where that may block.
    async fn look(&mut self) -> Option<Input> {
        let mut state = self.state.take()?;
        let record = self.record.clone();
        let looked = spawn_blocking(move || {
            let input = state.look(record);
            (state, input)
        });
        match looked.await {
            Ok((state, input)) => {
                self.state = Some(state);
                input
            }
            // What panicked there must not go unnoticed here.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl State {
    fn look(&mut self, record: PathBuf) -> Option<Input> {
        let out_of_touch = |reason: String| {
            tracing::warn!(reason, "out of touch with a folder");
            Some(Input::OutOfTouch { reason })
        };
        let identity = match &mut self.identity {
            Some(identity) => identity,
            empty @ None => match Identity::open(record) {
                Ok(identity) => empty.insert(identity),
                Err(error) => return out_of_touch(error.to_string()),
            },
        };
        match self.folder.look() {
            Ok(false) => None,
            Ok(true) => match identity.advance() {
                Ok(index) => {
                    let load = self.folder.load(identity.id().to_owned(), index);
                    Some(Input::Loaded(load))
                }
                Err(error) => {
                    self.folder.forget();
                    out_of_touch(error.to_string())
                }
            },
            Err(error) => {
                self.folder.forget();
                out_of_touch(error.to_string())
            }
        }
    }
}

/// Device and number.
type Inode = (u64, u64);

fn inode(folder: &Path) -> Option<Inode> {
    std::fs::metadata(folder).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn watch(folder: &Path, woken: &Arc<Notify>) -> Option<RecommendedWatcher> {
    let woken = woken.clone();
    notify::recommended_watcher(move |_| woken.notify_one())
        .and_then(|mut watcher| watcher.watch(folder, RecursiveMode::NonRecursive).map(|()| watcher))
        .inspect_err(|error| tracing::debug!(folder = %folder.display(), %error, "no events from a folder"))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder that is followed.
    struct Fixture {
        temp: tempfile::TempDir,
        feed: mpsc::Receiver<Input>,
    }

    impl Fixture {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let spec = FilesSpec { folder: temp.path().join("lists") };
            let (sender, feed) = mpsc::channel(1);
            tokio::spawn(run(spec, temp.path().join("record.json"), sender));
            Self { temp, feed }
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.temp.path().join("lists").join(name), text).unwrap();
        }

        async fn next(&mut self) -> Input {
            timeout(RESCAN_EVERY * 2, self.feed.recv()).await.unwrap().unwrap()
        }

        /// Position, usable files, unusable files.
        async fn loaded(&mut self) -> (u64, usize, usize) {
            match self.next().await {
                Input::Loaded(load) => (load.index, load.entries.len(), load.kept.len()),
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_folder_is_followed_through_all_that_happens_to_it() {
        let mut fixture = Fixture::new();
        let Input::OutOfTouch { reason } = fixture.next().await else { panic!("there is no folder yet") };
        assert!(reason.contains("/lists cannot be read"), "{reason}");
        fs::create_dir(fixture.temp.path().join("lists")).unwrap();
        assert_eq!(fixture.loaded().await, (1, 0, 0));

        // From here on events tell, so that nothing waits for the next look.
        let start = tokio::time::Instant::now();
        fixture.write("web.yaml", "service: web");
        assert_eq!(fixture.loaded().await, (2, 1, 0));
        fixture.write("web.yaml", "service: ''");
        assert_eq!(fixture.loaded().await, (3, 0, 1));
        fs::remove_file(fixture.temp.path().join("lists/web.yaml")).unwrap();
        assert_eq!(fixture.loaded().await, (4, 0, 0));
        assert!(start.elapsed() < RESCAN_EVERY, "{:?}", start.elapsed());

        // The folder goes: that says nothing about files. Another one comes, and is watched.
        fs::rename(fixture.temp.path().join("lists"), fixture.temp.path().join("aside")).unwrap();
        assert!(matches!(fixture.next().await, Input::OutOfTouch { .. }));
        fs::create_dir(fixture.temp.path().join("lists")).unwrap();
        assert_eq!(fixture.loaded().await, (5, 0, 0));
        fixture.write("web.yaml", "service: web");
        assert_eq!(fixture.loaded().await, (6, 1, 0));
    }
}
