//! A hash of a whole store that is kept up to date change by change.

use bytes::Bytes;
use prost::Message;
use tower_proto::v1;

use crate::resource::{Resource, ResourceKey, Version};

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

/// The digests of the buckets of a store; see [`v1::Buckets`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Buckets(Vec<u128>);

impl Buckets {
    /// More than that are not asked for: their digests are to fit into one message.
    pub const MAX: u32 = 1 << 15;

    /// So many that there are about 16 resources in each.
    pub fn count_for(resources: usize) -> u32 {
        let wanted = u32::try_from(resources / 16).unwrap_or(u32::MAX);
        wanted.clamp(1, Self::MAX).next_power_of_two().min(Self::MAX)
    }

    /// The digests of these resources.
    pub fn of<'a>(resources: impl Iterator<Item = &'a Resource>, count: u32) -> Self {
        let mut sums = vec![0_u128; count.max(1) as usize];
        for resource in resources {
            let bucket = &mut sums[bucket_of(resource.key(), count) as usize];
            *bucket = bucket.wrapping_add(element(resource.key(), resource.version()));
        }
        Self(sums)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// The numbers of those that differ. Both must have the same count.
    pub fn differing(&self, other: &Self) -> Vec<u32> {
        let pairs = (0..).zip(self.0.iter().zip(&other.0));
        pairs.filter(|(_, (own, other))| own != other).map(|(number, _)| number).collect()
    }

    /// As they are on the wire.
    pub fn to_proto(&self) -> v1::Buckets {
        v1::Buckets { sums: self.0.iter().flat_map(|sum| sum.to_le_bytes()).collect() }
    }

    /// As they are on the wire; `None` if they are none, cut off, or too many.
    pub fn from_proto(proto: &v1::Buckets) -> Option<Self> {
        let (sums, rest) = proto.sums.as_chunks::<16>();
        let fits = rest.is_empty() && (1..=Self::MAX as usize).contains(&sums.len());
        fits.then(|| Self(sums.iter().map(|sum| u128::from_le_bytes(*sum)).collect()))
    }
}

/// The bucket that a key belongs to, of so many.
pub fn bucket_of(key: &ResourceKey, count: u32) -> u32 {
    let [a, b, c, d, ..] = Version::of(&key.to_proto().encode_to_vec()).0;
    u32::from_be_bytes([a, b, c, d]) % count.max(1)
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
    use crate::resource::Origin;

    fn resource(name: &str, body: &'static [u8]) -> Resource {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
        Resource::new(key, Origin { source: "zk".into(), index: 1 }, Bytes::from_static(body))
    }

    #[test]
    fn buckets_tell_where_stores_differ() {
        let mut resources: Vec<_> = (0..1000).map(|n| resource(&n.to_string(), b"1")).collect();
        let count = Buckets::count_for(resources.len());
        assert_eq!(count, 64);
        let before = Buckets::of(resources.iter(), count);
        let changed = resource("7", b"2");
        let bucket = bucket_of(changed.key(), count);
        resources[7] = changed;
        let after = Buckets::of(resources.iter(), count);
        assert_eq!(before.differing(&after), [bucket]);
        assert_eq!(Buckets::from_proto(&after.to_proto()), Some(after));
    }

    #[test]
    fn what_are_no_buckets_is_refused() {
        let sums = |bytes: usize| v1::Buckets { sums: vec![0; bytes].into() };
        for bytes in [0, 15, 17, 16 * (Buckets::MAX as usize + 1)] {
            assert_eq!(Buckets::from_proto(&sums(bytes)), None, "{bytes} bytes");
        }
        assert_eq!(Buckets::count_for(0), 1);
        assert_eq!(Buckets::count_for(usize::MAX), Buckets::MAX);
    }

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
