//! A hash of a whole store that is kept up to date change by change.

use bytes::Bytes;
use prost::Message;
use tower_proto::v1;

use crate::resource::{ResourceKey, Version};

/// The sum of a hash of each resource's key and version; see [`v1::Digest`] for the exact rule. Equal
/// contents have equal digests, in whatever order they came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest {
    sum: u128,
    resources: u64,
}

impl Digest {
    /// Counts a resource in.
    pub fn add(&mut self, key: &ResourceKey, version: Version) {
        self.sum = self.sum.wrapping_add(element(key, version));
        self.resources += 1;
    }

    /// Takes a resource out that was counted in.
    pub fn remove(&mut self, key: &ResourceKey, version: Version) {
        self.sum = self.sum.wrapping_sub(element(key, version));
        self.resources -= 1;
    }

    /// The digest as it is on the wire.
    pub fn to_proto(self) -> v1::Digest {
        v1::Digest { sum: Bytes::copy_from_slice(&self.sum.to_le_bytes()), resources: self.resources }
    }
}

impl PartialEq<v1::Digest> for Digest {
    fn eq(&self, other: &v1::Digest) -> bool {
        self.resources == other.resources && other.sum == self.sum.to_le_bytes().as_slice()
    }
}

fn element(key: &ResourceKey, version: Version) -> u128 {
    let key = key.to_proto().encode_to_vec();
    u128::from_le_bytes(Version::of_parts([key.as_slice(), &version.0]).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_the_contents_and_not_on_the_way_there() {
        let [a, b] = ["a", "b"].map(|name| ResourceKey::new("", v1::Kind::Endpoint, "web", name));
        let [one, two] = [b"1", b"2"].map(|body| Version::of(body));
        let mut left = Digest::default();
        left.add(&a, one);
        left.add(&b, one);
        let mut right = Digest::default();
        right.add(&b, two);
        right.remove(&b, two);
        right.add(&b, one);
        assert_ne!(left, right);
        right.add(&a, one);
        assert_eq!(left, right);
        assert!(left == right.to_proto());
    }
}
