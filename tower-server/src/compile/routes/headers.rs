//! What is changed of headers.

use tower_common::document::model::{Header, HeaderChanges};
use tower_proto::envoy::envoy::config::core::v3::{
    HeaderValue, HeaderValueOption, header_value_option::HeaderAppendAction,
};

/// What is set, and what is added. Envoy removes first, then overwrites, then appends, whatever their order.
pub(super) fn added(of: &HeaderChanges) -> Vec<HeaderValueOption> {
    let set = of.set.iter().map(|header| one(header, HeaderAppendAction::OverwriteIfExistsOrAdd));
    let add = of.add.iter().map(|header| one(header, HeaderAppendAction::AppendIfExistsOrAdd));
    set.chain(add).collect()
}

fn one(of: &Header, action: HeaderAppendAction) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue {
            key: of.name.clone(),
            // Envoy would take `%` for the beginning of one of its commands.
            value: of.value.replace('%', "%%"),
            ..Default::default()
        }),
        append_action: action.into(),
        // Envoy would leave out an empty one.
        keep_empty_value: true,
        ..Default::default()
    }
}
