//! Who may call: the filters `rbac` of HTTP and of bytes.

use tower_common::document::model::{AllowedCallers, CallerRule, Mode};
use tower_proto::envoy::{
    envoy::{
        config::{
            core::v3::CidrRange,
            listener::v3::{Filter, filter::ConfigType},
            rbac::v3::{
                Permission, Policy, Principal, Rbac,
                permission::{self, Rule},
                principal::{Authenticated, Identifier},
            },
        },
        extensions::filters::{http::rbac::v3 as http, network::rbac::v3 as network},
        r#type::matcher::v3::{PathMatcher, StringMatcher, path_matcher},
    },
    google::protobuf::{Any, UInt32Value},
};

use super::{
    convert::{beginning, exactly, paths},
    messages::any,
    routes::matching::method,
};

/// What a virtual host configures of the filter.
pub(super) fn http(of: &AllowedCallers) -> (String, Any) {
    let mut rbac = http::Rbac::default();
    match of.mode {
        Mode::Enforce => rbac.rules = Some(rules(of, true)),
        Mode::Shadow => rbac.shadow_rules = Some(rules(of, true)),
    }
    ("envoy.filters.http.rbac".to_owned(), any(&http::RbacPerRoute { rbac: Some(rbac) }))
}

/// The filter in front of bytes, of which nothing is known but who sends them. It looks at a connection when
/// the caller sends its first byte.
pub(super) fn tcp(stat_prefix: &str, of: &AllowedCallers) -> Filter {
    let mut rbac = network::Rbac { stat_prefix: format!("{stat_prefix}."), ..Default::default() };
    match of.mode {
        Mode::Enforce => rbac.rules = Some(rules(of, false)),
        Mode::Shadow => rbac.shadow_rules = Some(rules(of, false)),
    }
    Filter {
        name: "envoy.filters.network.rbac".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&rbac))),
    }
}

/// Whether what may be called depends on the path.
pub(super) fn by_path(of: Option<&AllowedCallers>) -> bool {
    of.is_some_and(|allowed| allowed.rules.iter().any(|rule| !rule.paths.is_empty()))
}

/// To be allowed is Envoy's action 0. Without a policy nobody is.
fn rules(of: &AllowedCallers, requests: bool) -> Rbac {
    let policy = |rule: &CallerRule| {
        let any = Permission { rule: Some(Rule::Any(true)) };
        let permission = if requests { permission(rule) } else { any };
        let policy =
            Policy { permissions: vec![permission], principals: principals(rule), ..Default::default() };
        (rule.name.clone(), policy)
    };
    Rbac { policies: of.rules.iter().map(policy).collect(), ..Default::default() }
}

fn permission(of: &CallerRule) -> Permission {
    let methods = of.methods.iter().map(|name| Rule::Header(method(*name)));
    let path =
        |path: StringMatcher| Rule::UrlPath(PathMatcher { rule: Some(path_matcher::Rule::Path(path)) });
    let paths = of.paths.iter().flat_map(paths).map(path);
    let all: Vec<_> = [methods.collect(), paths.collect()].into_iter().filter_map(either).collect();
    let rule = if all.is_empty() { Rule::Any(true) } else { Rule::AndRules(permission::Set { rules: all }) };
    Permission { rule: Some(rule) }
}

/// Any of these; `None` if there are none.
fn either(rules: Vec<Rule>) -> Option<Permission> {
    let rules: Vec<_> = rules.into_iter().map(|rule| Permission { rule: Some(rule) }).collect();
    (!rules.is_empty()).then_some(Permission { rule: Some(Rule::OrRules(permission::Set { rules })) })
}

fn principals(of: &CallerRule) -> Vec<Principal> {
    let identities = of.identities.iter().map(|name| {
        let matcher = name.strip_suffix('*').map_or_else(|| exactly(name), beginning);
        Identifier::Authenticated(Authenticated { principal_name: Some(matcher) })
    });
    let addresses = of.addresses.iter().filter_map(|range| cidr(range)).map(Identifier::DirectRemoteIp);
    let mut identifiers: Vec<_> = identities.chain(addresses).collect();
    if of.identities.is_empty() && of.addresses.is_empty() {
        identifiers.push(Identifier::Any(true));
    }
    identifiers.into_iter().map(|identifier| Principal { identifier: Some(identifier) }).collect()
}

/// A range of addresses; a single one without a length.
fn cidr(of: &str) -> Option<CidrRange> {
    let (address, length) = match of.split_once('/') {
        Some((address, length)) => (address, length.parse().ok()?),
        None => (of, if of.contains(':') { 128 } else { 32 }),
    };
    Some(CidrRange { address_prefix: address.to_owned(), prefix_len: Some(UInt32Value { value: length }) })
}
