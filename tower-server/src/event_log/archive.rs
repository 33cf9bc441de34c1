//! A log as a file, whole and with all that its entries refer to: to keep, to move, to look at.
//!
//! A file is verified from end to end before anything of it is written anywhere. What is imported has the
//! same entries, byte for byte, and is a log of its own: its incarnation is new.

mod file;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use tower_common::{clock, durable};
use tower_proto::v1::{self, archive_record::Record};

use self::file::{Item, Reader, Writer};
use super::{
    AppendError, EventLog, FORMAT, OpenError, Options, ReadError, Target,
    entry::{Link, Sealed},
    error::BackendError,
    new_incarnation, paths,
    references::references,
};

/// What is imported at once: a request to ZooKeeper has at most a megabyte.
const BATCH_BYTES: usize = 512 << 10;
const BATCH: usize = 100;

/// What a log, or a file of one, has in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Which log it is.
    pub incarnation: String,
    /// The first entry that was looked at.
    pub from: u64,
    /// The newest entry.
    pub head: u64,
    /// The hash of the newest entry, in hexadecimal; empty if there is none.
    pub hash: String,
    /// How many bodies there are.
    pub bodies: u64,
}

/// Why a log is not exported, imported or found to be whole.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The log.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is not a whole log.
    #[error("{}: byte {at}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the part begins that is wrong.
        at: u64,
        /// What is wrong.
        problem: String,
    },
    /// There is something where the log or the file should go.
    #[error("{what} is there already; nothing is overwritten")]
    Taken {
        /// What is there.
        what: String,
    },
}

impl From<BackendError> for ArchiveError {
    fn from(error: BackendError) -> Self {
        Self::Append(error.into())
    }
}

/// Writes a log into a new file.
///
/// # Errors
/// If the log is not whole, or the file is there or cannot be written.
pub async fn export(log: &EventLog, path: &Path) -> Result<Summary, ArchiveError> {
    if path.exists() {
        return Err(ArchiveError::Taken { what: path.display().to_string() });
    }
    let (mut summary, wanted) = walk(log, 1).await?;
    let at = |error| ArchiveError::Io { path: path.to_owned(), error };
    let part = path.with_added_extension("part");
    let mut writer = Writer::create(&part).map_err(at)?;
    let begin = v1::ArchiveBegin {
        format: FORMAT,
        incarnation: summary.incarnation.clone(),
        index: summary.head,
        time_ms: clock::unix_millis(),
    };
    writer.write(Record::Begin(begin)).map_err(at)?;
    for hash in hashes(log, &wanted).await? {
        match log.body(&hash).await {
            Ok(body) => writer.write(Record::Body(body)).map_err(at)?,
            Err(error @ ReadError::Bytes { .. }) if !wanted.contains(&hash) => {
                // A crash has left it behind before anything referred to it.
                tracing::warn!(%error, "no entry refers to it, and it is left out");
            }
            Err(error) => return Err(error.into()),
        }
    }
    let mut next = 1;
    while next <= summary.head {
        let limit = usize::try_from(summary.head - next + 1).unwrap_or(usize::MAX);
        for (entry, bytes) in log.read_kept(next, limit).await?.0 {
            writer.write(Record::Entry(bytes)).map_err(at)?;
            next = entry.index + 1;
        }
    }
    summary.bodies = writer.finish().map_err(at)?;
    fs::rename(&part, path).and_then(|()| durable::sync_folder(path)).map_err(at)?;
    Ok(summary)
}

/// Verifies that each entry from this index on follows the one before it, and has its bodies.
///
/// # Errors
/// If the log is not whole: which entry or body, where, and why.
pub async fn verify(log: &EventLog, from: u64) -> Result<Summary, ArchiveError> {
    let (mut summary, wanted) = walk(log, from).await?;
    for hash in &wanted {
        log.body(hash).await?;
        summary.bodies += 1;
    }
    Ok(summary)
}

/// Makes a new log of a file. There must be none, or one without entries, or what an import of the same file
/// has left that did not end.
///
/// # Errors
/// If the file is not whole, there is a log already, or it cannot be written.
pub async fn import(target: &Target, data_dir: &Path, path: &Path) -> Result<Summary, ArchiveError> {
    // From end to end, before anything is written.
    let mut reader = Reader::open(path)?;
    while reader.next()?.is_some() {}
    let log = EventLog::open_any(target, data_dir, Options::default(), None).await?;
    let backend = &log.0.backend;
    let mut head = backend.head();
    if head.index > 0 && !(head.importing && begins_with(path, &head)?) {
        return Err(ArchiveError::Taken { what: format!("a log with {} entries at {target}", head.index) });
    }
    if !head.importing {
        head.incarnation = new_incarnation();
        head.importing = true;
        backend.set_head(head.clone()).await?;
    }
    let mut after = Link::from_parts(head.index, &head.hash).unwrap_or(Link::START);
    let mut batch = Vec::new();
    let mut size = 0;
    let mut reader = Reader::open(path)?;
    while let Some(item) = reader.next()? {
        match item {
            Item::Body(body) => backend.put(paths::body(&blake3::hash(&body)), body).await?,
            Item::Entry(entry) if entry.index <= head.index => {}
            Item::Entry(entry) => {
                size += entry.bytes.len();
                batch.push(entry);
            }
        }
        if batch.len() == BATCH || size >= BATCH_BYTES {
            after = append(&log, after, std::mem::take(&mut batch)).await?;
            size = 0;
        }
    }
    append(&log, after, batch).await?;
    let imported = v1::LogHead { importing: false, ..backend.head() };
    backend.set_head(imported.clone()).await?;
    Ok(Summary { incarnation: imported.incarnation, ..reader.summary() })
}

async fn append(log: &EventLog, after: Link, batch: Vec<Sealed>) -> Result<Link, ArchiveError> {
    let Some(link) = batch.last().map(Sealed::link) else { return Ok(after) };
    log.0.backend.append(after, batch).await?;
    Ok(link)
}

/// Whether the entries of a log that is being imported are the first ones of this file.
fn begins_with(path: &Path, head: &v1::LogHead) -> Result<bool, ArchiveError> {
    let mut reader = Reader::open(path)?;
    while let Some(item) = reader.next()? {
        if let Item::Entry(entry) = item
            && entry.index == head.index
        {
            return Ok(entry.link().previous() == head.hash);
        }
    }
    Ok(false)
}

/// Reads all entries from this index on, and tells which bodies they refer to.
async fn walk(log: &EventLog, from: u64) -> Result<(Summary, BTreeSet<Vec<u8>>), ArchiveError> {
    let from = from.max(1);
    let head = *log.head().borrow();
    let mut link = log.link(head).await?.unwrap_or(Link::START);
    let mut wanted = BTreeSet::new();
    let mut next = from;
    while next <= head {
        let (kept, last) = log.read_kept(next, usize::MAX).await?;
        next += kept.len() as u64;
        wanted.extend(kept.iter().flat_map(|(entry, _)| references(entry)).map(|hash| hash.to_vec()));
        link = last;
    }
    let incarnation = log.incarnation().to_owned();
    let hash = link.hash.map_or_else(String::new, |hash| hash.to_hex().to_string());
    Ok((Summary { incarnation, from, head: link.index, hash, bodies: 0 }, wanted))
}

/// The hashes of all bodies that there are, or should be.
async fn hashes(log: &EventLog, wanted: &BTreeSet<Vec<u8>>) -> Result<BTreeSet<Vec<u8>>, ArchiveError> {
    let backend = &log.0.backend;
    let mut hashes = wanted.clone();
    for folder in backend.list(paths::BODIES.to_owned()).await? {
        for name in backend.list(format!("{}/{folder}", paths::BODIES)).await? {
            // Whatever else lies there is none of ours.
            hashes.extend(blake3::Hash::from_hex(&name).map(|hash| hash.as_bytes().to_vec()));
        }
    }
    Ok(hashes)
}
