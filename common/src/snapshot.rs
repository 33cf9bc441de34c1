//! A store on disk, so that a Beacon starts with Tower gone.
//!
//! A file is sealed ([`crate::sealed`]), and written so that a whole snapshot is there whenever the power
//! fails ([`crate::durable`]); the old one is kept as the one before. A file that cannot be used is set
//! aside, with its reason, and never read again.

use std::{
    io,
    path::{Path, PathBuf},
};

use bincode::{Decode, Encode, config};
use prost::Message;
use tower_proto::v1;

use crate::{
    durable::Kept,
    resource::{Resource, ResourceError},
    sealed::{Kind, SealError},
    store::{Store, Transaction},
};

const KIND: Kind = Kind { magic: b"TOWRSNAP", format: 1 };

/// A larger payload is not read.
const MAX_PAYLOAD_BYTES: usize = 1 << 30;

const NAME: &str = "snapshot";

/// A store as it was.
#[derive(Debug)]
pub struct Snapshot {
    /// The resources and sources.
    pub store: Store,
    /// When it was taken, in milliseconds since the Unix epoch.
    pub taken_unix_ms: u64,
}

/// The snapshots of one folder.
#[derive(Debug, Clone)]
pub struct SnapshotDir {
    file: Kept,
}

/// What a folder held.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The newest snapshot that can be used.
    pub snapshot: Option<Snapshot>,
    /// The files that cannot be used, and why.
    pub rejected: Vec<Rejected>,
}

/// A file that was set aside.
#[derive(Debug)]
pub struct Rejected {
    /// Its path before.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: SnapshotError,
}

/// Why a file is not a snapshot that can be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is not whole, or something else.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// Its payload does not decode.
    #[error("its payload cannot be decoded: {0}")]
    Payload(#[from] bincode::error::DecodeError),
    /// A status does not decode.
    #[error("the status of a source in it cannot be decoded: {0}")]
    Status(#[from] prost::DecodeError),
    /// A resource is malformed.
    #[error("{0}")]
    Resource(#[from] ResourceError),
    /// Processes that started from it came to nothing.
    #[error("{0} starts in a row did not become ready with it")]
    Unready(u32),
    /// It is another mesh's.
    #[error("it belongs to the scope {actual:?}, and this process to {expected:?}")]
    Scope {
        /// This process's scope.
        expected: String,
        /// The file's scope.
        actual: String,
    },
}

impl SnapshotError {
    /// Whether the file is of no use to anybody.
    fn is_damage(&self) -> bool {
        match self {
            // Another disk, another build, or another process may read it.
            Self::Read(_) | Self::Scope { .. } | Self::Seal(SealError::Format { .. }) => false,
            Self::Seal(_) | Self::Payload(_) | Self::Status(_) | Self::Resource(_) | Self::Unready(_) => true,
        }
    }
}

#[derive(Encode, Decode)]
struct Payload {
    scope: String,
    taken_unix_ms: u64,
    /// Serialized [`v1::SourceStatus`]es.
    sources: Vec<Vec<u8>>,
    /// Serialized [`v1::Resource`]s, with whatever fields they came with.
    resources: Vec<Vec<u8>>,
}

/// The bytes of a snapshot file.
pub fn encode(store: &Store, scope: &str, taken_unix_ms: u64) -> Vec<u8> {
    let payload = Payload {
        scope: scope.to_owned(),
        taken_unix_ms,
        sources: store.sources().map(Message::encode_to_vec).collect(),
        resources: store.iter().map(|resource| resource.encoded().to_vec()).collect(),
    };
    KIND.seal(|file| {
        bincode::encode_into_std_write(&payload, file, config::standard())
            .expect("plain data is written to memory");
    })
}

/// Reads the bytes of a snapshot file.
///
/// # Errors
/// If they are not a whole snapshot of this scope, in the format that this build reads.
pub fn decode(file: &[u8], scope: &str) -> Result<Snapshot, SnapshotError> {
    decode_payload(KIND.open(file)?, scope)
}

fn decode_payload(payload: &[u8], scope: &str) -> Result<Snapshot, SnapshotError> {
    let limited = config::standard().with_limit::<MAX_PAYLOAD_BYTES>();
    let (payload, _): (Payload, usize) = bincode::decode_from_slice(payload, limited)?;
    if payload.scope != scope {
        return Err(SnapshotError::Scope { expected: scope.to_owned(), actual: payload.scope });
    }
    let sources: Result<Vec<_>, _> =
        payload.sources.iter().map(|status| v1::SourceStatus::decode(status.as_slice())).collect();
    let resources: Result<Vec<_>, _> =
        payload.resources.iter().map(|encoded| Resource::decode(encoded)).collect();
    let mut store = Store::new();
    store.apply(Transaction { upserts: resources?, removals: Vec::new(), sources: sources? });
    Ok(Snapshot { store, taken_unix_ms: payload.taken_unix_ms })
}

impl SnapshotDir {
    /// Snapshots in this folder, which is made when the first is written.
    pub fn new(dir: &Path) -> Self {
        Self { file: Kept::new(dir.join(NAME)) }
    }

    /// The newest usable snapshot. What is damaged is set aside.
    ///
    /// # Errors
    /// If there is a snapshot of another scope: it is somebody's, and not to be replaced by accident.
    pub fn load(&self, scope: &str) -> Result<Loaded, Rejected> {
        let found = self.file.load(|file| decode(file, scope), SnapshotError::is_damage);
        let rejected = found.rejected.into_iter().map(|(path, reason)| Rejected { path, reason });
        let (foreign, rejected): (Vec<_>, Vec<_>) =
            rejected.partition(|rejected| matches!(rejected.reason, SnapshotError::Scope { .. }));
        match foreign.into_iter().next() {
            Some(foreign) => Err(foreign),
            None => Ok(Loaded { snapshot: found.contents, rejected }),
        }
    }

    /// Sets the newest snapshot aside, usable or not. There may be none.
    pub fn set_aside(&self, reason: SnapshotError) -> Option<Rejected> {
        self.file.set_aside().map(|path| Rejected { path, reason })
    }

    /// Replaces the snapshot by these bytes of [`encode`]. Two file syncs and two renames.
    ///
    /// # Errors
    /// If the disk refuses, or it is more than will be read; then the last snapshot is still there.
    pub fn write(&self, file: &[u8]) -> io::Result<()> {
        self.file.write(file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bytes::Bytes;

    use super::*;
    use crate::{
        resource::{Origin, ResourceKey},
        store::Transaction,
    };

    fn store(names: &[&str]) -> Store {
        let mut store = Store::new();
        let upserts = names.iter().map(|name| {
            let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
            Resource::new(key, Origin { source: "zk".into(), index: 1 }, Bytes::from_static(b"body"))
        });
        let status = v1::SourceStatus {
            source: "zk".into(),
            state: v1::SourceState::Live.into(),
            ..Default::default()
        };
        store.apply(Transaction { upserts: upserts.collect(), sources: vec![status], ..Default::default() });
        store
    }

    fn resources(loaded: &Loaded) -> Option<usize> {
        loaded.snapshot.as_ref().map(|snapshot| snapshot.store.len())
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = SnapshotDir::new(&dir.path().join("not/yet/there"));
        assert_eq!(resources(&snapshots.load("").unwrap()), None);
        snapshots.write(&encode(&store(&["a", "b"]), "", 77)).unwrap();
        let snapshot = snapshots.load("").unwrap().snapshot.unwrap();
        assert_eq!(snapshot.taken_unix_ms, 77);
        assert_eq!(snapshot.store.digest(), store(&["a", "b"]).digest());
        assert!(snapshot.store.is_complete());
    }

    #[test]
    fn whatever_byte_is_damaged_or_missing_it_is_noticed() {
        let file = encode(&store(&["a"]), "", 1);
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x40;
            assert!(decode(&damaged, "").is_err(), "byte {at} damaged");
            assert!(decode(&file[..at], "").is_err(), "cut at byte {at}");
        }
        assert!(decode(&[file, vec![0]].concat(), "").is_err(), "one byte too many");
    }

    #[test]
    fn a_bad_file_is_set_aside_and_the_one_before_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = SnapshotDir::new(dir.path());
        snapshots.write(&encode(&store(&["a"]), "", 1)).unwrap();
        snapshots.write(&encode(&store(&["a", "b"]), "", 2)).unwrap();
        fs::write(dir.path().join(NAME), "torn").unwrap();
        let loaded = snapshots.load("").unwrap();
        assert_eq!(resources(&loaded), Some(1));
        assert!(loaded.rejected[0].reason.to_string().contains("something else"));
        assert!(dir.path().join("snapshot.bad").exists());
        assert!(snapshots.load("").unwrap().rejected.is_empty(), "it is not met again");
    }

    #[test]
    fn a_good_file_can_be_set_aside_too() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = SnapshotDir::new(dir.path());
        assert!(snapshots.set_aside(SnapshotError::Unready(3)).is_none());
        snapshots.write(&encode(&store(&["a"]), "", 1)).unwrap();
        snapshots.write(&encode(&store(&["a", "b"]), "", 2)).unwrap();
        let rejected = snapshots.set_aside(SnapshotError::Unready(3)).unwrap();
        assert_eq!(rejected.reason.to_string(), "3 starts in a row did not become ready with it");
        assert_eq!(resources(&snapshots.load("").unwrap()), Some(1));
        assert!(snapshots.set_aside(SnapshotError::Unready(3)).is_some());
        assert_eq!(resources(&snapshots.load("").unwrap()), None);
    }

    #[test]
    fn power_may_fail_at_any_step_of_a_write() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = SnapshotDir::new(dir.path());
        snapshots.write(&encode(&store(&["a"]), "", 1)).unwrap();
        let new = encode(&store(&["a", "b"]), "", 2);
        // Before the renames, with any part of the new file on disk.
        for written in [0, 1, new.len() / 2, new.len()] {
            fs::write(dir.path().join("snapshot.tmp"), &new[..written]).unwrap();
            assert_eq!(resources(&snapshots.load("").unwrap()), Some(1));
        }
        // Between the renames.
        fs::rename(dir.path().join(NAME), dir.path().join("snapshot.previous")).unwrap();
        assert_eq!(resources(&snapshots.load("").unwrap()), Some(1));
        snapshots.write(&new).unwrap();
        assert_eq!(resources(&snapshots.load("").unwrap()), Some(2));
    }

    #[test]
    fn what_is_somebody_elses_stays_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = SnapshotDir::new(dir.path());
        snapshots.write(&encode(&store(&["a"]), "eu", 1)).unwrap();
        assert!(snapshots.load("us").unwrap_err().reason.to_string().contains("scope \"eu\""));
        assert_eq!(resources(&snapshots.load("eu").unwrap()), Some(1));
    }

    #[test]
    fn another_scope_or_format_is_refused_by_name() {
        let file = encode(&store(&["a"]), "eu", 1);
        assert!(decode(&file, "").unwrap_err().to_string().contains("scope \"eu\""));
        let mut newer = file;
        newer[8] = 9;
        assert!(decode(&newer, "eu").unwrap_err().to_string().contains("format 9"));
    }

    #[test]
    fn whatever_the_bytes_are_they_are_a_snapshot_or_refused() {
        let file = encode(&store(&["a", "b"]), "", 77);
        tower_fuzz::fuzz("snapshot file", &[&file], &["TOWRSNAP"], |input| {
            decode(input, "").map(|snapshot| snapshot.store.len())
        });
        // Behind the checksum, which nobody guesses.
        tower_fuzz::fuzz("snapshot payload", &[KIND.open(&file).unwrap()], &["zk", "web"], |input| {
            decode_payload(input, "").map(|snapshot| snapshot.store.len())
        });
    }
}
