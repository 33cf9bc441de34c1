//! Types only: Tower's own wire format ([`v1`]) and Envoy's v3 API ([`envoy`]).
//!
//! This is the one crate of the workspace that depends on `envoy-types`, and it holds no logic.

/// Envoy's v3 API, and the Google well-known types that it uses.
pub use envoy_types::pb as envoy;

/// What the messages of Envoy's v3 API are made of: a serialized `google.protobuf.FileDescriptorSet`, for
/// those that have to read messages of any type. It is made from the proto files of `envoy-types` by the test
/// that compares them.
pub const ENVOY_DESCRIPTORS: &[u8] = include_bytes!("../envoy.binpb");

/// `tower.v1`: the resources of the store, and the stream between Tower and Beacons.
#[allow(missing_docs, unreachable_pub, reason = "generated from the documented proto files")]
#[allow(clippy::all, clippy::needless_pass_by_value, clippy::wildcard_imports, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("tower.v1");
}
