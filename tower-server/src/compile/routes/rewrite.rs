//! Other paths: in what is sent on, and in where a client is sent.

use tower_common::document::model::{PathMatch, PathType, Redirect, Rewrite, Scheme};
use tower_proto::envoy::envoy::{
    config::route::v3::{
        RedirectAction, RouteAction,
        redirect_action::{PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier},
        route_action::HostRewriteSpecifier,
    },
    r#type::matcher::v3::RegexMatchAndSubstitute,
};

use crate::compile::convert::{regex, segments};

/// How a prefix is replaced.
enum Replacement {
    /// In Envoy's plain words.
    Prefix(String),
    /// By a pattern, where plain words would leave two slashes, or none.
    Pattern(RegexMatchAndSubstitute),
}

/// Writes into an action what is sent on.
pub(super) fn apply(of: &Rewrite, matched: Option<&PathMatch>, action: &mut RouteAction) {
    if let Some(with) = &of.prefix {
        match replace(matched, with) {
            Replacement::Prefix(prefix) => action.prefix_rewrite = prefix,
            Replacement::Pattern(pattern) => action.regex_rewrite = Some(pattern),
        }
    } else if let Some(path) = &of.path {
        action.regex_rewrite = Some(pattern("^/.*$", &literally(path)));
    } else if let Some(of) = &of.regex {
        action.regex_rewrite = Some(pattern(&of.pattern, &of.substitution));
    }
    action.host_rewrite_specifier = of.host.clone().map(HostRewriteSpecifier::HostRewriteLiteral);
}

/// Where a client is sent.
pub(super) fn redirect(of: &Redirect, matched: Option<&PathMatch>) -> RedirectAction {
    let path = match (&of.path, &of.prefix) {
        (Some(path), _) => Some(PathRewriteSpecifier::PathRedirect(path.clone())),
        (None, Some(with)) => Some(match replace(matched, with) {
            Replacement::Prefix(prefix) => PathRewriteSpecifier::PrefixRewrite(prefix),
            Replacement::Pattern(pattern) => PathRewriteSpecifier::RegexRewrite(pattern),
        }),
        (None, None) => None,
    };
    let scheme = of.scheme.map(|scheme| match scheme {
        Scheme::Http => SchemeRewriteSpecifier::SchemeRedirect("http".to_owned()),
        Scheme::Https => SchemeRewriteSpecifier::HttpsRedirect(true),
    });
    let response_code = match of.status {
        Some(301) => RedirectResponseCode::MovedPermanently,
        Some(303) => RedirectResponseCode::SeeOther,
        Some(307) => RedirectResponseCode::TemporaryRedirect,
        Some(308) => RedirectResponseCode::PermanentRedirect,
        Some(_) | None => RedirectResponseCode::Found,
    };
    RedirectAction {
        host_redirect: of.host.clone().unwrap_or_default(),
        port_redirect: of.port.map_or(0, u32::from),
        response_code: response_code.into(),
        scheme_rewrite_specifier: scheme,
        path_rewrite_specifier: path,
        ..Default::default()
    }
}

/// What takes the place of what the match matched.
fn replace(matched: Option<&PathMatch>, with: &str) -> Replacement {
    let (kind, value) = matched.map_or((PathType::PathPrefix, "/"), |path| (path.kind, path.value.as_str()));
    match kind {
        PathType::Exact | PathType::RegularExpression => Replacement::Prefix(with.to_owned()),
        PathType::PathPrefix => match (segments(value), segments(with)) {
            // `/a` under `/x` for `/`: the slash that was replaced comes back.
            (None, Some(with)) => Replacement::Prefix(format!("{with}/")),
            (None, None) => Replacement::Prefix("/".to_owned()),
            (Some(_), Some(with)) => Replacement::Prefix(with.to_owned()),
            // `/x/a` without `/x` is `/a`, not `//a`, and `/x` is `/`.
            (Some(prefix), None) => Replacement::Pattern(pattern(&format!("^{}/?", quoted(prefix)), "/")),
        },
    }
}

fn pattern(pattern: &str, substitution: &str) -> RegexMatchAndSubstitute {
    RegexMatchAndSubstitute { pattern: Some(regex(pattern)), substitution: substitution.to_owned() }
}

/// A text in which nothing stands for a group.
fn literally(text: &str) -> String {
    text.replace('\\', r"\\")
}

/// A regular expression that fits this text alone.
fn quoted(text: &str) -> String {
    let quote = |letter: char| {
        let special = letter.is_ascii_punctuation() && !matches!(letter, '/' | '_' | '-');
        special.then_some('\\').into_iter().chain([letter])
    };
    text.chars().flat_map(quote).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(matched: Option<&str>, with: &str, expected: &str) {
        let matched = matched.map(|value| PathMatch { value: value.into(), ..PathMatch::default() });
        let shown = match replace(matched.as_ref(), with) {
            Replacement::Prefix(prefix) => prefix,
            Replacement::Pattern(of) => format!("{} -> {}", of.pattern.unwrap().regex, of.substitution),
        };
        assert_eq!(shown, expected, "{matched:?} {with}");
    }

    #[test]
    fn a_prefix_is_replaced_by_segments() {
        check(Some("/a"), "/b", "/b");
        check(Some("/a/"), "/b/", "/b");
        check(None, "/b", "/b/");
        check(Some("/"), "/", "/");
        check(Some("/v1.0/a-b"), "/", r"^/v1\.0/a-b/? -> /");
    }
}
