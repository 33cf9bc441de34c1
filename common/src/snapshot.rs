//! A store on disk, so that a Beacon starts with Tower gone.
//!
//! A file is a magic number, a format number, the payload's length, its BLAKE3 hash, and the payload.
//! A new one is written beside the old, synced, and renamed; the old one is kept as the one before. So
//! whenever the power fails, a whole snapshot is there. A file that cannot be used is set aside, with
//! its reason, and never read again.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bincode::{Decode, Encode, config};
use prost::Message;
use tower_proto::v1;

use crate::{
    resource::{Resource, ResourceError},
    store::{Store, Transaction},
};

const MAGIC: &[u8; 8] = b"TOWRSNAP";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 8 + 32;

/// A larger payload is not read.
const MAX_PAYLOAD_BYTES: usize = 1 << 30;

const CURRENT: &str = "snapshot";
const PREVIOUS: &str = "snapshot.previous";
const TEMPORARY: &str = "snapshot.tmp";
const SET_ASIDE: &str = "snapshot.bad";

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
    dir: PathBuf,
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
    /// It is something else.
    #[error("it is not a snapshot: it does not start with {:?}", str::from_utf8(MAGIC).unwrap_or_default())]
    Magic,
    /// Another build wrote it.
    #[error("it has format {0}, and this build reads format {FORMAT}")]
    Format(u32),
    /// Its end is missing, or there is something behind it.
    #[error("it has {actual} bytes where {expected} are announced")]
    Length {
        /// Bytes that its header announces.
        expected: usize,
        /// Bytes that are there.
        actual: usize,
    },
    /// Its content changed after it was written.
    #[error("its checksum is wrong")]
    Checksum,
    /// Its payload does not decode.
    #[error("its payload cannot be decoded: {0}")]
    Payload(#[from] bincode::error::DecodeError),
    /// A status does not decode.
    #[error("the status of a source in it cannot be decoded: {0}")]
    Status(#[from] prost::DecodeError),
    /// A resource is malformed.
    #[error("{0}")]
    Resource(#[from] ResourceError),
    /// It is larger than what is read.
    #[error("it has {0} bytes, and at most {MAX_PAYLOAD_BYTES} are read")]
    TooLarge(u64),
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
    let mut file = vec![0; HEADER_BYTES];
    bincode::encode_into_std_write(&payload, &mut file, config::standard())
        .expect("plain data is written to memory");
    let (header, payload) = file.split_at_mut(HEADER_BYTES);
    let hash = blake3::hash(payload);
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[12..20].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header[20..].copy_from_slice(hash.as_bytes());
    file
}

/// Reads the bytes of a snapshot file.
///
/// # Errors
/// If they are not a whole snapshot of this scope, in the format that this build reads.
pub fn decode(file: &[u8], scope: &str) -> Result<Snapshot, SnapshotError> {
    if !file.starts_with(MAGIC) {
        return Err(SnapshotError::Magic);
    }
    let Some((header, payload)) = file.split_at_checked(HEADER_BYTES) else {
        return Err(SnapshotError::Length { expected: HEADER_BYTES, actual: file.len() });
    };
    let format = u32::from_le_bytes(field(header, 8));
    if format != FORMAT {
        return Err(SnapshotError::Format(format));
    }
    let expected = usize::try_from(u64::from_le_bytes(field(header, 12))).unwrap_or(usize::MAX);
    if payload.len() != expected {
        return Err(SnapshotError::Length { expected, actual: payload.len() });
    }
    if blake3::hash(payload) != blake3::Hash::from_bytes(field(header, 20)) {
        return Err(SnapshotError::Checksum);
    }
    decode_payload(payload, scope)
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
        Self { dir: dir.to_owned() }
    }

    /// The newest usable snapshot. What cannot be used is set aside.
    pub fn load(&self, scope: &str) -> Loaded {
        let mut loaded = Loaded::default();
        for name in [CURRENT, PREVIOUS] {
            let read = match self.read(name) {
                Err(SnapshotError::Read(error)) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read.and_then(|file| decode(&file, scope)),
            };
            match read {
                Ok(snapshot) => {
                    loaded.snapshot = Some(snapshot);
                    break;
                }
                Err(reason) => loaded.rejected.push(self.reject(name, reason)),
            }
        }
        loaded
    }

    /// Sets the newest snapshot aside, usable or not. There may be none.
    pub fn set_aside(&self, reason: SnapshotError) -> Option<Rejected> {
        let newest = [CURRENT, PREVIOUS].into_iter().find(|name| self.dir.join(name).exists())?;
        Some(self.reject(newest, reason))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, SnapshotError> {
        let path = self.dir.join(name);
        let bytes = fs::metadata(&path)?.len();
        if bytes > (HEADER_BYTES + MAX_PAYLOAD_BYTES) as u64 {
            return Err(SnapshotError::TooLarge(bytes));
        }
        Ok(fs::read(path)?)
    }

    fn reject(&self, name: &str, reason: SnapshotError) -> Rejected {
        let path = self.dir.join(name);
        // If it cannot even be renamed it will be met, and named, again.
        let _ = fs::rename(&path, self.dir.join(SET_ASIDE));
        Rejected { path, reason }
    }

    /// Replaces the snapshot by these bytes of [`encode`]. Two file syncs and two renames.
    ///
    /// # Errors
    /// If the disk refuses, or it is more than will be read; then the last snapshot is still there.
    pub fn write(&self, file: &[u8]) -> io::Result<()> {
        if file.len() > HEADER_BYTES + MAX_PAYLOAD_BYTES {
            return Err(io::Error::other(SnapshotError::TooLarge(file.len() as u64)));
        }
        fs::create_dir_all(&self.dir)?;
        let temporary = self.dir.join(TEMPORARY);
        let mut new = File::create(&temporary)?;
        new.write_all(file)?;
        new.sync_all()?;
        drop(new);
        let current = self.dir.join(CURRENT);
        match fs::rename(&current, self.dir.join(PREVIOUS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(&temporary, &current)?;
        // The renames are in the folder: they last once that is synced.
        File::open(&self.dir)?.sync_all()
    }
}

fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests {
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
        assert_eq!(resources(&snapshots.load("")), None);
        snapshots.write(&encode(&store(&["a", "b"]), "", 77)).unwrap();
        let snapshot = snapshots.load("").snapshot.unwrap();
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
        fs::write(dir.path().join(CURRENT), "torn").unwrap();
        let loaded = snapshots.load("");
        assert_eq!(resources(&loaded), Some(1));
        assert!(loaded.rejected[0].reason.to_string().contains("not a snapshot"));
        assert!(dir.path().join(SET_ASIDE).exists());
        assert!(snapshots.load("").rejected.is_empty(), "it is not met again");
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
        assert_eq!(resources(&snapshots.load("")), Some(1));
        assert!(snapshots.set_aside(SnapshotError::Unready(3)).is_some());
        assert_eq!(resources(&snapshots.load("")), None);
    }

    #[test]
    fn power_may_fail_at_any_step_of_a_write() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = SnapshotDir::new(dir.path());
        snapshots.write(&encode(&store(&["a"]), "", 1)).unwrap();
        let new = encode(&store(&["a", "b"]), "", 2);
        // Before the renames, with any part of the new file on disk.
        for written in [0, 1, new.len() / 2, new.len()] {
            fs::write(dir.path().join(TEMPORARY), &new[..written]).unwrap();
            assert_eq!(resources(&snapshots.load("")), Some(1));
        }
        // Between the renames.
        fs::rename(dir.path().join(CURRENT), dir.path().join(PREVIOUS)).unwrap();
        assert_eq!(resources(&snapshots.load("")), Some(1));
        snapshots.write(&new).unwrap();
        assert_eq!(resources(&snapshots.load("")), Some(2));
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
        tower_fuzz::fuzz("snapshot payload", &[&file[HEADER_BYTES..]], &["zk", "web"], |input| {
            decode_payload(input, "").map(|snapshot| snapshot.store.len())
        });
    }
}
