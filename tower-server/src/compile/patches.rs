//! The platform's own changes of what was compiled.

use bytes::Bytes;
use prost::{Message, Name};
use serde_json::Value;
use tower_common::document::{
    Finding, Owner, Severity,
    model::{Patch, PatchKind},
};
use tower_proto::envoy::envoy::config::{
    cluster::v3::Cluster, listener::v3::Listener, route::v3::VirtualHost,
};

use super::{
    constraints,
    messages::{self, Error},
};

/// What stands for the service's name in a part for all services.
const SERVICE: &str = "{service}";

/// A patch that does not fit.
const DOES_NOT_FIT: &str = "TW901";

/// What a document leads to is refused.
const REFUSED: &str = "TW903";

/// A patch of something that there is not.
const NOTHING_TO_PATCH: &str = "TW902";

/// The patches of a document, while they are applied.
#[derive(Debug)]
pub(super) struct Patches<'a> {
    service: &'a str,
    patches: &'a [Patch],
    applied: Vec<bool>,
    findings: Vec<Finding>,
}

impl<'a> Patches<'a> {
    /// None of them is applied yet.
    pub(super) fn new(service: &'a str, patches: &'a [Patch]) -> Self {
        Self { service, patches, applied: vec![false; patches.len()], findings: Vec::new() }
    }

    /// What becomes of a resource, by those for it in their order. One that does not fit changes nothing.
    pub(super) fn apply(&mut self, kind: PatchKind, name: &str, body: Vec<u8>) -> Bytes {
        let mut body = body;
        if let Err(reason) = check(kind, &body) {
            self.findings.push(Finding {
                field: "spec".to_owned(),
                owner: None,
                ..finding(
                    REFUSED,
                    0,
                    format!(
                        "Envoy would refuse {} {name:?}, which the document leads to: {reason}",
                        word(kind)
                    ),
                    "change the field that this is made from",
                )
            });
        }
        for (index, patch) in self.patches.iter().enumerate() {
            if patch.target.kind != kind || patch.target.name.replace(SERVICE, self.service) != name {
                continue;
            }
            self.applied[index] = true;
            match merge(kind, name, &body, patch) {
                Ok(patched) => body = patched,
                Err(reason) => self.findings.push(finding(
                    DOES_NOT_FIT,
                    index,
                    format!("the patch of {} {name:?} does not fit: {reason}", word(kind)),
                    "write fields as in Envoy's proto files, with the names they have there",
                )),
            }
        }
        body.into()
    }

    /// What is wrong with the patches, now that everything was offered to them.
    pub(super) fn findings(self) -> Vec<Finding> {
        let mut findings = self.findings;
        for (index, patch) in self.patches.iter().enumerate() {
            let (kind, name) = (patch.target.kind, &patch.target.name);
            // Not every service has all that a patch for all of them is about.
            if self.applied[index] || name.contains(SERVICE) {
                continue;
            }
            findings.push(finding(
                NOTHING_TO_PATCH,
                index,
                format!("service {:?} has no {} {name:?} to patch", self.service, word(kind)),
                "name a resource that the document leads to, such as `web`, `web/canary` or `inbound/web/app`",
            ));
        }
        findings
    }
}

/// No host would serve what the patches have made of a release.
pub(super) fn no_host_would_serve(problem: &str) -> Finding {
    let finding = finding(REFUSED, 0, format!("no host would serve this: {problem}"), "leave that to Tower");
    Finding { field: "spec.patches".to_owned(), ..finding }
}

/// What can be said of patches without what they are for: whether they have fields that there are, with values
/// that fit.
pub(super) fn check_each(patches: &[Patch]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let named = patch.merge.get("name").and_then(Value::as_str);
        let renames = named.is_some_and(|name| name != patch.target.name);
        let name = type_name(patch.target.kind);
        let fits = messages::merge(&name, &[], &Value::Object(patch.merge.clone()));
        let problem = match fits {
            Ok(_) if renames => "it may not change the name".to_owned(),
            Ok(_) => continue,
            Err(error) => error.to_string(),
        };
        findings.push(finding(
            DOES_NOT_FIT,
            index,
            format!(
                "the patch of {} {:?} does not fit: {problem}",
                word(patch.target.kind),
                patch.target.name
            ),
            "write fields as in Envoy's proto files, with the names they have there",
        ));
    }
    findings
}

fn type_name(kind: PatchKind) -> String {
    match kind {
        PatchKind::Cluster => Cluster::full_name(),
        PatchKind::Listener => Listener::full_name(),
        PatchKind::VirtualHost => VirtualHost::full_name(),
    }
}

fn merge(kind: PatchKind, name: &str, body: &[u8], patch: &Patch) -> Result<Vec<u8>, String> {
    let patch = Value::Object(patch.merge.clone());
    let merged = match kind {
        PatchKind::Cluster => typed::<Cluster>(body, &patch, |cluster| cluster.name == name),
        PatchKind::Listener => typed::<Listener>(body, &patch, |listener| listener.name == name),
        PatchKind::VirtualHost => typed::<VirtualHost>(body, &patch, |host| host.name == name),
    };
    let merged = merged.map_err(|error| error.to_string())?.ok_or("it may not change the name")?;
    check(kind, &merged).map_err(|error| error.to_string())?;
    Ok(merged)
}

fn check(kind: PatchKind, body: &[u8]) -> Result<(), Error> {
    let name = type_name(kind);
    if kind == PatchKind::VirtualHost {
        // Those of callers get their domains from the view.
        let domain = VirtualHost { domains: vec!["x".to_owned()], ..Default::default() };
        return constraints::check(&name, &[body, &domain.encode_to_vec()].concat());
    }
    constraints::check(&name, body)
}

/// `None` if it is not the same resource any more.
fn typed<M: Message + Name + Default>(
    body: &[u8],
    patch: &Value,
    is_same: impl Fn(&M) -> bool,
) -> Result<Option<Vec<u8>>, Error> {
    let merged = messages::merge(&M::full_name(), body, patch)?;
    let is_same = is_same(&M::decode(merged.as_slice())?);
    Ok(is_same.then_some(merged))
}

fn finding(code: &'static str, index: usize, message: String, next_step: &str) -> Finding {
    Finding {
        code,
        severity: Severity::Error,
        file: String::new(),
        line: 0,
        column: 0,
        field: format!("spec.patches[{index}]"),
        owner: Some(Owner::Platform),
        message,
        next_step: next_step.to_owned(),
    }
}

const fn word(kind: PatchKind) -> &'static str {
    match kind {
        PatchKind::Cluster => "cluster",
        PatchKind::Listener => "listener",
        PatchKind::VirtualHost => "virtual host",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::compile::{
        compile,
        testing::{bundle, cluster, contains, effective, listener, virtual_host},
    };

    #[test]
    fn what_no_host_would_serve_is_refused() {
        for (patch, why) in [
            ("{target: {kind: VirtualHost, name: web}, merge: {domains: ['*']}}", "brings its own domains"),
            ("{target: {kind: Cluster, name: web}, merge: {type: STRICT_DNS}}", "does not discover them"),
        ] {
            let findings = compile(&effective(&format!("patches: [{patch}]")), "web").unwrap_err();
            assert!(findings[0].message.contains(why), "{findings:?}");
        }
    }

    #[test]
    fn patches_are_looked_at_without_a_service() {
        let of = effective(
            "patches: [{target: {kind: Cluster, name: web}, merge: {conect_timeout: 1s}}, {target: {kind: Cluster, \
             name: web}, merge: {name: ads}}, {target: {kind: Cluster, name: web}, merge: {connect_timeout: 1s}}]",
        );
        let fields: Vec<_> =
            super::check_each(&of.document.spec.patches).into_iter().map(|finding| finding.field).collect();
        assert_eq!(fields, ["spec.patches[0]", "spec.patches[1]"]);
    }

    #[test]
    fn the_platform_has_the_last_word() {
        let bundle = bundle(
            "
inbound: {ports: [{name: app, port: 1, appPort: 2}]}
patches:
- target: {kind: Cluster, name: '{service}'}
  merge: {connect_timeout: 0.5s, common_lb_config: {healthy_panic_threshold: null}}
- target: {kind: Cluster, name: web}
  merge: {connect_timeout: 0.75s}
- target: {kind: Listener, name: inbound/web/app}
  merge: {per_connection_buffer_limit_bytes: 32768}
- target: {kind: VirtualHost, name: web}
  merge: {include_request_attempt_count: true}
- {target: {kind: Cluster, name: '{service}/canary'}, merge: {}}
",
        );
        let patched = cluster(&bundle, "web");
        contains(&patched, &json!({"connect_timeout": "0.750s", "type": "EDS", "common_lb_config": {}}));
        assert_eq!(patched["common_lb_config"].get("healthy_panic_threshold"), None);
        assert_eq!(listener(&bundle, "inbound/web/app")["per_connection_buffer_limit_bytes"], 32768);
        assert_eq!(virtual_host(&bundle, "web")["include_request_attempt_count"], true);
    }

    #[test]
    fn a_patch_that_does_not_fit_is_named() {
        let cases = [
            ("{kind: Cluster, name: web}, merge: {conect_timeout: 1s}", "TW901", "conect_timeout"),
            ("{kind: Cluster, name: web}, merge: {connect_timeout: soon}", "TW901", "connect_timeout"),
            ("{kind: Cluster, name: web}, merge: {name: other}", "TW901", "may not change the name"),
            (
                "{kind: Cluster, name: web}, merge: {connect_timeout: 0s}",
                "TW901",
                "connect_timeout: it must be more than 0s",
            ),
            (
                "{kind: Listener, name: inbound/web/app}, merge: {filter_chains: [{filters: [{}]}]}",
                "TW901",
                "filters[0].name",
            ),
            ("{kind: Cluster, name: web/canary}, merge: {}", "TW902", "no cluster \"web/canary\""),
            ("{kind: Listener, name: egress}, merge: {}", "TW902", "no listener \"egress\""),
        ];
        for (patch, code, word) in cases {
            let spec = format!(
                "inbound: {{ports: [{{name: app, port: 1, appPort: 2}}]}}\npatches: [{{target: {{kind: Cluster, name: web}}, merge: {{}}}}, {{target: {patch}}}]"
            );
            let findings = compile(&effective(&spec), "web").unwrap_err();
            let [finding] = findings.as_slice() else { panic!("{findings:?}") };
            assert_eq!((finding.code, finding.field.as_str()), (code, "spec.patches[1]"));
            assert!(finding.message.contains(word), "{}", finding.message);
        }
    }
}
