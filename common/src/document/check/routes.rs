//! Routes of both sides.

use std::collections::BTreeSet;

use super::{
    super::{
        Document,
        model::{PathMatch, PathType, Protocol, Retry, Route, RouteMatch, Timeouts},
        rules,
    },
    Check,
};

/// Conditions of `x-envoy-retry-on` and `x-envoy-retry-grpc-on` (Envoy's documentation of the router).
const RETRY_ON: [&str; 16] = [
    "5xx",
    "gateway-error",
    "reset",
    "reset-before-request",
    "connect-failure",
    "envoy-ratelimited",
    "retriable-4xx",
    "refused-stream",
    "http3-post-connect-failure",
    "cancelled",
    "deadline-exceeded",
    "internal",
    "resource-exhausted",
    "unavailable",
    "retriable-status-codes",
    "retriable-headers",
];

/// The largest weight of a backend, so that sums fit (32 bits).
const MAX_WEIGHT: u32 = 1_000_000;

/// Whose routes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Callers,
    Inbound,
}

impl Check<'_> {
    pub(super) fn routes(&mut self, document: &Document, side: Side) {
        let spec = &document.spec;
        let (list, routes) = match side {
            Side::Callers => ("spec.callers.routes", &spec.callers.routes),
            Side::Inbound => ("spec.inbound.routes", &spec.inbound.routes),
        };
        self.unique(
            routes.iter().enumerate().map(|(index, route)| (format!("{list}[{index}].name"), &*route.name)),
        );
        let mut earlier: Vec<(String, &RouteMatch)> = Vec::new();
        let everything = RouteMatch::default();
        for (index, route) in routes.iter().enumerate() {
            let field = format!("{list}[{index}]");
            self.word(&format!("{field}.name"), &route.name);
            for (number, of) in route.matches.iter().enumerate() {
                self.matches(&format!("{field}.matches[{number}]"), of);
            }
            self.action(document, side, &field, route);
            self.timeouts(&format!("{field}.timeouts"), &route.timeouts);
            if let Some(retry) = &route.retry {
                self.retry(&format!("{field}.retry"), retry, &route.timeouts);
            }
            self.rate_limits(&format!("{field}.rateLimits"), &route.rate_limits);
            self.hashes(&format!("{field}.hashPolicy"), &route.hash_policy);
            let own: Vec<&RouteMatch> =
                if route.matches.is_empty() { vec![&everything] } else { route.matches.iter().collect() };
            for (number, of) in own.iter().enumerate() {
                if let Some((name, _)) = earlier.iter().find(|(_, before)| covers(before, of)) {
                    let at = if route.matches.is_empty() {
                        field.clone()
                    } else {
                        format!("{field}.matches[{number}]")
                    };
                    let message = format!("the route {name:?} before it takes every such request");
                    self.find(rules::SHADOWED, &at, message, "put the more special route first");
                }
            }
            earlier.extend(own.into_iter().map(|of| (route.name.clone(), of)));
        }
        let budgets: BTreeSet<_> =
            routes.iter().filter_map(|route| route.retry.as_ref()?.budget_percent).collect();
        if side == Side::Callers && budgets.len() > 1 {
            let next = "write the same in all routes";
            self.find(
                rules::BUDGETS_DIFFER,
                list,
                "the retry budget is the service's, and not a route's",
                next,
            );
        }
    }

    fn action(&mut self, document: &Document, side: Side, field: &str, route: &Route) {
        let answers = [
            route.redirect.is_some(),
            route.direct_response.is_some(),
            !route.backend_refs.is_empty() || route.rewrite.is_some() || route.mirror.is_some(),
        ];
        if answers.iter().filter(|answer| **answer).count() > 1 {
            let next = "split the route, or leave all but one out";
            self.find(
                rules::TWO_ACTIONS,
                field,
                "a redirect, a direct response, and a backend exclude each other",
                next,
            );
        }
        let mut zero = !route.backend_refs.is_empty();
        let mut seen = BTreeSet::new();
        for (index, backend) in route.backend_refs.iter().enumerate() {
            let field = format!("{field}.backendRefs[{index}]");
            zero &= backend.weight() == 0;
            self.within(backend.weight, 0, MAX_WEIGHT, rules::BAD_WEIGHT, &format!("{field}.weight"));
            let name = match side {
                Side::Callers => &backend.subset,
                Side::Inbound => &backend.port,
            };
            if !seen.insert(name) {
                self.find(rules::DUPLICATE, &field, "a backend is there twice", "add their weights up");
            }
            match (side, &backend.subset, &backend.port) {
                (Side::Callers, _, Some(_)) => {
                    let next = "name a subset, or leave it out";
                    self.find(
                        rules::WRONG_SIDE,
                        &format!("{field}.port"),
                        "ports are of the inbound side",
                        next,
                    );
                }
                (Side::Inbound, Some(_), _) => {
                    let next = "name a port, or leave it out";
                    self.find(
                        rules::WRONG_SIDE,
                        &format!("{field}.subset"),
                        "subsets are of the callers' side",
                        next,
                    );
                }
                (Side::Callers, Some(subset), None)
                    if !document.spec.callers.subsets.contains_key(subset) =>
                {
                    let known: Vec<&str> = document.spec.callers.subsets.keys().map(String::as_str).collect();
                    let message = format!("there is no subset {subset:?}");
                    let there = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    let next = format!("define it in spec.callers.subsets; there are: {there}");
                    self.find(rules::NO_SUCH_SUBSET, &format!("{field}.subset"), message, next);
                }
                (Side::Inbound, None, Some(port))
                    if !document.spec.inbound.ports.is_empty()
                        && !document.spec.inbound.ports.iter().any(|of| of.name == *port) =>
                {
                    let message = format!("the platform has defined no port {port:?}");
                    let next = "ask the platform for it, or name one of spec.inbound.ports";
                    self.find(rules::NO_SUCH_PORT, &format!("{field}.port"), message, next);
                }
                _ => {}
            }
        }
        if zero {
            let field = format!("{field}.backendRefs");
            self.find(rules::ALL_ZERO, &field, "all weights are 0, so that nobody would answer", "raise one");
        }
        self.changes(field, route);
        if let Some(mirror) = &route.mirror {
            let field = format!("{field}.mirror");
            if side == Side::Inbound {
                self.find(rules::WRONG_SIDE, &field, "it is of the callers' side", "leave it out");
            } else if let Some(service) = &mirror.service {
                self.service(&format!("{field}.service"), service, mirror.subset.as_deref());
            } else if let Some(subset) = &mirror.subset
                && !document.spec.callers.subsets.contains_key(subset)
            {
                let message = format!("there is no subset {subset:?}");
                self.find(rules::NO_SUCH_SUBSET, &format!("{field}.subset"), message, "define it");
            }
        }
        if side == Side::Inbound && !route.hash_policy.is_empty() {
            let next = "leave it out";
            self.find(rules::WRONG_SIDE, &format!("{field}.hashPolicy"), "it is of the callers' side", next);
        }
    }

    fn changes(&mut self, field: &str, route: &Route) {
        for (name, changes) in
            [("requestHeaders", &route.request_headers), ("responseHeaders", &route.response_headers)]
        {
            if let Some(changes) = changes {
                self.header_changes(&format!("{field}.{name}"), changes);
            }
        }
        let prefix_like =
            |of: &RouteMatch| of.path.as_ref().is_none_or(|path| path.kind != PathType::RegularExpression);
        if let Some(rewrite) = &route.rewrite {
            let field = format!("{field}.rewrite");
            let paths = [rewrite.prefix.is_some(), rewrite.path.is_some(), rewrite.regex.is_some()];
            let one = paths.iter().filter(|given| **given).count() <= 1;
            let message = "prefix, path and regex exclude each other";
            self.ensure(one, rules::BAD_ACTION, &field, message, "keep one of them");
            self.ensure(
                rewrite.prefix.is_none() || route.matches.iter().all(prefix_like),
                rules::BAD_ACTION,
                &format!("{field}.prefix"),
                "a regular expression matches no prefix that could be replaced",
                "use regex",
            );
            for (name, path) in [("prefix", &rewrite.prefix), ("path", &rewrite.path)] {
                if let Some(path) = path {
                    self.path_text(&format!("{field}.{name}"), path);
                }
            }
            if let Some(regex) = &rewrite.regex {
                self.pattern(&format!("{field}.regex.pattern"), &regex.pattern);
                self.substitution(
                    &format!("{field}.regex.substitution"),
                    &regex.pattern,
                    &regex.substitution,
                );
            }
            if let Some(host) = &rewrite.host {
                self.host(&format!("{field}.host"), host);
            }
        }
        if let Some(redirect) = &route.redirect {
            let field = format!("{field}.redirect");
            let both = redirect.path.is_some() && redirect.prefix.is_some();
            self.ensure(!both, rules::BAD_ACTION, &field, "path and prefix exclude each other", "keep one");
            let other = redirect.scheme.is_some()
                || redirect.host.is_some()
                || redirect.port.is_some()
                || redirect.path.is_some()
                || redirect.prefix.is_some();
            let message = "it sends the client to where it is already";
            self.ensure(other, rules::BAD_ACTION, &field, message, "say what is other there");
            let known = redirect.status.is_none_or(|status| [301, 302, 303, 307, 308].contains(&status));
            let next = "write 301, 302, 303, 307 or 308";
            self.ensure(known, rules::BAD_ACTION, &format!("{field}.status"), "it is no redirect", next);
            self.ensure(
                redirect.prefix.is_none() || route.matches.iter().all(prefix_like),
                rules::BAD_ACTION,
                &format!("{field}.prefix"),
                "a regular expression matches no prefix that could be replaced",
                "use path",
            );
            for (name, path) in [("prefix", &redirect.prefix), ("path", &redirect.path)] {
                if let Some(path) = path {
                    self.path_text(&format!("{field}.{name}"), path);
                }
            }
            if let Some(host) = &redirect.host {
                self.host(&format!("{field}.host"), host);
            }
            self.ensure(redirect.port != Some(0), rules::BAD_ADDRESS, &field, "0 is no port", "leave it out");
        }
        if let Some(answer) = &route.direct_response {
            let field = format!("{field}.directResponse");
            self.within(Some(answer.status), 200, 599, rules::BAD_ACTION, &format!("{field}.status"));
            let short = answer.body.as_ref().is_none_or(|body| body.len() <= 4096);
            self.ensure(
                short,
                rules::BAD_ACTION,
                &format!("{field}.body"),
                "more than 4,096 bytes",
                "shorten it",
            );
        }
    }

    fn path_text(&mut self, field: &str, path: &str) {
        let valid = path.starts_with('/') && super::paths::printable(path) && !path.contains(['?', '#']);
        self.ensure(valid, rules::BAD_PATH, field, "it is no path", "write a path that begins with /");
    }

    /// Groups that the pattern has, and no other escapes (RE2's `CheckRewriteString`).
    fn substitution(&mut self, field: &str, pattern: &str, substitution: &str) {
        let groups = pattern.replace("\\(", "").replace("(?", "").matches('(').count();
        let mut letters = substitution.chars();
        let mut valid = super::paths::printable(substitution);
        while let Some(letter) = letters.next() {
            if letter == '\\' {
                valid &= match letters.next() {
                    Some('\\') => true,
                    Some(digit) => digit.to_digit(10).is_some_and(|group| group as usize <= groups),
                    None => false,
                };
            }
        }
        let next = "write groups of the pattern as \\1, and a backslash as \\\\";
        self.ensure(valid, rules::BAD_PATTERN, field, "it names what the pattern does not have", next);
    }

    pub(super) fn timeouts(&mut self, field: &str, timeouts: &Timeouts) {
        let limited = |time: Option<super::super::model::Duration>| {
            time.map(super::super::model::Duration::as_millis).filter(|millis| *millis > 0)
        };
        if let (Some(all), Some(each)) = (limited(timeouts.request), limited(timeouts.backend_request))
            && each > all
        {
            let field = format!("{field}.backendRequest");
            let message = "one try may not take longer than all of them";
            self.find(rules::LONGER_THAN_ALL, &field, message, "write at most what request says");
        }
    }

    fn retry(&mut self, field: &str, retry: &Retry, timeouts: &Timeouts) {
        self.within(Some(retry.attempts), 0, 100, rules::BAD_RETRY, &format!("{field}.attempts"));
        for (index, condition) in retry.retry_on.iter().enumerate() {
            let status = condition.parse::<u16>().is_ok_and(|status| (100..600).contains(&status));
            let known = status || RETRY_ON.contains(&&**condition);
            let message = format!("{condition:?} is no condition");
            let next = format!("write a status in quotes, or one of: {}", RETRY_ON.join(", "));
            self.ensure(known, rules::BAD_RETRY, &format!("{field}.retryOn[{index}]"), &message, &next);
        }
        if let Some(backoff) = &retry.backoff {
            let base = backoff.base.as_millis();
            let valid = base >= 1 && backoff.max.is_none_or(|max| max.as_millis() >= base);
            let next = "base is at least 1ms, and max at least base";
            self.ensure(valid, rules::BAD_RETRY, &format!("{field}.backoff"), "Envoy refuses it", next);
        }
        let all = timeouts.request.map_or(0, super::super::model::Duration::as_millis);
        let each = timeouts.backend_request.map_or(0, super::super::model::Duration::as_millis);
        if retry.attempts > 0 && all > 0 && all == each {
            let message = "the first try may take all the time there is";
            self.find(rules::RETRY_NOTHING, field, message, "make timeouts.backendRequest shorter");
        }
    }

    pub(super) fn requests_only(&mut self, document: &Document) {
        let callers = &document.spec.callers;
        let tcp = callers.protocol.is_some_and(|protocol| !Protocol::is_http(protocol));
        let bare = callers.routes.iter().all(|route| {
            let plain = Route {
                name: route.name.clone(),
                backend_refs: route.backend_refs.clone(),
                ..Route::default()
            };
            *route == plain
        });
        if tcp && (callers.routes.len() > 1 || !bare) {
            let message = "bytes have no requests to match: one route with backendRefs alone";
            self.find(rules::NO_ROUTES, "spec.callers.routes", message, "leave all else out");
        }
    }
}

/// Whether every request that the second fits, the first does, as far as that is easy to see.
fn covers(first: &RouteMatch, second: &RouteMatch) -> bool {
    let path = match (&first.path, &second.path) {
        (None, _) => true,
        (Some(first), second) => covers_path(first, second.as_ref()),
    };
    path && first.method.is_none_or(|method| second.method == Some(method))
        && first.headers.iter().all(|header| second.headers.contains(header))
        && first.query_params.iter().all(|parameter| second.query_params.contains(parameter))
}

fn covers_path(first: &PathMatch, second: Option<&PathMatch>) -> bool {
    let everything = first.kind == PathType::PathPrefix && first.value == "/";
    let Some(second) = second else { return everything };
    if everything || first == second {
        return true;
    }
    let below = second.value.strip_prefix(&first.value);
    first.kind == PathType::PathPrefix
        && second.kind != PathType::RegularExpression
        && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
