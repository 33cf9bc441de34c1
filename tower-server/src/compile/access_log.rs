//! What is written about requests and connections.

use tower_common::{
    document::model::{AccessLog, AccessLogMode},
    resource::Version,
};
use tower_proto::envoy::{
    envoy::{
        config::{
            accesslog::v3::{
                self, AccessLogFilter, ComparisonFilter, ExtensionFilter, OrFilter, ResponseFlagFilter,
                StatusCodeFilter, access_log, access_log_filter::FilterSpecifier, comparison_filter::Op,
                extension_filter,
            },
            core::v3::{RuntimeUInt32, SubstitutionFormatString, substitution_format_string::Format},
        },
        extensions::access_loggers::{
            file::v3::{FileAccessLog, file_access_log},
            filters::cel::v3::ExpressionFilter,
            stream::v3::{StdoutAccessLog, stdout_access_log},
        },
    },
    google::protobuf::{Any, Struct},
};

use super::{
    messages::{any, canonical},
    metadata::{LOG, LOG_MODE, NAMESPACE, text_value},
};

/// A line about a request, and about a connection, if the document does not say another.
const REQUEST: [(&str, &str); 14] = [
    ("time", "%START_TIME%"),
    ("method", "%REQ(:METHOD)%"),
    ("host", "%REQ(:AUTHORITY)%"),
    ("path", "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"),
    ("protocol", "%PROTOCOL%"),
    ("status", "%RESPONSE_CODE%"),
    ("flags", "%RESPONSE_FLAGS%"),
    ("details", "%RESPONSE_CODE_DETAILS%"),
    ("duration_ms", "%DURATION%"),
    ("request_id", "%REQ(X-REQUEST-ID)%"),
    ("route", "%ROUTE_NAME%"),
    ("upstream_cluster", "%UPSTREAM_CLUSTER%"),
    ("upstream_host", "%UPSTREAM_HOST%"),
    ("caller", "%DOWNSTREAM_PEER_URI_SAN%"),
];
const CONNECTION: [(&str, &str); 8] = [
    ("time", "%START_TIME%"),
    ("flags", "%RESPONSE_FLAGS%"),
    ("duration_ms", "%DURATION%"),
    ("bytes_received", "%BYTES_RECEIVED%"),
    ("bytes_sent", "%BYTES_SENT%"),
    ("upstream_cluster", "%UPSTREAM_CLUSTER%"),
    ("upstream_host", "%UPSTREAM_HOST%"),
    ("caller", "%DOWNSTREAM_PEER_URI_SAN%"),
];

/// The log of a listener in front of the application. `requests`: of requests; otherwise of connections.
pub(super) fn inbound(of: &AccessLog, requests: bool) -> Vec<v3::AccessLog> {
    let filter = match of.mode.unwrap_or_default() {
        AccessLogMode::Off => return Vec::new(),
        AccessLogMode::All => None,
        AccessLogMode::Errors => Some(errors(requests)),
    };
    let line = if requests { line(of, &REQUEST) } else { line(of, &CONNECTION) };
    vec![logger(of, line, filter)]
}

/// What the routes of callers say of the log that is theirs.
pub(super) fn fields(of: &AccessLog) -> Option<[(&'static str, String); 2]> {
    let mode = match of.mode.unwrap_or_default() {
        AccessLogMode::Off => return None,
        AccessLogMode::Errors => "errors",
        AccessLogMode::All => "all",
    };
    Some([(LOG, key(of)), (LOG_MODE, mode.to_owned())])
}

/// The log itself, which is the egress listener's: one for each form of lines and file, whatever services use
/// it, so that a service that begins to be logged, or ends, changes routes alone.
pub(super) fn callers(of: &AccessLog) -> Option<Vec<u8>> {
    fields(of)?;
    let key = key(of);
    let own = |field: &str| format!("xds.route_metadata.filter_metadata['{NAMESPACE}']['{field}']");
    let (log, mode) = (own(LOG), own(LOG_MODE));
    let expression =
        format!("{log} == '{key}' && ({mode} == 'all' || response.code >= 500 || response.code == 0)");
    let filter = ExpressionFilter { expression, ..Default::default() };
    let filter = FilterSpecifier::ExtensionFilter(ExtensionFilter {
        name: "envoy.access_loggers.extension_filters.cel".to_owned(),
        config_type: Some(extension_filter::ConfigType::TypedConfig(any(&filter))),
    });
    let filter = AccessLogFilter { filter_specifier: Some(filter) };
    Some(canonical(&logger(of, line(of, &REQUEST), Some(filter))))
}

/// What tells a log from others: its file and the form of its lines.
fn key(of: &AccessLog) -> String {
    Version::of(&canonical(&logger(of, line(of, &REQUEST), None))).to_string()
}

fn line(of: &AccessLog, default: &[(&str, &str)]) -> SubstitutionFormatString {
    let fields = if of.fields.is_empty() {
        default.iter().map(|(name, value)| ((*name).to_owned(), text_value(value))).collect()
    } else {
        of.fields.iter().map(|(name, value)| (name.clone(), text_value(value))).collect()
    };
    SubstitutionFormatString { format: Some(Format::JsonFormat(Struct { fields })), ..Default::default() }
}

fn logger(of: &AccessLog, line: SubstitutionFormatString, filter: Option<AccessLogFilter>) -> v3::AccessLog {
    let (name, config): (_, Any) = match &of.path {
        Some(path) => (
            "envoy.access_loggers.file",
            any(&FileAccessLog {
                path: path.clone(),
                access_log_format: Some(file_access_log::AccessLogFormat::LogFormat(line)),
            }),
        ),
        None => (
            "envoy.access_loggers.stdout",
            any(&StdoutAccessLog {
                access_log_format: Some(stdout_access_log::AccessLogFormat::LogFormat(line)),
            }),
        ),
    };
    v3::AccessLog {
        name: name.to_owned(),
        filter,
        config_type: Some(access_log::ConfigType::TypedConfig(config)),
    }
}

/// What was answered with 500 or above, or not at all. Of connections: what Envoy itself found wrong.
fn errors(requests: bool) -> AccessLogFilter {
    let status = |op: Op, value| AccessLogFilter {
        filter_specifier: Some(FilterSpecifier::StatusCodeFilter(StatusCodeFilter {
            comparison: Some(ComparisonFilter {
                op: op.into(),
                value: Some(RuntimeUInt32 {
                    default_value: value,
                    // Envoy insists on a name by which an operator could change it.
                    runtime_key: format!("tower.access_log.status_{value}"),
                }),
            }),
        })),
    };
    let specifier = if requests {
        let filters = vec![status(Op::Ge, 500), status(Op::Eq, 0)];
        FilterSpecifier::OrFilter(OrFilter { filters })
    } else {
        FilterSpecifier::ResponseFlagFilter(ResponseFlagFilter::default())
    };
    AccessLogFilter { filter_specifier: Some(specifier) }
}

#[cfg(test)]
mod tests;
