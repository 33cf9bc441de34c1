//! The document's values as Envoy's.

use tower_common::document::model::{Duration, PathMatch, PathType, Percent};
use tower_proto::envoy::{
    envoy::{
        config::core::v3::{Address, address},
        config::core::v3::{
            DataSource, SocketAddress, data_source::Specifier, socket_address::PortSpecifier,
        },
        r#type::{
            matcher::v3::{RegexMatcher, StringMatcher, string_matcher::MatchPattern},
            v3::{FractionalPercent, Percent as EnvoyPercent, fractional_percent::DenominatorType},
        },
    },
    google::protobuf::{self, UInt32Value, UInt64Value},
};

/// A time.
pub(super) fn duration(of: Duration) -> protobuf::Duration {
    millis(of.as_millis())
}

/// So many milliseconds.
pub(super) fn millis(of: u64) -> protobuf::Duration {
    let nanos = (of % 1000) as i32 * 1_000_000;
    protobuf::Duration { seconds: (of / 1000).try_into().unwrap_or(i64::MAX), nanos }
}

/// A number that may be absent.
pub(super) fn number(of: u32) -> Option<UInt32Value> {
    Some(UInt32Value { value: of })
}

/// A large number that may be absent.
pub(super) fn large(of: u64) -> Option<UInt64Value> {
    Some(UInt64Value { value: of })
}

/// So many of 100.
pub(super) fn percent(of: u32) -> EnvoyPercent {
    EnvoyPercent { value: of.into() }
}

/// A part of all, exactly.
pub(super) fn fraction(of: Percent) -> FractionalPercent {
    FractionalPercent { numerator: of.basis_points(), denominator: DenominatorType::TenThousand.into() }
}

/// A text in the message itself.
pub(super) fn inline(text: &str) -> DataSource {
    DataSource { specifier: Some(Specifier::InlineString(text.to_owned())), ..Default::default() }
}

/// A file of the host.
pub(super) fn file(path: &str) -> DataSource {
    DataSource { specifier: Some(Specifier::Filename(path.to_owned())), ..Default::default() }
}

/// An address of IPv4 or IPv6.
pub(super) fn address(ip: &str, port: u16) -> Address {
    let address = SocketAddress {
        address: ip.to_owned(),
        port_specifier: Some(PortSpecifier::PortValue(port.into())),
        ..Default::default()
    };
    Address { address: Some(address::Address::SocketAddress(address)) }
}

/// The same text.
pub(super) fn exactly(text: &str) -> StringMatcher {
    matcher(MatchPattern::Exact(text.to_owned()))
}

/// A text that begins so.
pub(super) fn beginning(text: &str) -> StringMatcher {
    matcher(MatchPattern::Prefix(text.to_owned()))
}

/// A text of which the whole fits a regular expression.
pub(super) fn fitting(pattern: &str) -> StringMatcher {
    matcher(MatchPattern::SafeRegex(regex(pattern)))
}

/// A regular expression in RE2's syntax.
pub(super) fn regex(pattern: &str) -> RegexMatcher {
    RegexMatcher { regex: pattern.to_owned(), ..Default::default() }
}

fn matcher(pattern: MatchPattern) -> StringMatcher {
    StringMatcher { match_pattern: Some(pattern), ..Default::default() }
}

/// A prefix without the slash at its end; `None` if it is every path's.
pub(super) fn segments(prefix: &str) -> Option<&str> {
    let prefix = prefix.trim_end_matches('/');
    (!prefix.is_empty()).then_some(prefix)
}

/// The paths that fit, each of which suffices.
pub(super) fn paths(of: &PathMatch) -> Vec<StringMatcher> {
    match (of.kind, segments(&of.value)) {
        (PathType::Exact, _) => vec![exactly(&of.value)],
        (PathType::RegularExpression, _) => vec![fitting(&of.value)],
        (PathType::PathPrefix, None) => vec![beginning("/")],
        (PathType::PathPrefix, Some(prefix)) => vec![exactly(prefix), beginning(&format!("{prefix}/"))],
    }
}
