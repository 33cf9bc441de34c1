//! Resources from a folder of files: secrets, runtime layers, extensions and scopes of routes, which
//! discovery does not bring.
//!
//! Each file has a list of resources in the form of Envoy's own files of resources. A file that turns bad
//! keeps its last good state; of a name that occurs twice, the first file in the order of names counts.
//! Secrets that hold a private key are served on the Unix socket only.

mod format;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{sync::watch, time};
use tower_common::view::{Composition, Layer};
use tracing::{info, warn};

use self::format::Read;
use super::kind::ResourceType;

/// How often the folder is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// What a file may have, in bytes, and how many of them there may be.
const MAX_FILE: u64 = 1 << 20;
const MAX_FILES: usize = 1000;

/// What is wrong with the files, in words.
pub type Problems = watch::Receiver<Vec<String>>;

/// The folder, as it was read last.
#[derive(Debug, Default)]
struct Folder {
    path: PathBuf,
    files: BTreeMap<PathBuf, File>,
    problems: Vec<String>,
    statics: Statics,
}

#[derive(Debug, Default)]
struct File {
    stamp: Option<(u64, SystemTime)>,
    good: Vec<Read>,
    problem: Option<String>,
}

/// The resources, by type.
#[derive(Debug, Clone, Default, PartialEq)]
struct Statics {
    secrets: Layer,
    socket_secrets: Layer,
    runtimes: Layer,
    extensions: Layer,
    scoped_routes: Layer,
}

/// Adds the resources in a folder to what is composed, for as long as that goes on. Returns what is then
/// to be served, and what is wrong with the files.
pub fn merged(
    folder: &Path,
    mut composed: watch::Receiver<Composition>,
) -> (watch::Receiver<Composition>, Problems) {
    let mut folder = Folder { path: folder.to_owned(), ..Folder::default() };
    folder.read();
    let composition = composed.borrow_and_update().clone();
    let (served, receiver) = watch::channel(folder.statics.add_to(&composition));
    let (problems, problems_receiver) = watch::channel(folder.problems(&composition));
    tokio::spawn(async move {
        let mut ticks = time::interval(INTERVAL);
        loop {
            tokio::select! {
                changed = composed.changed() => if changed.is_err() { return },
                _ = ticks.tick() => {
                    let before = folder.statics.clone();
                    let read = tokio::task::spawn_blocking(move || {
                        folder.read();
                        folder
                    });
                    match read.await {
                        Ok(read) => folder = read,
                        // It panicked, which ends the process; or the process is ending.
                        Err(_) => return,
                    }
                    tell(&problems, folder.problems(&composed.borrow()));
                    if folder.statics == before {
                        continue;
                    }
                }
            }
            let composition = composed.borrow_and_update().clone();
            tell(&problems, folder.problems(&composition));
            served.send_replace(folder.statics.add_to(&composition));
        }
    });
    (receiver, problems_receiver)
}

fn tell(problems: &watch::Sender<Vec<String>>, now: Vec<String>) {
    problems.send_if_modified(|problems| {
        let changed = *problems != now;
        *problems = now;
        changed
    });
}

impl Folder {
    /// What is wrong with the files, also in view of what is composed.
    fn problems(&self, composition: &Composition) -> Vec<String> {
        self.problems.iter().cloned().chain(self.statics.clashes(composition)).collect()
    }

    fn read(&mut self) {
        let mut problems = Vec::new();
        let mut changed = false;
        match list(&self.path) {
            Ok(paths) => {
                let before = self.files.len();
                self.files.retain(|path, _| paths.contains(path));
                changed |= self.files.len() != before;
                for path in paths {
                    changed |= self.files.entry(path.clone()).or_default().read(&path);
                }
            }
            // What is known stays: a folder that cannot be read is not an empty one.
            Err(error) => problems.push(format!("{} cannot be read: {error}", self.path.display())),
        }
        if changed {
            self.statics = self.gather(&mut problems);
        } else {
            let clashes = self.problems.iter().filter(|problem| problem.contains(CLASH));
            problems.extend(clashes.cloned());
        }
        problems.extend(self.files.values().filter_map(|file| file.problem.clone()));
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            warn!(%problem, "static resources");
        }
        self.problems = problems;
    }

    fn gather(&self, problems: &mut Vec<String>) -> Statics {
        let mut by_kind: BTreeMap<ResourceType, BTreeMap<_, _>> = BTreeMap::new();
        let mut private = Vec::new();
        for (path, file) in &self.files {
            for Read { kind, resource, private: is_private } in &file.good {
                let layer = by_kind.entry(*kind).or_default();
                if layer.contains_key(&resource.name) {
                    let (kind, path) = (kind.as_str(), path.display());
                    problems.push(format!("{path}: {kind} {:?} {CLASH}", resource.name));
                    continue;
                }
                if *is_private {
                    private.push(resource.name.clone());
                }
                layer.insert(resource.name.clone(), resource.clone());
            }
        }
        let mut take = |kind| by_kind.remove(&kind).unwrap_or_default();
        let all = take(ResourceType::Secret);
        let mut public = all.clone();
        public.retain(|name, _| !private.contains(name));
        info!(secrets = all.len(), on_the_socket_only = private.len(), "static resources were read");
        Statics {
            secrets: Arc::new(public),
            socket_secrets: Arc::new(all),
            runtimes: Arc::new(take(ResourceType::Runtime)),
            extensions: Arc::new(take(ResourceType::Extension)),
            scoped_routes: Arc::new(take(ResourceType::ScopedRoute)),
        }
    }
}

/// What is said of a name that an earlier file has.
const CLASH: &str = "is in an earlier file as well, which counts";

impl File {
    /// Reads a file that looks different from before. Returns whether what is good of it has changed.
    fn read(&mut self, path: &Path) -> bool {
        let read = || -> io::Result<_> {
            let metadata = fs::metadata(path)?;
            let stamp = (metadata.len(), metadata.modified()?);
            if self.stamp == Some(stamp) {
                return Ok(None);
            }
            if metadata.len() > MAX_FILE {
                let message = format!("it has {} bytes, and may have {MAX_FILE}", metadata.len());
                return Err(io::Error::other(message));
            }
            Ok(Some((stamp, fs::read_to_string(path)?)))
        };
        let read = match read() {
            Ok(None) => return false,
            Ok(Some((stamp, text))) => {
                self.stamp = Some(stamp);
                format::read(&text)
            }
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(good) => {
                self.good = good;
                self.problem = None;
                true
            }
            Err(error) => {
                self.problem = Some(format!("{}: {error}", path.display()));
                false
            }
        }
    }
}

impl Statics {
    /// What is composed, and these. Of a secret that a release has as well, the file counts.
    fn add_to(&self, composition: &Composition) -> Composition {
        let Self { secrets, socket_secrets, runtimes, extensions, scoped_routes } = self.clone();
        let mut public = joined(&composition.secrets, &secrets);
        if socket_secrets.keys().any(|name| public.contains_key(name) && !secrets.contains_key(name)) {
            // The file counts also where it is not to be seen.
            Arc::make_mut(&mut public)
                .retain(|name, _| secrets.contains_key(name) || !socket_secrets.contains_key(name));
        }
        Composition {
            secrets: public,
            socket_secrets: joined(&composition.socket_secrets, &socket_secrets),
            runtimes,
            extensions,
            scoped_routes,
            ..composition.clone()
        }
    }

    /// What is said of secrets that a release has as well.
    fn clashes(&self, composition: &Composition) -> Vec<String> {
        let both = self.socket_secrets.keys().filter(|name| composition.socket_secrets.contains_key(*name));
        both.map(|name| format!("the secret {name:?} is in a release as well; the file counts")).collect()
    }
}

fn joined(of_releases: &Layer, of_files: &Layer) -> Layer {
    if of_releases.is_empty() || of_files.is_empty() {
        return if of_files.is_empty() { of_releases.clone() } else { of_files.clone() };
    }
    let mut joined = (**of_releases).clone();
    joined.extend(of_files.iter().map(|(name, secret)| (name.clone(), secret.clone())));
    Arc::new(joined)
}

/// The files to be read, in the order of their names.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let wanted =
            path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|e| ending == *e));
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if wanted && !hidden {
            paths.push(path);
        }
    }
    if paths.len() > MAX_FILES {
        return Err(io::Error::other(format!("it has {} files, and may have {MAX_FILES}", paths.len())));
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
