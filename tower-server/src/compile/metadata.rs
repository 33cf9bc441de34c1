//! What routes say about themselves, for filters and logs.

use tower_proto::envoy::{
    envoy::config::core::v3::Metadata,
    google::protobuf::{Struct, Value, value::Kind},
};

/// Whose metadata these are.
pub(super) const NAMESPACE: &str = "tower";

/// The name of the limit that is the route's.
pub(super) const LIMIT: &str = "limit";

/// The log in which its requests are written about, and which of them.
pub(super) const LOG: &str = "log";
pub(super) const LOG_MODE: &str = "log_mode";

/// Metadata of these texts; `None` if there are none.
pub(super) fn of(texts: &[(&str, &str)]) -> Option<Metadata> {
    let fields = texts.iter().map(|(key, text)| ((*key).to_owned(), text_value(text))).collect();
    let metadata = || Metadata {
        filter_metadata: [(NAMESPACE.to_owned(), Struct { fields })].into(),
        ..Default::default()
    };
    (!texts.is_empty()).then(metadata)
}

/// A text as a JSON value.
pub(super) fn text_value(text: &str) -> Value {
    Value { kind: Some(Kind::StringValue(text.to_owned())) }
}
