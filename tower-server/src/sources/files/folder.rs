//! Reads all files of a folder, each only when it may have changed.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::document::{Document, MAX_FILE_BYTES};
use crate::sources::model::{Entry, Load, Place, Problem};

/// A folder with more files is not read at all.
const MAX_FILES: usize = 20_000;

/// A file that changed so recently may change again without its time telling.
const FRESH_MS: i128 = 2_000;

/// A folder, and what was read of it last.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    files: BTreeMap<Arc<str>, Known>,
    /// Whether `files` is what the folder was when it was last read.
    complete: bool,
    /// The folder that `files` was read from: device and inode.
    read_from: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Known {
    /// None if it would not tell of the next change.
    fingerprint: Option<Fingerprint>,
    contents: Result<Arc<Document>, String>,
    /// The position at which it said this first; none until it has been told.
    since: Option<u64>,
}

/// What differs when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Why a folder cannot be read. That says nothing about its files.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    #[error("folder {} cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("folder {} has more than {MAX_FILES} files", path.display())]
    TooMany { path: PathBuf },
    #[error("folder {} is another one than before, and empty: is something to be mounted there?", path.display())]
    Emptied { path: PathBuf },
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, files: BTreeMap::new(), complete: false, read_from: None }
    }

    /// Reads what may have changed. Tells whether anything has, which is always so the first time.
    pub(super) fn look(&mut self) -> Result<bool, FolderError> {
        let unreadable = |error| FolderError::Unreadable { path: self.path.clone(), error };
        let mut files = BTreeMap::new();
        let metadata = fs::metadata(&self.path).map_err(unreadable)?;
        let read_from = Some((metadata.dev(), metadata.ino()));
        for entry in fs::read_dir(&self.path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let Some(name) = entry.file_name().to_str().filter(|name| is_list(name)).map(str::to_owned)
            else {
                continue;
            };
            if files.len() == MAX_FILES {
                return Err(FolderError::TooMany { path: self.path.clone() });
            }
            let path: Arc<str> = self.path.join(&name).to_string_lossy().into();
            if let Some(known) = self.read(&path) {
                files.insert(path, known);
            }
        }
        if files.is_empty() && !self.files.is_empty() && read_from != self.read_from {
            return Err(FolderError::Emptied { path: self.path.clone() });
        }
        self.read_from = read_from;
        let changed = !self.complete
            || files.len() != self.files.len()
            || files
                .iter()
                .zip(&self.files)
                .any(|((path, known), (other, before))| path != other || !known.says_the_same_as(before));
        for (path, known) in &mut files {
            if let Some(before) = self.files.get(path).filter(|before| known.says_the_same_as(before)) {
                known.since = before.since;
            }
        }
        self.files = files;
        self.complete = true;
        Ok(changed)
    }

    /// What was read has not reached anyone, or may be out of date: the next look finds it changed.
    pub(super) fn forget(&mut self) {
        self.complete = false;
    }

    /// What was read last, at this position.
    pub(super) fn load(&mut self, incarnation: String, index: u64) -> Load {
        let mut load = Load { incarnation: Some(incarnation), index, ..Load::default() };
        for (path, known) in &mut self.files {
            // What a file says is not said again because another has changed.
            let since = *known.since.get_or_insert(index);
            match &known.contents {
                Ok(document) => {
                    let service: Arc<str> = document.service.as_str().into();
                    load.places.push(Place {
                        path: path.clone(),
                        service: service.clone(),
                        created: since,
                        changed: index,
                    });
                    load.entries.push(Entry {
                        path: path.clone(),
                        place: path.clone(),
                        service,
                        // No file is before another but by its name.
                        rank: 0,
                        index: since,
                        registrations: document.registrations.clone(),
                        weights: Vec::new(),
                        remarks: 0,
                    });
                }
                Err(reason) => load.kept.push(Problem { path: path.clone(), reason: reason.clone() }),
            }
        }
        load
    }

    /// A file, from what is known of it if it has not changed. None if it is gone, or is none.
    fn read(&self, path: &Arc<str>) -> Option<Known> {
        let failed = |error: &io::Error| {
            // A link to nothing is there: whoever replaces what it leads to is in the middle of it.
            let there = fs::symlink_metadata(Path::new(&**path)).is_ok();
            let gone = error.kind() == io::ErrorKind::NotFound && !there;
            let contents = Err(format!("cannot be read: {error}"));
            (!gone).then_some(Known { fingerprint: None, contents, since: None })
        };
        let metadata = match fs::metadata(Path::new(&**path)) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return None,
            Err(error) => return failed(&error),
        };
        let fingerprint = Fingerprint::of(&metadata);
        if let Some(known) = self.files.get(path).filter(|known| known.fingerprint == Some(fingerprint)) {
            let contents = known.contents.clone();
            return Some(Known { fingerprint: Some(fingerprint), contents, since: known.since });
        }
        let contents = if metadata.len() > MAX_FILE_BYTES {
            Err(format!("{} bytes, more than {MAX_FILE_BYTES}", metadata.len()))
        } else {
            match fs::read(Path::new(&**path)) {
                Ok(bytes) => parse(&bytes),
                Err(error) => return failed(&error),
            }
        };
        let fingerprint = fingerprint.settled().then_some(fingerprint);
        Some(Known { fingerprint, contents, since: None })
    }
}

impl Known {
    fn says_the_same_as(&self, other: &Self) -> bool {
        match (&self.contents, &other.contents) {
            (Ok(one), Ok(other)) => Arc::ptr_eq(one, other) || one == other,
            (one, other) => one == other,
        }
    }
}

impl Fingerprint {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn settled(&self) -> bool {
        let now = i128::from(tower_common::clock::unix_millis());
        let (seconds, nanoseconds) = self.changed.max(self.modified);
        now - (i128::from(seconds) * 1_000 + i128::from(nanoseconds) / 1_000_000) > FRESH_MS
    }
}

fn parse(bytes: &[u8]) -> Result<Arc<Document>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: not UTF-8")
    })?;
    Document::parse(text).map(Arc::new).map_err(|error| error.to_string())
}

/// Whether a file is an endpoint list, by its name: neither hidden, nor half written by an editor.
fn is_list(name: &str) -> bool {
    let hidden = name.starts_with(['.', '#', '~']);
    !hidden && (name.ends_with(".yaml") || name.ends_with(".yml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lists() {
        for name in ["web.yaml", "web.yml", "a b.yaml"] {
            assert!(is_list(name), "{name}");
        }
        for name in [".web.yaml", "web.yaml~", "web.yaml.tmp", "#web.yaml", "~web.yml", "web.json", "..data"]
        {
            assert!(!is_list(name), "{name}");
        }
    }

    #[test]
    fn a_folder_changes_when_the_meaning_of_a_file_does() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(temp.path().join(name), text).unwrap();
        let mut folder = Folder::new(temp.path().to_owned());
        assert!(folder.look().unwrap(), "an empty folder is news once");
        assert!(!folder.look().unwrap());

        write("web.yaml", "service: web\nendpoints: [{address: 10.0.0.1, port: 1}]");
        write("bad.yaml", "service: [");
        write("notes.txt", "hello");
        assert!(folder.look().unwrap());
        assert!(!folder.look().unwrap());
        let load = folder.load("id".to_owned(), 2);
        assert_eq!((load.places.len(), load.entries.len(), load.kept.len()), (1, 1, 1));
        assert_eq!(load.index, 2);
        assert!(load.kept[0].path.ends_with("/bad.yaml") && load.kept[0].reason.starts_with("line 1: "));

        // The same length, at once: the time of the file may not tell.
        write("web.yaml", "service: web\nendpoints: [{address: 10.0.0.2, port: 1}]");
        assert!(folder.look().unwrap());
        write("web.yaml", "# a comment\nservice: web\nendpoints: [{address: 10.0.0.2, port: 1}]");
        assert!(!folder.look().unwrap(), "it says the same");
        fs::remove_file(temp.path().join("bad.yaml")).unwrap();
        assert!(folder.look().unwrap());
        folder.forget();
        assert!(folder.look().unwrap());
    }

    #[test]
    fn what_a_file_says_keeps_its_position() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, port: u16| {
            let text = format!("service: {name}\nendpoints: [{{address: 10.0.0.1, port: {port}}}]");
            fs::write(temp.path().join(format!("{name}.yaml")), text).unwrap();
        };
        let mut folder = Folder::new(temp.path().to_owned());
        let mut indexes = |index| {
            folder.look().unwrap();
            let load = folder.load("id".to_owned(), index);
            load.entries.iter().map(|entry| entry.index).collect::<Vec<_>>()
        };
        write("a", 1);
        write("b", 1);
        assert_eq!(indexes(1), [1, 1]);
        write("b", 2);
        assert_eq!(indexes(2), [1, 2]);
        write("c", 1);
        assert_eq!(indexes(3), [1, 2, 3]);
    }

    #[test]
    fn a_link_to_nothing_is_not_a_deletion() {
        let temp = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("..data/web.yaml", temp.path().join("web.yaml")).unwrap();
        let mut folder = Folder::new(temp.path().to_owned());
        folder.look().unwrap();
        let load = folder.load(String::new(), 1);
        assert_eq!(load.kept.len(), 1, "{load:?}");
    }

    #[test]
    fn another_folder_that_is_empty_says_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("mounted");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("web.yaml"), "service: web").unwrap();
        let mut folder = Folder::new(path.clone());
        folder.look().unwrap();
        fs::rename(&path, temp.path().join("away")).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(folder.look().unwrap_err().to_string().contains("is another one than before"));
        fs::write(path.join("web.yaml"), "service: web").unwrap();
        assert!(folder.look().is_ok());
        fs::remove_file(path.join("web.yaml")).unwrap();
        assert!(folder.look().unwrap(), "the same folder may be emptied");
    }

    #[test]
    fn files_behind_links_are_read_as_kubernetes_mounts_them() {
        let temp = tempfile::tempdir().unwrap();
        let version = |name: &str, address: &str| {
            let folder = temp.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(
                folder.join("web.yaml"),
                format!("service: web\nendpoints: [{{address: {address}, port: 1}}]"),
            )
            .unwrap();
        };
        let link = |to: &str| {
            let new = temp.path().join("..data_tmp");
            std::os::unix::fs::symlink(to, &new).unwrap();
            fs::rename(new, temp.path().join("..data")).unwrap();
        };
        version("..1", "10.0.0.1");
        link("..1");
        std::os::unix::fs::symlink("..data/web.yaml", temp.path().join("web.yaml")).unwrap();
        let mut folder = Folder::new(temp.path().to_owned());
        assert!(folder.look().unwrap());
        assert_eq!(folder.load(String::new(), 1).entries.len(), 1);
        version("..2", "10.0.0.2");
        link("..2");
        assert!(folder.look().unwrap());
    }

    #[test]
    fn an_unreadable_folder_is_an_error_and_a_large_file_a_problem() {
        let temp = tempfile::tempdir().unwrap();
        let missing = temp.path().join("none");
        let error = Folder::new(missing.clone()).look().unwrap_err().to_string();
        assert!(error.contains(missing.to_str().unwrap()), "{error}");

        let large = fs::File::create(temp.path().join("large.yaml")).unwrap();
        large.set_len(MAX_FILE_BYTES + 1).unwrap();
        let mut folder = Folder::new(temp.path().to_owned());
        folder.look().unwrap();
        assert_eq!(folder.load(String::new(), 1).kept[0].reason, "4194305 bytes, more than 4194304");
    }
}
