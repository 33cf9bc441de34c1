//! Positions for a folder: an id that is made once, and a counter that never goes back, both on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rand::Rng;
use serde::{Deserialize, Serialize};
use tower_common::durable;

/// The identity of a folder, and how often it has changed.
#[derive(Debug)]
pub(super) struct Identity {
    path: PathBuf,
    record: Record,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    id: String,
    counter: u64,
}

/// Why a folder has no position.
#[derive(Debug, thiserror::Error)]
#[error("the position of the folder cannot be {verb} {}: {error}", path.display())]
pub(super) struct IdentityError {
    verb: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl Identity {
    /// Reads the identity, or makes one. A file that makes no sense is set aside: what it counted is lost,
    /// so another id must count anew.
    pub(super) fn open(path: PathBuf) -> Result<Self, IdentityError> {
        match fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(record) => return Ok(Self { path, record }),
                Err(error) => {
                    let aside = path.with_extension("json.corrupt");
                    tracing::error!(path = %path.display(), aside = %aside.display(), %error, "set aside a corrupt file");
                    fs::rename(&path, &aside).map_err(|error| failed("set aside at", &path, error))?;
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read from", &path, error)),
        }
        let id = format!("{:016x}", rand::rng().random::<u64>());
        let identity = Self { path, record: Record { id, counter: 0 } };
        identity.store(&identity.record)?;
        Ok(identity)
    }

    /// Which history the counter counts in.
    pub(super) fn id(&self) -> &str {
        &self.record.id
    }

    /// The next position, which is on disk before anybody hears of it.
    pub(super) fn advance(&mut self) -> Result<u64, IdentityError> {
        let next = Record { counter: self.record.counter + 1, ..self.record.clone() };
        self.store(&next)?;
        self.record = next;
        Ok(self.record.counter)
    }

    fn store(&self, record: &Record) -> Result<(), IdentityError> {
        durable::replace(&self.path, &serde_json::to_vec(record).unwrap_or_default())
            .map_err(|error| failed("written to", &self.path, error))
    }
}

fn failed(verb: &'static str, path: &Path, error: io::Error) -> IdentityError {
    IdentityError { verb, path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_and_counter_outlive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sources/my.files.json");
        let mut identity = Identity::open(path.clone()).unwrap();
        assert_eq!((identity.advance().unwrap(), identity.advance().unwrap()), (1, 2));
        let id = identity.id().to_owned();
        let mut again = Identity::open(path.clone()).unwrap();
        assert_eq!(again.id(), id);
        assert_eq!(again.advance().unwrap(), 3);

        fs::write(&path, "{").unwrap();
        let mut anew = Identity::open(path.clone()).unwrap();
        assert_ne!(anew.id(), id);
        assert_eq!(anew.advance().unwrap(), 1);
        assert_eq!(fs::read(path.with_extension("json.corrupt")).unwrap(), b"{");
    }

    #[test]
    fn an_unusable_path_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Identity::open(file.path().join("x.json")).unwrap_err().to_string();
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
    }
}
