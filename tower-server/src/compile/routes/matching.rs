//! Which requests a route is for.

use tower_common::document::model::{
    HeaderMatch, MatchType, Method, PathMatch, PathType, QueryMatch, RouteMatch,
};
use tower_proto::envoy::envoy::{
    config::route::v3::{
        self, HeaderMatcher, QueryParameterMatcher, header_matcher::HeaderMatchSpecifier,
        query_parameter_matcher::QueryParameterMatchSpecifier, route_match::PathSpecifier,
    },
    r#type::matcher::v3::StringMatcher,
};

use crate::compile::convert::{beginning, exactly, fitting, regex, segments};

/// Envoy's match.
pub(super) fn one(of: &RouteMatch) -> v3::RouteMatch {
    let method = of.method.map(method);
    v3::RouteMatch {
        path_specifier: Some(path(of.path.as_ref())),
        headers: method.into_iter().chain(of.headers.iter().map(header)).collect(),
        query_parameters: of.query_params.iter().map(query).collect(),
        ..Default::default()
    }
}

/// A method, as a header.
pub(in crate::compile) fn method(of: Method) -> HeaderMatcher {
    let name = match of {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Patch => "PATCH",
    };
    HeaderMatcher {
        name: ":method".to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(exactly(name))),
        ..Default::default()
    }
}

fn path(of: Option<&PathMatch>) -> PathSpecifier {
    let every = || PathSpecifier::Prefix("/".to_owned());
    let Some(of) = of else { return every() };
    match of.kind {
        PathType::Exact => PathSpecifier::Path(of.value.clone()),
        PathType::RegularExpression => PathSpecifier::SafeRegex(regex(&of.value)),
        // Envoy's own prefix by segments has no slash at its end.
        PathType::PathPrefix => segments(&of.value)
            .map_or_else(every, |prefix| PathSpecifier::PathSeparatedPrefix(prefix.to_owned())),
    }
}

fn header(of: &HeaderMatch) -> HeaderMatcher {
    HeaderMatcher {
        name: of.name.clone(),
        header_match_specifier: Some(
            value(of.kind, of.value.as_deref())
                .map_or(HeaderMatchSpecifier::PresentMatch(true), HeaderMatchSpecifier::StringMatch),
        ),
        ..Default::default()
    }
}

fn query(of: &QueryMatch) -> QueryParameterMatcher {
    QueryParameterMatcher {
        name: of.name.clone(),
        query_parameter_match_specifier: Some(value(of.kind, of.value.as_deref()).map_or(
            QueryParameterMatchSpecifier::PresentMatch(true),
            QueryParameterMatchSpecifier::StringMatch,
        )),
    }
}

/// What a value is compared with; `None`: whatever it is.
fn value(kind: MatchType, of: Option<&str>) -> Option<StringMatcher> {
    let of = of.unwrap_or_default();
    match kind {
        MatchType::Exact => Some(exactly(of)),
        MatchType::Prefix => Some(beginning(of)),
        MatchType::RegularExpression => Some(fitting(of)),
        MatchType::Present => None,
    }
}
