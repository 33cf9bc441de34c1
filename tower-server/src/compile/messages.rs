//! Envoy's messages by their descriptors: bytes in one order, and as JSON.
//!
//! The maps of a message are hash maps, which are written in another order each time. What is compiled has
//! to be the same to the byte, so every body passes [`canonical`].

use std::sync::LazyLock;

use bytes::{Buf, BufMut};
use prost::{
    DecodeError, Message, Name,
    encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint},
};
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor,
    ReflectMessage, SerializeOptions,
};
use serde_json::Value;
use tower_proto::{ENVOY_DESCRIPTORS, envoy::google::protobuf::Any};

/// The name of the message that holds another one, whose type it names.
const ANY: &str = "google.protobuf.Any";

/// All messages of Envoy's v3 API.
pub(super) static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(ENVOY_DESCRIPTORS).expect("what a test has compared"));

/// What stands in the way of a message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such type of messages.
    #[error("no message of Envoy's v3 API is called {0:?}")]
    Unknown(String),
    /// The bytes are no such message.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// There are fewer bytes than announced.
    #[error("malformed: it ends too early")]
    Truncated,
    /// A value that Envoy's own constraints do not allow, and where.
    #[error("{path}: {reason}")]
    Refused {
        /// The place in the message.
        path: String,
        /// What is wrong there.
        reason: String,
    },
    /// JSON that is no such message, and where.
    #[error("{path}: {reason}")]
    Json {
        /// The place in the message.
        path: String,
        /// What is wrong there.
        reason: String,
    },
}

/// A message in an `Any`.
pub(super) fn any<M: Message + Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: message.encode_to_vec() }
}

/// The bytes of a message that stands for itself: the entries of its maps, and of those of the messages in
/// it, are in the order of their keys.
pub(super) fn canonical<M: Message + Name>(message: &M) -> Vec<u8> {
    let sorted =
        descriptor(&M::full_name()).and_then(|descriptor| sort(&descriptor, &message.encode_to_vec()));
    // What has just been encoded can be decoded; its type is among those that descriptors are made of.
    sorted.expect("a message of Envoy's")
}

/// Merges JSON into a message, as RFC 7386 has it: objects are merged, anything else is replaced, `null`
/// takes away. Fields are called as in Envoy's proto files.
///
/// # Errors
/// If the result is no such message. The error says where.
pub(super) fn merge(type_name: &str, body: &[u8], patch: &Value) -> Result<Vec<u8>, Error> {
    let descriptor = descriptor(type_name)?;
    let mut json = to_json(type_name, body)?;
    merge_json(&mut json, patch);
    let mut track = serde_path_to_error::Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(json, &mut track);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let patched = DynamicMessage::deserialize_with_options(descriptor.clone(), deserializer, &options);
    let patched =
        patched.map_err(|error| Error::Json { path: track.path().to_string(), reason: error.to_string() })?;
    sort(&descriptor, &patched.encode_to_vec())
}

/// A message as JSON, with the names of Envoy's proto files.
///
/// # Errors
/// If the bytes are no such message.
pub fn to_json(type_name: &str, body: &[u8]) -> Result<Value, Error> {
    let message = decode(type_name, body)?;
    let options = SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
    let json = message.serialize_with_options(serde_json::value::Serializer, &options);
    json.map_err(|error| Error::Json { path: ".".to_owned(), reason: error.to_string() })
}

fn merge_json(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        into.clone_from(patch);
        return;
    };
    if !into.is_object() {
        *into = Value::Object(serde_json::Map::new());
    }
    let Value::Object(into) = into else { return };
    for (key, value) in patch {
        if value.is_null() {
            into.remove(key);
        } else {
            merge_json(into.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// A message of this type.
///
/// # Errors
/// If there is no such type, or the bytes are no such message.
pub(super) fn decode(type_name: &str, body: &[u8]) -> Result<DynamicMessage, Error> {
    Ok(DynamicMessage::decode(descriptor(type_name)?, body)?)
}

/// The message in an `Any`; `None` if this is none, or if its type is not known.
///
/// # Errors
/// If the bytes are no such message.
pub(super) fn unpack(of: &DynamicMessage) -> Result<Option<DynamicMessage>, Error> {
    if of.descriptor().full_name() != ANY {
        return Ok(None);
    }
    let message = Any::decode(of.encode_to_vec().as_slice())?;
    match POOL.get_message_by_name(type_name(&message.type_url)) {
        Some(inner) => Ok(Some(DynamicMessage::decode(inner, message.value.as_slice())?)),
        None => Ok(None),
    }
}

fn type_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}

fn descriptor(name: &str) -> Result<MessageDescriptor, Error> {
    POOL.get_message_by_name(name).ok_or_else(|| Error::Unknown(name.to_owned()))
}

fn sort(of: &MessageDescriptor, mut body: &[u8]) -> Result<Vec<u8>, Error> {
    if of.full_name() == ANY {
        let mut message = Any::decode(body)?;
        // A type that is not known is left as it is.
        if let Some(inner) = POOL.get_message_by_name(type_name(&message.type_url)) {
            message.value = sort(&inner, &message.value)?;
        }
        return Ok(message.encode_to_vec());
    }
    // Number, entry of a map, and what stands for the field on the wire.
    let mut fields: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
    while body.has_remaining() {
        let (number, wire_type) = decode_key(&mut body)?;
        let (mut bytes, mut entry) = (Vec::new(), Vec::new());
        encode_key(number, wire_type, &mut bytes);
        match wire_type {
            WireType::Varint => encode_varint(decode_varint(&mut body)?, &mut bytes),
            WireType::SixtyFourBit => bytes.put_slice(take(&mut body, 8)?),
            WireType::ThirtyTwoBit => bytes.put_slice(take(&mut body, 4)?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut body)?;
                let value = take(&mut body, length)?;
                let field = of.get_field(number);
                let sorted = match field.as_ref().map(FieldDescriptor::kind) {
                    Some(Kind::Message(inner)) => sort(&inner, value)?,
                    _ => value.to_vec(),
                };
                encode_varint(sorted.len() as u64, &mut bytes);
                bytes.put_slice(&sorted);
                if field.is_some_and(|field| field.is_map()) {
                    // It begins with its key, and no two have the same.
                    entry = sorted;
                }
            }
            WireType::StartGroup | WireType::EndGroup => return Err(Error::Truncated),
        }
        fields.push((number, entry, bytes));
    }
    // Stable, so what is repeated keeps its order.
    fields.sort_by(|(a, entry_a, _), (b, entry_b, _)| a.cmp(b).then_with(|| entry_a.cmp(entry_b)));
    Ok(fields.into_iter().flat_map(|(_, _, bytes)| bytes).collect())
}

fn take<'a>(body: &mut &'a [u8], length: u64) -> Result<&'a [u8], Error> {
    let length = usize::try_from(length).map_err(|_| Error::Truncated)?;
    let (taken, rest) = body.split_at_checked(length).ok_or(Error::Truncated)?;
    *body = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;
    use tower_proto::envoy::envoy::{
        config::{
            cluster::v3::Cluster,
            route::v3::{Route, VirtualHost},
        },
        extensions::{
            filters::http::{local_ratelimit::v3::LocalRateLimit, rbac::v3::RbacPerRoute},
            upstreams::http::v3::HttpProtocolOptions,
        },
    };

    use super::*;

    fn host() -> VirtualHost {
        // A new one has another seed, so its entries come in another order.
        let mut filters: HashMap<_, _> =
            (0..20).map(|n| (format!("filter-{n}"), any(&RbacPerRoute::default()))).collect();
        let limit = LocalRateLimit { stat_prefix: "web".into(), ..Default::default() };
        filters.insert("limit".to_owned(), any(&limit));
        let route = Route { typed_per_filter_config: filters.clone(), ..Default::default() };
        let routes = vec![Route { name: "z".into(), ..route.clone() }, Route { name: "a".into(), ..route }];
        VirtualHost { name: "web".into(), routes, typed_per_filter_config: filters, ..Default::default() }
    }

    #[test]
    fn equal_messages_have_equal_bytes() {
        let first = canonical(&host());
        assert!((0..10).all(|_| canonical(&host()) == first), "the same each time");
        let read = VirtualHost::decode(first.as_slice()).unwrap();
        assert_eq!(read, host(), "and nothing else in them");
        let names: Vec<_> = read.routes.iter().map(|route| route.name.as_str()).collect();
        assert_eq!(names, ["z", "a"], "what is a list keeps its order");
        let wrapped = || sort(&descriptor(ANY).unwrap(), &any(&host()).encode_to_vec()).unwrap();
        assert_eq!(wrapped(), wrapped(), "also in an Any");
    }

    #[test]
    fn json_is_merged_into_what_is_there() {
        let cluster = Cluster {
            name: "web".into(),
            alt_stat_name: "w".into(),
            typed_extension_protocol_options: [("http".to_owned(), any(&HttpProtocolOptions::default()))]
                .into(),
            ..Default::default()
        };
        let patch = json!({
            "connect_timeout": "0.25s",
            "alt_stat_name": null,
            "lb_policy": "MAGLEV",
            "typed_extension_protocol_options": {"http": {"common_http_protocol_options": {"idle_timeout": "9s"}}},
        });
        let patched = merge("envoy.config.cluster.v3.Cluster", &cluster.encode_to_vec(), &patch).unwrap();
        let patched = Cluster::decode(patched.as_slice()).unwrap();
        assert_eq!((patched.name.as_str(), patched.alt_stat_name.as_str()), ("web", ""));
        assert_eq!(patched.connect_timeout.unwrap().nanos, 250_000_000);
        assert_eq!(patched.lb_policy, 5);
        let options = &patched.typed_extension_protocol_options["http"];
        let options = HttpProtocolOptions::decode(options.value.as_slice()).unwrap();
        assert_eq!(options.common_http_protocol_options.unwrap().idle_timeout.unwrap().seconds, 9);
    }

    #[test]
    fn json_that_does_not_fit_is_refused_with_its_place() {
        let cases = [
            (json!({"connect_timeuot": "1s"}), "connect_timeuot"),
            (
                json!({"circuit_breakers": {"thresholds": [{"max_requests": -1}]}}),
                "thresholds[0].max_requests",
            ),
            (json!({"connect_timeout": "soon"}), "connect_timeout"),
            (
                json!({"typed_extension_protocol_options": {"x": {"@type": "type.googleapis.com/no.Such"}}}),
                "no.Such",
            ),
            (json!("text"), "string"),
        ];
        for (patch, word) in cases {
            let error = merge("envoy.config.cluster.v3.Cluster", &[], &patch).unwrap_err().to_string();
            assert!(error.contains(word), "{patch}: {error}");
        }
        assert!(merge("no.Such", &[], &json!({})).unwrap_err().to_string().contains("no.Such"));
    }
}
