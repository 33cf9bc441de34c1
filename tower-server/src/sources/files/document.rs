//! What a file of a folder may contain: the endpoints of one service. A file is used whole or not at all,
//! so errors name line and field.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_saphyr::Spanned;
use tower_proto::v1::endpoint::State;

use crate::sources::{
    address::Host,
    format::Registration,
    model::{MAX_MEMBERS, check_service_name},
};

/// Larger files are refused before they are parsed.
pub(super) const MAX_FILE_BYTES: u64 = 4 << 20;

/// A file, checked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    pub(super) service: String,
    pub(super) registrations: Vec<Registration>,
}

/// Why a file cannot be used. The caller knows its path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("line {line}: {problem}")]
    Syntax { line: u64, problem: String },
    #[error("line {line}: field {field:?}: {problem}")]
    Field { line: u64, field: String, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    service: Spanned<String>,
    #[serde(default)]
    endpoints: Vec<Spanned<Endpoint>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    address: Spanned<String>,
    port: Spanned<u32>,
    #[serde(default)]
    port_name: Option<Spanned<String>>,
    #[serde(default)]
    zone: String,
    #[serde(default)]
    region: String,
    #[serde(default)]
    sub_zone: String,
    #[serde(default)]
    weight: Option<Spanned<f64>>,
    #[serde(default)]
    state: Word,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Word {
    #[default]
    Up,
    Draining,
    Degraded,
    NotReady,
    Down,
}

impl Document {
    pub(super) fn parse(text: &str) -> Result<Self, DocumentError> {
        let options = serde_saphyr::options! {
            with_snippet: false,
            budget: serde_saphyr::budget! {
                // An endpoint in full, with a few labels, has about 40 nodes and as many events.
                max_nodes: MAX_MEMBERS * 64,
                max_events: MAX_MEMBERS * 128,
                max_documents: 1,
            },
        };
        // The parser's own errors do not tell the field.
        let mut track = serde_path_to_error::Track::new();
        let contents = serde_saphyr::with_deserializer_from_str_with_options(text, options, |parser| {
            Contents::deserialize(serde_path_to_error::Deserializer::new(parser, &mut track))
        });
        let contents = contents.map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            let problem = error.to_string();
            // `Spanned` shows as a level of its own.
            let path = track.path().to_string().replace("].value", "]");
            match path.trim_end_matches(".value") {
                "." => DocumentError::Syntax { line, problem },
                field => DocumentError::Field { line, field: field.to_owned(), problem },
            }
        })?;
        check_service_name(&contents.service.value)
            .map_err(|error| field(&contents.service, "service", error.to_string()))?;
        if contents.endpoints.len() > MAX_MEMBERS {
            let problem = format!("{} endpoints, more than {MAX_MEMBERS}", contents.endpoints.len());
            return Err(field(&contents.endpoints[MAX_MEMBERS], "endpoints", problem));
        }
        let mut seen = BTreeSet::new();
        let mut registrations = Vec::with_capacity(contents.endpoints.len());
        for (number, endpoint) in contents.endpoints.iter().enumerate() {
            let registration = endpoint.value.check(number)?;
            if !seen.insert((registration.host.clone(), registration.port, registration.port_name.clone())) {
                let problem = "the same address, port and port name as an endpoint before it";
                return Err(field(endpoint, &format!("endpoints[{number}]"), problem));
            }
            registrations.push(registration);
        }
        Ok(Self { service: contents.service.value, registrations })
    }
}

impl Endpoint {
    fn check(&self, number: usize) -> Result<Registration, DocumentError> {
        let name = |field: &str| format!("endpoints[{number}].{field}");
        let text = self.address.value.as_str();
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        let host = Host::parse(bare)
            .map_err(|problem| field(&self.address, &name("address"), format!("{text:?}: {problem}")))?;
        let port = u16::try_from(self.port.value).ok().filter(|port| *port != 0).ok_or_else(|| {
            field(&self.port, &name("port"), format!("{} is not a number from 1 to 65535", self.port.value))
        })?;
        let mut registration = Registration::new(host, port);
        if let Some(port_name) = &self.port_name {
            if port_name.value.chars().any(char::is_control) {
                return Err(field(port_name, &name("port_name"), "has control characters"));
            }
            registration.port_name.clone_from(&port_name.value);
        }
        if let Some(weight) = &self.weight {
            if !weight.value.is_finite() {
                return Err(field(weight, &name("weight"), format!("{} is not a weight", weight.value)));
            }
            registration.weight = Some(weight.value);
        }
        registration.state = match self.state {
            Word::Up => State::Up,
            Word::Draining => State::Draining,
            Word::Degraded => State::Degraded,
            Word::NotReady => State::NotReady,
            Word::Down => State::Down,
        };
        registration.zone.clone_from(&self.zone);
        registration.region.clone_from(&self.region);
        registration.sub_zone.clone_from(&self.sub_zone);
        registration.labels.clone_from(&self.labels);
        if registration.zone.is_empty() {
            registration.settle_labels();
        }
        Ok(registration)
    }
}

fn field<T>(at: &Spanned<T>, field: &str, problem: impl Into<String>) -> DocumentError {
    DocumentError::Field { line: at.referenced.line(), field: field.to_owned(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_full() {
        let document = Document::parse(
            "service: web\nendpoints:\n\
             - {address: 10.0.0.1, port: 8080, zone: us-east-1a, weight: 1, labels: {release: stable}}\n\
             - {address: '[2001:db8::1]', port: 8080, state: not_ready, port_name: admin, region: r, sub_zone: s}\n\
             - {address: Web.example, port: 1, labels: {az: b, n: '5'}}\n",
        )
        .unwrap();
        assert_eq!(document.service, "web");
        let [one, two, three] = &document.registrations[..] else { panic!("{document:?}") };
        assert_eq!(
            (one.zone.as_str(), one.weight, one.labels["release"].as_str()),
            ("us-east-1a", Some(1.0), "stable")
        );
        assert_eq!(
            (two.host.clone(), two.state),
            (Host::Ip("2001:db8::1".parse().unwrap()), State::NotReady)
        );
        assert_eq!((two.port_name.as_str(), two.region.as_str(), two.sub_zone.as_str()), ("admin", "r", "s"));
        assert_eq!((three.host.clone(), three.zone.as_str()), (Host::Name("web.example".into()), "b"));
        assert_eq!(three.labels.len(), 1);
        assert!(Document::parse("service: empty").unwrap().registrations.is_empty());
    }

    #[test]
    fn errors_name_line_and_field() {
        let one = |endpoint: &str| format!("service: web\nendpoints:\n- {endpoint}\n");
        for (text, message) in [
            (String::new(), "line 1"),
            ("service: [".to_owned(), "line 1"),
            ("endpoints: []".to_owned(), "service"),
            ("service: ''".to_owned(), "line 1: field \"service\": the service's name is empty"),
            ("service: web\nendpoint: []".to_owned(), "endpoint"),
            (one("{address: 10.0.0.1}"), "port"),
            (one("{address: 10.0.0.1, port: 80, colour: red}"), "colour"),
            (one("{address: 10.0.0.1, port: 0}"), "line 3: field \"endpoints[0].port\": 0 is not"),
            (one("{address: 10.0.0.1, port: 65536}"), "line 3: field \"endpoints[0].port\": 65536"),
            (
                one("{address: 10.0.0.300, port: 80}"),
                "line 3: field \"endpoints[0].address\": \"10.0.0.300\"",
            ),
            (one("{address: fe80::1%eth0, port: 80}"), "scope id"),
            (one("{address: 10.0.0.1, port: 80, state: happy}"), "happy"),
            (one("{address: 10.0.0.1, port: high}"), "line 3: field \"endpoints[0].port\": "),
            (one("{address: 10.0.0.1, port: 80, zone: [a]}"), "line 3: field \"endpoints[0].zone\": "),
            (one("{address: 10.0.0.1, port: 80, weight: .inf}"), "line 3: field \"endpoints[0].weight\""),
            (
                one("{address: h, port: 80}\n- {address: H, port: 80}"),
                "line 4: field \"endpoints[1]\": the same",
            ),
            ("service: a\n---\nservice: b\n".to_owned(), "line"),
            ("service: a\nservice: b\n".to_owned(), "line 2"),
        ] {
            let error = Document::parse(&text).expect_err(&text).to_string();
            assert!(error.contains(message), "{text}: {error:?} does not contain {message:?}");
            assert!(error.starts_with("line ") && !error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn as_many_endpoints_as_a_service_may_have_and_no_more() {
        let endpoint = |number: usize| {
            let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
            format!(
                "- {{address: 10.0.{high}.{low}, port: 8080, zone: us-east-1a, weight: 1, labels: {{a: b, c: d}}}}\n"
            )
        };
        let file =
            |count| format!("service: web\nendpoints:\n{}", (0..count).map(endpoint).collect::<String>());
        assert_eq!(Document::parse(&file(MAX_MEMBERS)).unwrap().registrations.len(), MAX_MEMBERS);
        assert_eq!(
            Document::parse(&file(MAX_MEMBERS + 1)).unwrap_err().to_string(),
            "line 20003: field \"endpoints\": 20001 endpoints, more than 20000"
        );
    }

    #[test]
    fn whatever_a_file_holds_it_is_a_document_or_refused() {
        let seeds: [&[u8]; 3] = [
            b"service: web\nendpoints:\n\
              - {address: 10.0.0.1, port: 80, zone: a, weight: 1.5, labels: {a: b}}\n",
            b"service: web\nendpoints:\n\
              - address: '[2001:db8::1]'\n  port: 80\n  state: not_ready\n  port_name: x\n",
            b"a: &a [1, 2]\nb: *a\n<<: {c: |\n  text\n}\n",
        ];
        let words = ["&a ", "*a", "<<: ", "endpoints:", "- ", "  ", "\n", "!!str ", "---\n", "{", "[", "? "];
        tower_fuzz::fuzz("endpoint file", &seeds, &words, |input| {
            let text = String::from_utf8_lossy(input);
            Document::parse(&text).map(|document| document.registrations.len())
        });
    }
}
