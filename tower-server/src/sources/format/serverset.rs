//! Twitter ServerSets, as Finagle and Aurora write them: members are named `member_<sequence>`, in JSON or,
//! by older writers, in Thrift's binary form; `vector_<sequence>` gives weights to members; all other children
//! are something else. A member that is there is alive unless it says otherwise: the registration is the sign
//! of life, and the status is optional with its own authors.

mod binary;
mod member;
mod vector;

use super::{DecodeError, Decoded};

const MEMBER: &str = "member_";
const VECTOR: &str = "vector_";

pub(super) fn is_member(name: &str) -> bool {
    name.starts_with(MEMBER) || is_vector(name)
}

pub(super) fn is_vector(name: &str) -> bool {
    name.starts_with(VECTOR)
}

/// Whether data are in Thrift's binary form: they begin with the first field, a structure.
pub(super) fn is_binary(data: &[u8]) -> bool {
    data.starts_with(&[0x0c, 0x00, 0x01])
}

pub(super) fn decode(name: &str, data: &[u8]) -> Result<Decoded, DecodeError> {
    if is_vector(name) {
        vector::decode(data)
    } else if is_binary(data) {
        binary::decode(data)
    } else {
        member::decode(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_and_vectors_are_members() {
        for name in ["member_0000000001", "vector_0000000001"] {
            assert!(is_member(name), "{name}");
        }
        for name in ["lock", "", "Member_1", "vectors"] {
            assert!(!is_member(name), "{name}");
        }
    }
}
