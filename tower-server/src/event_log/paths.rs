//! Where things of a log are, relative to its root: the same in a folder and in an ensemble.

pub(super) const BODIES: &str = "bodies";
pub(super) const CHECKPOINTS: &str = "checkpoints";

/// Entries of an ensemble are in folders of a thousand, and of an embedded log in a table.
pub(super) fn entry(index: u64) -> String {
    format!("log/{}/{index}", index / 1000)
}

/// Where a command id leads to.
pub(super) fn id(command_id: &str) -> String {
    hashed("ids", &blake3::hash(command_id.as_bytes()))
}

/// A body, under the hash of its bytes. In 256 folders, so that none has too many to be listed.
pub(super) fn body(hash: &blake3::Hash) -> String {
    hashed(BODIES, hash)
}

/// An entry that is too large for its table.
pub(super) fn large_entry(hash: &blake3::Hash) -> String {
    hashed("entries", hash)
}

/// A folded state.
pub(super) fn checkpoint(index: u64, hash: &blake3::Hash) -> String {
    format!("{CHECKPOINTS}/{index:020}-{}", hash.to_hex())
}

/// The index in the last part of the path of a checkpoint.
pub(super) fn index_of_checkpoint(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}

fn hashed(folder: &str, hash: &blake3::Hash) -> String {
    let hex = hash.to_hex();
    format!("{folder}/{}/{hex}", &hex[..2])
}
