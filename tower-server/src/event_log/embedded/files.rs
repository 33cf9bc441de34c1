//! Bytes in files, by a path within a folder. A file is whole, or it is not there.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tower_common::durable;

/// A folder of them.
#[derive(Debug, Clone)]
pub(super) struct Files(PathBuf);

impl Files {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Where something is.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Whether there is something of this size.
    pub(super) fn has(&self, path: &str, bytes: usize) -> bool {
        fs::metadata(self.path(path)).is_ok_and(|file| file.len() == bytes as u64)
    }

    pub(super) fn put(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(path);
        if let Some(folder) = path.parent() {
            make(folder)?;
        }
        durable::replace(&path, bytes)
    }

    /// At most so many bytes, if it is there.
    pub(super) fn get(&self, path: &str, limit: usize) -> io::Result<Option<Bytes>> {
        let path = self.path(path);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(file) if file.len() > limit as u64 => {
                return Err(io::Error::other(format!(
                    "it has {} bytes, and {limit} are allowed",
                    file.len()
                )));
            }
            Ok(_) => {}
        }
        fs::read(path).map(|bytes| Some(bytes.into()))
    }

    pub(super) fn delete(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.path(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The names in a folder, sorted; none if it is not there.
    pub(super) fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let mut names: Vec<String> = names.filter_map(io::Result::transpose).collect::<io::Result<_>>()?;
        names.sort_unstable();
        Ok(names)
    }
}

/// Makes a folder that is still there after a power cut.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make(parent)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    parent.map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}
