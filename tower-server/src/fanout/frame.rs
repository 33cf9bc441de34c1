//! Changes as bytes: serialized responses, each with the prefix that gRPC puts before a message.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tower_common::{
    delivery::Scope,
    digest::Digest,
    resource::{Origin, Resource, ResourceKey},
};
use tower_proto::v1;

/// Messages are cut when their resources exceed this, far below the 4 MiB that gRPC receivers accept by
/// default. A resource is at most as large again.
const CHUNK_BYTES: usize = 1 << 20;

/// What a delivery consists of.
#[derive(Debug)]
pub struct Parts<'a> {
    /// What it is everything of.
    pub scope: Scope,
    /// The revision before.
    pub from: u64,
    /// The revision after.
    pub to: u64,
    /// New and changed resources.
    pub upserts: Vec<&'a Resource>,
    /// What is gone.
    pub removals: Vec<(ResourceKey, Origin)>,
    /// The sources that moved, as they are after.
    pub sources: Vec<v1::SourceStatus>,
    /// Of the store after.
    pub digest: Digest,
}

/// A message with gRPC's prefix: not compressed, four bytes of length (gRPC over HTTP/2, "Length-Prefixed
/// Message").
pub fn framed(message: &v1::WatchResponse) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(5 + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).expect("messages are cut long before 4 GiB"));
    message.encode(&mut frame).expect("the buffer grows");
    frame.freeze()
}

/// A delivery as messages: one, unless it is large.
pub fn delivery(parts: Parts<'_>) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let mut begin = v1::Begin { from_revision: parts.from, ..Default::default() };
    match parts.scope {
        Scope::Changes => {}
        Scope::Everything => begin.full = true,
        Scope::Sources(sources) => begin.full_sources = sources,
        Scope::Buckets { count, numbers } => {
            begin.bucket_count = count;
            begin.full_buckets = numbers;
        }
    }
    let mut message = v1::WatchResponse { begin: Some(begin), ..Default::default() };
    let mut bytes = 0;
    let mut cut_before = |message: &mut v1::WatchResponse, next: usize| {
        if bytes > 0 && bytes + next > CHUNK_BYTES {
            frames.push(framed(&std::mem::take(message)));
            bytes = 0;
        }
        bytes += next;
    };
    // Removals first: that is the order in which they are applied.
    for (key, origin) in parts.removals {
        let removal = v1::Removal { key: Some(key.to_proto()), origin: Some(origin.to_proto()) };
        cut_before(&mut message, removal.encoded_len());
        message.removals.push(removal);
    }
    for resource in parts.upserts {
        cut_before(&mut message, resource.encoded().len());
        message.upserts.push(resource.encoded().clone());
    }
    message.commit = Some(v1::Commit {
        to_revision: parts.to,
        sources: parts.sources,
        digest: Some(parts.digest.to_proto()),
    });
    frames.push(framed(&message));
    frames
}

#[cfg(test)]
mod tests {
    use tower_common::delivery::{Event, Staging};

    use super::*;

    fn resource(name: &str, bytes: usize) -> Resource {
        let key = ResourceKey::new("", v1::Kind::AppConfig, "", name);
        Resource::new(key, Origin { source: "zk".into(), index: 1 }, vec![7; bytes].into())
    }

    fn messages(frames: &[Bytes]) -> Vec<v1::WatchResponse> {
        let decode = |frame: &Bytes| {
            assert_eq!(frame[0], 0);
            let length = u32::from_be_bytes(frame[1..5].try_into().unwrap());
            assert_eq!(frame.len(), 5 + length as usize);
            v1::WatchResponse::decode(frame.slice(5..)).unwrap()
        };
        frames.iter().map(decode).collect()
    }

    fn parts(upserts: Vec<&Resource>) -> Parts<'_> {
        let digest = Digest::default();
        Parts { scope: Scope::Everything, from: 0, to: 3, upserts, removals: vec![], sources: vec![], digest }
    }

    #[test]
    fn a_small_change_is_one_message() {
        let resource = resource("a", 10);
        let messages = messages(&delivery(parts(vec![&resource])));
        assert_eq!(messages.len(), 1);
        assert!(messages[0].begin.as_ref().unwrap().full);
        assert_eq!(messages[0].commit.as_ref().unwrap().to_revision, 3);
    }

    #[test]
    fn a_large_state_is_cut_and_put_together_again() {
        let resources: Vec<_> = (0..50).map(|n| resource(&n.to_string(), 100_000)).collect();
        let frames = delivery(parts(resources.iter().collect()));
        assert!(frames.len() > 3);
        assert!(frames.iter().all(|frame| frame.len() < 2 << 20));
        let mut staging = Staging::new();
        let welcome = v1::WatchResponse { welcome: Some(v1::Welcome::default()), ..Default::default() };
        staging.accept(welcome).unwrap();
        let mut delivered = Vec::new();
        for message in messages(&frames) {
            for event in staging.accept(message).unwrap() {
                if let Event::Delivery(delivery) = event {
                    delivered.push(delivery.transaction.upserts);
                }
            }
        }
        assert_eq!(delivered, [resources]);
    }
}
