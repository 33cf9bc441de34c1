//! Versions.

use tower_common::api::version::Version;
use tower_proto::v1;

use super::{author, hex, some};
use crate::registry::Service;

/// A version of a service.
pub fn version(name: &str, service: &Service, record: &v1::VersionRecord) -> Version {
    let uploaded = record.uploaded.clone().unwrap_or_default();
    let stamp = record.stamp.clone().unwrap_or_default();
    Version {
        version: format!("{name}@{}", uploaded.number),
        number: uploaded.number,
        hash: hex(&uploaded.hash),
        owner: some(&uploaded.owner),
        approved: record.approved.is_some(),
        retired: record.retired.is_some(),
        active: service.versions_in_use().contains(&uploaded.number),
        author: author(&stamp),
        reason: some(&stamp.reason),
        uploaded_unix_ms: stamp.time_ms,
        index: stamp.index,
    }
}
