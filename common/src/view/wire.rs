//! Changes serialized messages in place.
//!
//! Decoding and encoding again would lose the fields that this build does not know, and write maps in an
//! order that differs from one process to the next. Serialized messages of one type merge when they are
//! concatenated (protobuf, encoding guide): a field that is appended takes the place of a scalar, is added to
//! a list, and is merged into a message.

use prost::{
    DecodeError,
    encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint},
};

/// A field of a message.
struct Field<'a> {
    number: u32,
    /// The field with its key.
    whole: &'a [u8],
    /// The content, if it is delimited by a length: messages, strings, bytes.
    payload: Option<&'a [u8]>,
}

/// Copies a message, with the content of each length-delimited field of this number replaced.
///
/// # Errors
/// If it is no message, or `change` fails.
pub(super) fn edit(
    body: &[u8],
    number: u32,
    mut change: impl FnMut(&[u8]) -> Result<Vec<u8>, DecodeError>,
) -> Result<Vec<u8>, DecodeError> {
    let mut edited = Vec::with_capacity(body.len() + 64);
    for field in fields(body)? {
        match field.payload {
            Some(payload) if field.number == number => append(&mut edited, number, &change(payload)?),
            _ => edited.extend_from_slice(field.whole),
        }
    }
    Ok(edited)
}

/// The content of the length-delimited fields of this number.
///
/// # Errors
/// If it is no message.
pub(super) fn contents(body: &[u8], number: u32) -> Result<Vec<&[u8]>, DecodeError> {
    let fields = fields(body)?.into_iter().filter(|field| field.number == number);
    Ok(fields.filter_map(|field| field.payload).collect())
}

/// Appends a length-delimited field.
pub(super) fn append(body: &mut Vec<u8>, number: u32, payload: &[u8]) {
    encode_key(number, WireType::LengthDelimited, body);
    encode_varint(payload.len() as u64, body);
    body.extend_from_slice(payload);
}

/// Appends a number, also if it is zero, which encoding leaves out: to leave it out is to keep what was there.
pub(super) fn append_number(body: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, body);
    encode_varint(value, body);
}

fn fields(body: &[u8]) -> Result<Vec<Field<'_>>, DecodeError> {
    let mut fields = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let start = rest;
        let (number, kind) = decode_key(&mut rest)?;
        let payload = match kind {
            WireType::Varint => {
                decode_varint(&mut rest)?;
                None
            }
            WireType::SixtyFourBit => Some(take(&mut rest, 8)?).and(None),
            WireType::ThirtyTwoBit => Some(take(&mut rest, 4)?).and(None),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut rest)?;
                Some(take(&mut rest, length)?)
            }
            // Nothing of Envoy's has groups.
            WireType::StartGroup | WireType::EndGroup => return Err(malformed()),
        };
        fields.push(Field { number, whole: &start[..start.len() - rest.len()], payload });
    }
    Ok(fields)
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8], DecodeError> {
    let length = usize::try_from(length).map_err(|_| malformed())?;
    let (taken, left) = rest.split_at_checked(length).ok_or_else(malformed)?;
    *rest = left;
    Ok(taken)
}

/// prost makes its errors itself only.
fn malformed() -> DecodeError {
    decode_varint(&mut [].as_slice()).expect_err("there is no number in nothing")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;
    use tower_proto::v1;

    use super::*;

    #[test]
    fn a_field_is_replaced_and_all_else_stays_as_it_was() {
        let node = v1::Node {
            id: "a".into(),
            zone: "z".into(),
            workloads: vec![
                v1::Workload { service: "web".into(), cluster: String::new() },
                v1::Workload { service: "api".into(), cluster: String::new() },
            ],
            ..Default::default()
        };
        let mut body = node.encode_to_vec();
        // Fields that no build knows: a varint, 8 bytes, 4 bytes.
        body.extend([0xc0, 0x3e, 0x05, 0xc9, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8, 0xd5, 0x3e, 1, 2, 3, 4]);
        let edited = edit(&body, 4, |workload| {
            let mut workload = workload.to_vec();
            append(&mut workload, 2, b"main");
            Ok(workload)
        })
        .unwrap();
        assert!(edited.ends_with(&body[body.len() - 19..]));
        let read = v1::Node::decode(edited.as_slice()).unwrap();
        let clusters: Vec<_> =
            read.workloads.iter().map(|w| (w.service.as_str(), w.cluster.as_str())).collect();
        assert_eq!(clusters, [("web", "main"), ("api", "main")]);
        assert_eq!((read.id, read.zone), (node.id, node.zone));
        assert_eq!(contents(&body, 1).unwrap(), [b"a"]);
    }

    #[test]
    fn a_zero_that_is_appended_counts() {
        let mut body = v1::Position { index: 7, ..Default::default() }.encode_to_vec();
        append_number(&mut body, 3, 0);
        assert_eq!(v1::Position::decode(body.as_slice()).unwrap().index, 0);
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_nothing_panics(body in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(copy) = edit(&body, 3, |payload| Ok(payload.to_vec())) {
                // Lengths may be written in more bytes than they need.
                prop_assert!(copy.len() <= body.len());
            }
        }
    }
}
