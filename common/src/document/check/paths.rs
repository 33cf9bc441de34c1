//! Paths, headers, hosts and what else is text in a request.

use super::{
    super::{
        model::{HeaderChanges, MatchType, PathMatch, PathType, RouteMatch},
        rules,
    },
    Check, patterns,
};

impl Check<'_> {
    pub(super) fn matches(&mut self, field: &str, of: &RouteMatch) {
        if let Some(path) = &of.path {
            self.path(&format!("{field}.path"), path);
        }
        for (index, header) in of.headers.iter().enumerate() {
            let field = format!("{field}.headers[{index}]");
            self.header_name(&format!("{field}.name"), &header.name, true);
            self.value(&field, header.kind, header.value.as_deref());
        }
        for (index, parameter) in of.query_params.iter().enumerate() {
            let field = format!("{field}.queryParams[{index}]");
            let named = !parameter.name.is_empty() && parameter.name.len() <= 1024;
            self.ensure(named, rules::BAD_NAME, &format!("{field}.name"), "it has no name", "name it");
            self.value(&field, parameter.kind, parameter.value.as_deref());
        }
    }

    pub(super) fn path(&mut self, field: &str, path: &PathMatch) {
        let field = format!("{field}.value");
        if path.kind == PathType::RegularExpression {
            self.pattern(&field, &path.value);
            return;
        }
        let next = "write a path that begins with /, without ? and #";
        self.ensure(
            path.value.starts_with('/') && !path.value.contains(['?', '#']) && printable(&path.value),
            rules::BAD_PATH,
            &field,
            "it is no path",
            next,
        );
        let slash = path.kind == PathType::PathPrefix && path.value.len() > 1 && path.value.ends_with('/');
        let next = format!("write {}", path.value.trim_end_matches('/'));
        self.ensure(!slash, rules::BAD_PATH, &field, "a prefix by segments does not end with /", &next);
    }

    fn value(&mut self, field: &str, kind: MatchType, value: Option<&str>) {
        let at = format!("{field}.value");
        match (kind, value) {
            (MatchType::Present, None) => {}
            (MatchType::Present, Some(_)) => {
                self.find(rules::BAD_HEADER, &at, "with type Present there is no value", "leave it out");
            }
            (_, None) => self.find(rules::BAD_HEADER, &at, "there is no value to compare with", "add it"),
            (MatchType::RegularExpression, Some(value)) => self.pattern(&at, value),
            (MatchType::Exact | MatchType::Prefix, Some(value)) => {
                let text = printable(value) && (kind == MatchType::Exact || !value.is_empty());
                self.ensure(text, rules::BAD_HEADER, &at, "Envoy cannot compare with it", "write plain text");
            }
        }
    }

    pub(super) fn pattern(&mut self, field: &str, pattern: &str) {
        if let Some(fault) = patterns::fault(pattern) {
            self.find(rules::BAD_PATTERN, field, fault, "simplify it, or match by prefix");
        }
    }

    pub(super) fn header_name(&mut self, field: &str, name: &str, matching: bool) {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let own = matching && matches!(name, ":authority" | ":scheme" | ":path" | ":method");
        let plain = !name.is_empty() && name.len() <= 1024 && name.bytes().all(token);
        let host = !matching && name.eq_ignore_ascii_case("host");
        let next = if host { "use rewrite.host" } else { "write the name of a header" };
        self.ensure(
            (plain || own) && !host,
            rules::BAD_HEADER,
            field,
            "it cannot be changed or compared",
            next,
        );
    }

    pub(super) fn header_changes(&mut self, field: &str, changes: &HeaderChanges) {
        for (list, headers) in [("set", &changes.set), ("add", &changes.add)] {
            for (index, header) in headers.iter().enumerate() {
                let field = format!("{field}.{list}[{index}]");
                self.header_name(&format!("{field}.name"), &header.name, false);
                let short = header.value.len() <= 16_384;
                let text = printable(&header.value) && short;
                let at = format!("{field}.value");
                self.ensure(text, rules::BAD_HEADER, &at, "it can be no header's value", "write plain text");
            }
        }
        for (index, name) in changes.remove.iter().enumerate() {
            self.header_name(&format!("{field}.remove[{index}]"), name, false);
        }
    }

    pub(super) fn host(&mut self, field: &str, host: &str) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let valid = !host.is_empty() && host.len() <= 255 && host.bytes().all(plain);
        self.ensure(valid, rules::BAD_NAME, field, "it is no host", "write a host name or an address");
    }
}

/// Text that a header may have: visible ASCII and spaces.
pub(super) fn printable(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}
