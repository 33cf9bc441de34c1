//! Resources: key, content hash, origin, bytes. Bodies are opaque here.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use prost::Message;
use tower_proto::v1;

/// Larger resources are refused where they are made: a message of the stream holds at least one.
pub const MAX_RESOURCE_BYTES: usize = 1 << 20;

/// Identifies a resource. Sorts by scope, kind, service, name, so that the resources of one kind and
/// service stand together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceKey {
    /// The mesh or region; empty is the default scope.
    pub scope: Arc<str>,
    /// A [`v1::Kind`], or a number that this build does not know.
    pub kind: i32,
    /// The service that the resource belongs to, or empty.
    pub service: Arc<str>,
    /// Unique within the rest of the key. Opaque.
    pub name: Arc<str>,
}

/// The first 16 bytes of the BLAKE3 hash of a body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version(pub [u8; 16]);

/// Where a fact comes from; see [`v1::Origin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The id of a source.
    pub source: Arc<str>,
    /// Where in the source.
    pub index: u64,
}

/// One resource, with its encoding. The encoding is kept, so that fields which this build does not know
/// are passed on, and nothing is encoded twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    key: ResourceKey,
    version: Version,
    origin: Origin,
    body: Bytes,
    encoded: Bytes,
}

/// Why bytes are not a resource.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    /// Not a [`v1::Resource`].
    #[error("a resource cannot be decoded: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// A field that every resource has is missing.
    #[error("a resource has no {field} (kind {kind}, service {service:?}, name {name:?})")]
    Missing {
        /// The field.
        field: &'static str,
        /// The key, as far as it is known.
        kind: i32,
        /// The key's service.
        service: String,
        /// The key's name.
        name: String,
    },
    /// The version is not the hash of the body.
    #[error("resource {key}: the version {version} does not match the body, whose hash is {actual}")]
    WrongVersion {
        /// Which resource.
        key: ResourceKey,
        /// The version that it claims, in hexadecimal digits.
        version: String,
        /// The hash of its body.
        actual: Version,
    },
}

impl ResourceKey {
    /// A key of a known kind.
    pub fn new(scope: &str, kind: v1::Kind, service: &str, name: &str) -> Self {
        Self { scope: scope.into(), kind: kind.into(), service: service.into(), name: name.into() }
    }

    /// The key as it is on the wire.
    pub fn to_proto(&self) -> v1::ResourceKey {
        v1::ResourceKey {
            scope: self.scope.to_string(),
            kind: self.kind,
            service: self.service.to_string(),
            name: self.name.to_string(),
        }
    }
}

impl From<v1::ResourceKey> for ResourceKey {
    fn from(key: v1::ResourceKey) -> Self {
        Self { scope: key.scope.into(), kind: key.kind, service: key.service.into(), name: key.name.into() }
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match v1::Kind::try_from(self.kind) {
            Ok(kind) => f.write_str(kind.as_str_name().trim_start_matches("KIND_"))?,
            Err(_) => write!(f, "KIND {}", self.kind)?,
        }
        if !self.scope.is_empty() {
            write!(f, " {}:", self.scope)?;
        }
        write!(f, " {}/{}", self.service, self.name)
    }
}

impl Version {
    /// The version of a body.
    pub fn of(body: &[u8]) -> Self {
        Self::of_parts([body])
    }

    /// The version of the concatenation of `parts`.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part);
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(first)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Origin {
    /// The origin as it is on the wire.
    pub fn to_proto(&self) -> v1::Origin {
        v1::Origin { source: self.source.to_string(), index: self.index }
    }
}

impl From<v1::Origin> for Origin {
    fn from(origin: v1::Origin) -> Self {
        Self { source: origin.source.into(), index: origin.index }
    }
}

impl Resource {
    /// A resource with this body, encoded.
    pub fn new(key: ResourceKey, origin: Origin, body: Bytes) -> Self {
        let version = Version::of(&body);
        let encoded = v1::Resource {
            key: Some(key.to_proto()),
            version: Bytes::copy_from_slice(&version.0),
            origin: Some(origin.to_proto()),
            body: body.clone(),
        }
        .encode_to_vec()
        .into();
        Self { key, version, origin, body, encoded }
    }

    /// Decodes a [`v1::Resource`]. The bytes are copied, so that a resource never keeps the message
    /// alive that brought it.
    ///
    /// # Errors
    /// If the bytes are not a resource, lack a key or an origin, or their version is not the hash of
    /// their body.
    pub fn decode(encoded: &[u8]) -> Result<Self, ResourceError> {
        let encoded = Bytes::copy_from_slice(encoded);
        let proto = v1::Resource::decode(encoded.clone())?;
        let key = proto.key.unwrap_or_default();
        let missing = |field: &'static str| ResourceError::Missing {
            field,
            kind: key.kind,
            service: key.service.clone(),
            name: key.name.clone(),
        };
        if key.kind == 0 {
            return Err(missing("kind"));
        }
        let Some(origin) = proto.origin else { return Err(missing("origin")) };
        let key = ResourceKey::from(key);
        let version = Version::of(&proto.body);
        if proto.version != version.0.as_slice() {
            let claimed = proto.version.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(ResourceError::WrongVersion { key, version: claimed, actual: version });
        }
        Ok(Self { key, version, origin: origin.into(), body: proto.body, encoded })
    }

    /// What identifies it.
    pub fn key(&self) -> &ResourceKey {
        &self.key
    }

    /// Its content hash.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where it comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its content, in the form that its kind prescribes.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The serialized [`v1::Resource`], as it was made or received.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource() -> Resource {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", "10.0.0.1:80@zk");
        Resource::new(key, Origin { source: "zk".into(), index: 7 }, Bytes::from_static(b"body"))
    }

    #[test]
    fn decoding_gives_back_what_was_encoded() {
        let made = resource();
        assert_eq!(Resource::decode(made.encoded()).unwrap(), made);
    }

    #[test]
    fn unknown_kinds_and_fields_are_kept() {
        let mut proto = v1::Resource::decode(resource().encoded().clone()).unwrap();
        proto.key.as_mut().unwrap().kind = 4711;
        let mut encoded = proto.encode_to_vec();
        // Field 1000, a varint.
        encoded.extend([0xc0, 0x3e, 0x05]);
        let decoded = Resource::decode(&encoded).unwrap();
        assert_eq!(decoded.key().kind, 4711);
        assert_eq!(decoded.encoded().as_ref(), encoded);
    }

    #[test]
    fn a_resource_is_refused_whole_and_by_name() {
        let check = |change: fn(&mut v1::Resource), message: &str| {
            let mut proto = v1::Resource::decode(resource().encoded().clone()).unwrap();
            change(&mut proto);
            let error = Resource::decode(&proto.encode_to_vec()).unwrap_err().to_string();
            assert!(error.contains(message), "{error:?} does not contain {message:?}");
        };
        check(|r| r.origin = None, "no origin (kind 1, service \"web\", name \"10.0.0.1:80@zk\")");
        check(|r| r.key = None, "no kind");
        check(|r| r.body = Bytes::from_static(b"other"), "ENDPOINT web/10.0.0.1:80@zk: the version");
        check(|r| r.version = Bytes::new(), "does not match the body");
        assert!(Resource::decode(&[0xff]).is_err());
    }
}
