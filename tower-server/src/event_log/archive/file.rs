//! The file: records one after the other, each after its length. The last one has the hash of all before it.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use prost::Message;
use tower_proto::v1::{self, archive_record::Record};

use super::{ArchiveError, Summary};
use crate::event_log::{
    FORMAT, MAX_BODY_BYTES,
    entry::{Link, Sealed},
};

/// A record is a body or an entry, and a few bytes around it.
const MAX_RECORD_BYTES: usize = MAX_BODY_BYTES + 64;

/// A varint is not longer.
const MAX_LENGTH_BYTES: usize = 10;

/// Writes a file.
pub(super) struct Writer {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    bodies: u64,
    entries: u64,
}

impl Writer {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(Self { file, hasher: blake3::Hasher::new(), bodies: 0, entries: 0 })
    }

    pub(super) fn write(&mut self, record: Record) -> io::Result<()> {
        match record {
            Record::Body(_) => self.bodies += 1,
            Record::Entry(_) => self.entries += 1,
            Record::Begin(_) | Record::End(_) => {}
        }
        let bytes = v1::ArchiveRecord { record: Some(record) }.encode_length_delimited_to_vec();
        self.hasher.update(&bytes);
        self.file.write_all(&bytes)
    }

    /// Ends the file, and makes it last; tells how many bodies there are in it.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        let hash = Bytes::copy_from_slice(self.hasher.finalize().as_bytes());
        self.write(Record::End(v1::ArchiveEnd { bodies: self.bodies, entries: self.entries, hash }))?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(self.bodies)
    }
}

/// What a file has in it.
#[derive(Debug)]
pub(super) enum Item {
    Body(Bytes),
    Entry(Sealed),
}

/// Reads a file, and verifies it on the way.
pub(super) struct Reader<R = BufReader<File>> {
    path: PathBuf,
    file: R,
    hasher: blake3::Hasher,
    /// Where the record begins that is read next.
    at: u64,
    begin: Option<v1::ArchiveBegin>,
    link: Link,
    bodies: u64,
    ended: bool,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let file = File::open(path).map_err(|error| ArchiveError::Io { path: path.to_owned(), error })?;
        Ok(Self::new(path, BufReader::new(file)))
    }
}

impl<R: BufRead> Reader<R> {
    fn new(path: &Path, file: R) -> Self {
        Self {
            path: path.to_owned(),
            file,
            hasher: blake3::Hasher::new(),
            at: 0,
            begin: None,
            link: Link::START,
            bodies: 0,
            ended: false,
        }
    }

    /// What was read, once all was.
    pub(super) fn summary(&self) -> Summary {
        Summary {
            incarnation: self.begin.clone().unwrap_or_default().incarnation,
            from: 1,
            head: self.link.index,
            hash: self.link.hash.map_or_else(String::new, |hash| hash.to_hex().to_string()),
            bodies: self.bodies,
        }
    }

    /// The next body or entry; none at the end of a file that is whole.
    pub(super) fn next(&mut self) -> Result<Option<Item>, ArchiveError> {
        loop {
            let at = self.at;
            let path = self.path.clone();
            let io = |error| ArchiveError::Io { path: path.clone(), error };
            let damaged = |problem: String| ArchiveError::Damaged { path: path.clone(), at, problem };
            if self.file.fill_buf().map_err(io)?.is_empty() {
                return if self.ended { Ok(None) } else { Err(damaged("the file has no end".to_owned())) };
            }
            let record = self.record().map_err(io)?.map_err(damaged)?;
            if let Some(item) = self.take(record).map_err(damaged)? {
                return Ok(Some(item));
            }
        }
    }

    /// A record with its length.
    fn record(&mut self) -> io::Result<Result<Vec<u8>, String>> {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_LENGTH_BYTES && bytes.last().is_none_or(|byte| byte & 0x80 != 0) {
            let mut byte = [0];
            if self.file.read(&mut byte)? == 0 {
                return Ok(Err("the file ends within a record".to_owned()));
            }
            bytes.push(byte[0]);
        }
        let Ok(length) = prost::decode_length_delimiter(&bytes[..]) else {
            return Ok(Err("a length is damaged".to_owned()));
        };
        if length > MAX_RECORD_BYTES {
            return Ok(Err(format!("a record has {length} bytes, and {MAX_RECORD_BYTES} are allowed")));
        }
        let read = (&mut self.file).take(length as u64).read_to_end(&mut bytes)?;
        if read < length {
            return Ok(Err("the file ends within a record".to_owned()));
        }
        self.at += bytes.len() as u64;
        Ok(Ok(bytes))
    }

    fn take(&mut self, bytes: Vec<u8>) -> Result<Option<Item>, String> {
        let bytes = Bytes::from(bytes);
        let before = self.hasher.finalize();
        self.hasher.update(&bytes);
        let record = v1::ArchiveRecord::decode_length_delimited(bytes);
        let record = record.map_err(|error| format!("it is no record: {error}"))?.record;
        let record = record.ok_or("it is a record of a kind that this build does not know")?;
        match (record, &self.begin) {
            (_, _) if self.ended => Err("there is something behind the end".to_owned()),
            (Record::Begin(begin), None) if begin.format == FORMAT => {
                self.begin = Some(begin);
                Ok(None)
            }
            (Record::Begin(begin), None) => {
                Err(format!("it has format {}, and this build reads format {FORMAT}", begin.format))
            }
            (_, None) => Err("it is no exported log".to_owned()),
            (Record::Begin(_), Some(_)) => Err("it begins once more".to_owned()),
            (Record::Body(_), Some(_)) if self.link.index > 0 => Err("a body follows an entry".to_owned()),
            (Record::Body(body), Some(_)) => {
                self.bodies += 1;
                Ok(Some(Item::Body(body)))
            }
            (Record::Entry(bytes), Some(_)) => {
                let index = self.link.index + 1;
                let (entry, link) = Sealed::from_kept(bytes, &self.link)
                    .map_err(|problem| format!("entry {index}: {problem}"))?;
                self.link = link;
                Ok(Some(Item::Entry(entry)))
            }
            (Record::End(end), Some(begin)) => {
                let entries = self.link.index;
                if (end.bodies, end.entries, begin.index) != (self.bodies, entries, entries) {
                    return Err(format!(
                        "it should have {} bodies and {} entries, and has {} and {entries}",
                        end.bodies, begin.index, self.bodies
                    ));
                }
                if end.hash[..] != before.as_bytes()[..] {
                    return Err("the hash of what is before it is another one".to_owned());
                }
                self.ended = true;
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(records: Vec<Record>) -> Vec<u8> {
        let records = records.into_iter().map(|record| v1::ArchiveRecord { record: Some(record) });
        records.flat_map(|record| record.encode_length_delimited_to_vec()).collect()
    }

    /// A file with a body and two entries.
    fn whole() -> Vec<u8> {
        let entry = |id: &str| v1::LogEntry { command_id: id.to_owned(), ..Default::default() };
        let first = Sealed::new(entry("a"), &Link::START);
        let second = Sealed::new(entry("b"), &first.link());
        let begin = v1::ArchiveBegin { format: FORMAT, index: 2, ..Default::default() };
        let mut bytes = file(vec![
            Record::Begin(begin),
            Record::Body(Bytes::from_static(b"body")),
            Record::Entry(first.bytes),
            Record::Entry(second.bytes),
        ]);
        let hash = Bytes::copy_from_slice(blake3::hash(&bytes).as_bytes());
        bytes.extend(file(vec![Record::End(v1::ArchiveEnd { bodies: 1, entries: 2, hash })]));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Summary, String> {
        let mut reader = Reader::new(Path::new("log.tower"), bytes);
        while reader.next().map_err(|error| error.to_string())?.is_some() {}
        Ok(reader.summary())
    }

    #[test]
    fn a_whole_file_is_read() {
        let summary = read(&whole()).unwrap();
        assert_eq!((summary.head, summary.bodies), (2, 1));
    }

    #[test]
    fn any_byte_that_is_missing_added_or_changed_is_noticed() {
        let whole = whole();
        for length in 0..whole.len() {
            let error = read(&whole[..length]).unwrap_err();
            assert!(error.starts_with("log.tower: byte "), "{error}");
        }
        assert!(read(&[&whole[..], b"x"].concat()).unwrap_err().contains("within a record"));
        assert!(read(&[&whole[..], &whole[..]].concat()).unwrap_err().contains("behind the end"));
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn whatever_a_file_is_it_is_read_or_refused() {
        let whole = whole();
        tower_fuzz::fuzz("exported log", &[&whole], &[], |input| read(input).map(drop));
    }
}
