//! Entries as bytes: each names the hash of the one before it, so that none can be changed, left out or
//! moved without that being noticed.

use bytes::Bytes;
use prost::Message;
use tower_proto::v1;

/// An entry as it is kept.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    pub(super) index: u64,
    pub(super) command_id: String,
    pub(super) bytes: Bytes,
}

/// What the next entry has to follow: the hash of an entry, or nothing before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u64,
    pub(super) hash: Option<blake3::Hash>,
}

impl Link {
    /// Before the first entry.
    pub(super) const START: Self = Self { index: 0, hash: None };

    /// The hash as it stands in the next entry.
    pub(super) fn previous(&self) -> Bytes {
        self.hash.map_or_else(Bytes::new, |hash| Bytes::copy_from_slice(hash.as_bytes()))
    }

    /// From a message that has both.
    pub(super) fn from_parts(index: u64, hash: &[u8]) -> Option<Self> {
        match hash {
            [] if index == 0 => Some(Self::START),
            hash => Some(Self { index, hash: Some(to_hash(hash)?) }).filter(|_| index > 0),
        }
    }
}

impl Sealed {
    /// The entry that follows `after`.
    pub(super) fn new(mut entry: v1::LogEntry, after: &Link) -> Self {
        entry.index = after.index + 1;
        entry.previous = after.previous();
        Self { index: entry.index, bytes: entry.encode_to_vec().into(), command_id: entry.command_id }
    }

    /// An entry that was sealed before, byte for byte.
    pub(super) fn from_kept(bytes: Bytes, after: &Link) -> Result<(Self, Link), String> {
        let (entry, link) = open(&bytes, after)?;
        Ok((Self { index: entry.index, command_id: entry.command_id, bytes }, link))
    }

    /// What follows has to follow this.
    pub(super) fn link(&self) -> Link {
        Link { index: self.index, hash: Some(blake3::hash(&self.bytes)) }
    }
}

/// Decodes what should be the entry after `after`.
pub(super) fn open(bytes: &Bytes, after: &Link) -> Result<(v1::LogEntry, Link), String> {
    let expected = after.index + 1;
    let entry = v1::LogEntry::decode(bytes.clone()).map_err(|error| format!("it is no entry: {error}"))?;
    if entry.index != expected {
        return Err(format!("it says to be entry {}", entry.index));
    }
    if entry.previous != after.previous() {
        return Err(format!("it does not follow entry {}: that one has another hash", after.index));
    }
    Ok((entry, Link { index: expected, hash: Some(blake3::hash(bytes)) }))
}

/// A hash in a message.
pub(super) fn to_hash(bytes: &[u8]) -> Option<blake3::Hash> {
    bytes.try_into().ok().map(blake3::Hash::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> v1::LogEntry {
        v1::LogEntry { command_id: id.to_owned(), ..Default::default() }
    }

    #[test]
    fn what_follows_names_what_it_follows() {
        let first = Sealed::new(entry("a"), &Link::START);
        let second = Sealed::new(entry("b"), &first.link());
        let (opened, link) = open(&first.bytes, &Link::START).unwrap();
        assert_eq!((opened.index, &opened.previous[..]), (1, &[][..]));
        assert_eq!(link, first.link());
        let (opened, link) = open(&second.bytes, &link).unwrap();
        assert_eq!((opened.index, &opened.previous[..]), (2, &blake3::hash(&first.bytes).as_bytes()[..]));
        assert_eq!(Link::from_parts(2, &link.previous()), Some(second.link()));
    }

    #[test]
    fn what_does_not_follow_is_refused() {
        let first = Sealed::new(entry("a"), &Link::START);
        let other = Sealed::new(entry("x"), &Link::START);
        let second = Sealed::new(entry("b"), &first.link());
        let check = |bytes: &Bytes, after: &Link, problem: &str| {
            let error = open(bytes, after).unwrap_err();
            assert!(error.contains(problem), "{error}");
        };
        check(&second.bytes, &other.link(), "does not follow entry 1");
        check(&second.bytes, &Link::START, "says to be entry 2");
        check(&second.bytes, &second.link(), "says to be entry 2");
        check(&Bytes::from_static(b"\xff\xff"), &Link::START, "it is no entry");
        check(&second.bytes.slice(..second.bytes.len() - 1), &first.link(), "it is no entry");
    }

    #[test]
    fn a_hash_stands_where_an_entry_does() {
        let hash = [1; 32];
        for (index, hash) in [(0, &hash[..]), (1, &[]), (1, &hash[..31])] {
            assert_eq!(Link::from_parts(index, hash), None);
        }
        assert_eq!(Link::from_parts(0, &[]), Some(Link::START));
    }

    #[test]
    fn whatever_an_entry_is_it_is_opened_or_refused() {
        let first = Sealed::new(entry("a"), &Link::START);
        let seeds: [&[u8]; 2] = [&first.bytes, b""];
        tower_fuzz::fuzz("log entry", &seeds, &[], |input| {
            open(&Bytes::copy_from_slice(input), &Link::START).map(drop)
        });
    }
}
