//! What has to be found out before a command can be decided: what documents say, what they compile to, and
//! which hosts there are.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;
use tower_common::{
    audience::{AudienceSpec, Workload},
    document::{self, Document, Effective, Finding, Owner, Parsed, Parts, Severity, World},
};
use tower_proto::v1::{self, part_edited};

use super::{
    commands::{self, Command, Plan, Prepared, PreparedDocument, Target, Upload},
    handle::SubmitError,
    refusal::{Refusal, RefusalKind},
    service::Service,
    state::State,
};
use crate::{compile, event_log::EventLog};

/// The level of the compiler: it rises with each change of what it makes of the same document.
const LEVEL: u32 = 1;

/// Which hosts there are.
pub trait Hosts: Send + Sync {
    /// A connected host of this audience with an Envoy, to begin with; with another salt another one.
    fn first_of(&self, audience: &v1::Audience, salt: &str) -> Option<String>;
}

/// What a command takes of the state.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    service: String,
    /// The version that is compiled, or whose weights are changed, and the hash of its body.
    version: Option<(u64, Bytes)>,
    parts: [Option<PartInput>; 4],
    /// The id that an activation would have.
    salt: String,
}

/// A part of platform or security: its revision, and the hash of its body.
#[derive(Debug)]
struct PartInput {
    revision: u64,
    body: Bytes,
}

/// The order of [`Inputs::parts`].
const PARTS: [(part_edited::Owner, Owner, bool); 4] = [
    (part_edited::Owner::Platform, Owner::Platform, false),
    (part_edited::Owner::Platform, Owner::Platform, true),
    (part_edited::Owner::Security, Owner::Security, false),
    (part_edited::Owner::Security, Owner::Security, true),
];

/// Bodies by their hash.
pub(super) type Bodies = BTreeMap<Bytes, Bytes>;

/// What was found out, and what has to be kept with the command.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) prepared: Prepared,
    pub(super) bodies: Vec<Bytes>,
}

/// What a command takes of the state.
pub(super) fn inputs(state: &State, command: &Command) -> Result<Inputs, Refusal> {
    let Some(name) = command.service() else { return Ok(Inputs::default()) };
    let service = state.service(name).map(|service| &**service);
    let version = |number: u64| body_of(service, number).map(|body| (number, body));
    let version = match command {
        Command::Activate(command) => version(command.version),
        Command::Traffic(command) => service
            .and_then(|service| commands::base(name, service, &command.plan.audience).ok())
            .and_then(version),
        Command::RollBack(command) => match service.map(|of| commands::target(name, of, command.to)) {
            Some(Ok(Target::Version(number))) => version(number),
            Some(Ok(Target::Assignment(_)) | Err(_)) | None => None,
        },
        Command::Upload(_) => None,
        // Nothing else looks into documents.
        _ => return Ok(Inputs::default()),
    };
    let part = |(owner, _, own): (part_edited::Owner, Owner, bool)| {
        let part = state.part(owner, own.then_some(name))?;
        let body = part.revisions.last()?.body.clone();
        (!body.is_empty()).then(|| PartInput { revision: part.revisions.len() as u64, body })
    };
    let salt = format!("{name}-{}", state.index() + 1);
    Ok(Inputs { service: name.to_owned(), version, parts: PARTS.map(part), salt })
}

fn body_of(service: Option<&Service>, number: u64) -> Option<Bytes> {
    Some(service?.version(number)?.uploaded.as_ref()?.body.clone())
}

/// Reads the bodies.
pub(super) async fn read(log: &EventLog, inputs: &Inputs) -> Result<Bodies, SubmitError> {
    let mut bodies = Bodies::new();
    let of_version = inputs.version.iter().map(|(_, body)| body);
    for hash in inputs.parts.iter().flatten().map(|part| &part.body).chain(of_version) {
        let body = log.body(hash).await.map_err(|error| SubmitError::Unavailable(error.to_string()))?;
        bodies.insert(hash.clone(), body);
    }
    Ok(bodies)
}

/// Finds out what the command takes.
pub(super) fn prepare(
    command: &Command,
    inputs: &Inputs,
    read: &Bodies,
    hosts: &dyn Hosts,
) -> Result<Ready, Refusal> {
    match command {
        Command::Upload(upload) => prepare_upload(upload, &of_parts(inputs, read)?),
        Command::EditPart(edit) => {
            let Some(text) = &edit.text else { return Ok(Ready::default()) };
            let owner = match edit.owner {
                part_edited::Owner::Unspecified | part_edited::Owner::Platform => Owner::Platform,
                part_edited::Owner::Security => Owner::Security,
            };
            let object = format!("{owner} part");
            let parsed = document::parse(&edit.file, text, owner)
                .map_err(|findings| wrong(&object, findings, "the document is wrong"))?;
            named(&object, &parsed.document, edit.service.as_deref())?;
            refuse(&object, &document::check_part(&parsed, &World::unknown()))?;
            Ok(kept(&parsed.document, text))
        }
        Command::Activate(activate) => {
            let Some((number, parsed)) = version(inputs, read)? else { return Ok(Ready::default()) };
            let parts = of_parts(inputs, read)?;
            let mut ready = Ready::default();
            release(inputs, &parts, number, &parsed, &mut ready)?;
            first_host(&activate.plan, inputs, hosts, &mut ready.prepared);
            Ok(ready)
        }
        Command::Traffic(traffic) => {
            let Some((_, parsed)) = version(inputs, read)? else { return Ok(Ready::default()) };
            let object = format!("service {}", inputs.service);
            let route = traffic.route.as_deref();
            let document = document::set_weights(&parsed.document, route, &traffic.weights)
                .map_err(|finding| wrong(&object, vec![*finding], "the weights cannot be set"))?;
            let text = String::from_utf8_lossy(&document.canonical()).into_owned();
            let mut ready = kept(&document, &text);
            let parts = of_parts(inputs, read)?;
            release(inputs, &parts, 0, &Parsed { document, ..parsed }, &mut ready)?;
            first_host(&traffic.plan, inputs, hosts, &mut ready.prepared);
            Ok(ready)
        }
        Command::RollBack(_) => {
            let Some((number, parsed)) = version(inputs, read)? else { return Ok(Ready::default()) };
            let mut ready = Ready::default();
            release(inputs, &of_parts(inputs, read)?, number, &parsed, &mut ready)?;
            Ok(ready)
        }
        _ => Ok(Ready::default()),
    }
}

fn prepare_upload(upload: &Upload, parts: &OfParts) -> Result<Ready, Refusal> {
    let object = format!("service {}", upload.service);
    let parsed = document::parse(&upload.file, &upload.text, Owner::Service)
        .map_err(|findings| wrong(&object, findings, "the document is wrong"))?;
    named(&object, &parsed.document, Some(&upload.service))?;
    let effective = merged(&object, parts, &parsed)?;
    let mut findings = document::check(&effective, &World::unknown());
    document::locate(&mut findings, &parsed.places);
    refuse(&object, &findings)?;
    Ok(kept(&parsed.document, &upload.text))
}

/// The parts of platform and security, in the order of [`PARTS`].
type OfParts = [Option<Document>; 4];

fn of_parts(inputs: &Inputs, read: &Bodies) -> Result<OfParts, Refusal> {
    let mut parts = OfParts::default();
    for ((part, input), (_, owner, own)) in parts.iter_mut().zip(&inputs.parts).zip(PARTS) {
        let Some(input) = input else { continue };
        let whose = if own { format!("{owner}/{}", inputs.service) } else { owner.to_string() };
        *part = Some(parsed(&whose, read.get(&input.body), owner)?.document);
    }
    Ok(parts)
}

/// The version that the command is about, as it was uploaded.
fn version(inputs: &Inputs, read: &Bodies) -> Result<Option<(u64, Parsed)>, Refusal> {
    let Some((number, body)) = &inputs.version else { return Ok(None) };
    let name = format!("{}@{number}", inputs.service);
    Ok(Some((*number, parsed(&name, read.get(body), Owner::Service)?)))
}

/// A document that is in the log. A newer build may know more of what is wrong than the one that took it.
fn parsed(name: &str, body: Option<&Bytes>, owner: Owner) -> Result<Parsed, Refusal> {
    let text = body.map(|body| String::from_utf8_lossy(body)).unwrap_or_default();
    document::parse(name, &text, owner).map_err(|findings| wrong(name, findings, "the document is wrong"))
}

fn merged(
    object: &str,
    [platform, platform_own, security, security_own]: &OfParts,
    parsed: &Parsed,
) -> Result<Effective, Refusal> {
    document::merge(&Parts {
        platform: platform.as_ref(),
        platform_for_service: platform_own.as_ref(),
        security: security.as_ref(),
        security_for_service: security_own.as_ref(),
        service: &parsed.document,
    })
    .map_err(|findings| wrong(object, findings, "the parts do not fit together"))
}

/// Compiles the document with the parts in force.
fn release(
    inputs: &Inputs,
    parts: &OfParts,
    version: u64,
    parsed: &Parsed,
    ready: &mut Ready,
) -> Result<(), Refusal> {
    let object = format!("service {}", inputs.service);
    let effective = merged(&object, parts, parsed)?;
    let mut findings = document::check(&effective, &World::unknown());
    document::locate(&mut findings, &parsed.places);
    refuse(&object, &findings)?;
    let bundle = compile::compile(&effective, &inputs.service)
        .map_err(|findings| wrong(&object, findings, "it cannot be compiled"))?
        .encode_to_vec();
    let hash = blake3::hash(&bundle);
    let revision = |place: usize| inputs.parts[place].as_ref().map_or(0, |part| part.revision);
    let id: String = hash.as_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    ready.prepared.release = Some(v1::ReleaseMade {
        release: id,
        version,
        platform: revision(0),
        platform_for_service: revision(1),
        security: revision(2),
        security_for_service: revision(3),
        level: LEVEL,
        bundle: hash.as_bytes().to_vec().into(),
    });
    ready.prepared.tiers = tiers(&inputs.service, &effective.document);
    ready.bodies.push(bundle.into());
    Ok(())
}

/// The workloads of each tier. A cluster's name is that of its workloads, after the service's.
fn tiers(service: &str, document: &Document) -> BTreeMap<String, Vec<Workload>> {
    let workload = |cluster: &String| Workload { service: service.to_owned(), cluster: cluster.clone() };
    let tiers = document.spec.tiers.iter();
    tiers.map(|tier| (tier.name.clone(), tier.clusters.iter().map(workload).collect())).collect()
}

fn first_host(plan: &Plan, inputs: &Inputs, hosts: &dyn Hosts, prepared: &mut Prepared) {
    let resolved =
        |spec: &AudienceSpec| spec.resolve(&inputs.salt, |tier| prepared.tiers.get(tier).cloned()).ok();
    prepared.first_host =
        resolved(&plan.audience).and_then(|audience| hosts.first_of(&audience, &inputs.salt));
}

/// A document that is to be kept.
fn kept(document: &Document, text: &str) -> Ready {
    let body = Bytes::copy_from_slice(text.as_bytes());
    let prepared = PreparedDocument {
        hash: document.hash().to_vec(),
        body: blake3::hash(&body).as_bytes().to_vec(),
        owner: document.metadata.owner.clone().unwrap_or_default(),
    };
    Ready { prepared: Prepared { document: Some(prepared), ..Prepared::default() }, bodies: vec![body] }
}

/// Refuses a document about something else than the path or the command says.
fn named(object: &str, document: &Document, service: Option<&str>) -> Result<(), Refusal> {
    let name = &document.metadata.name;
    let service = service.unwrap_or_default();
    if name == service || (name.is_empty() && !service.is_empty()) {
        return Ok(());
    }
    let message = format!("the document is about {name:?}, and not {service:?}");
    Err(Refusal::new(RefusalKind::Invalid, "another-service", object, message)
        .field("metadata.name")
        .next("send it to the service that it names, or correct the name"))
}

fn refuse(object: &str, findings: &[Finding]) -> Result<(), Refusal> {
    if !document::refuses(findings) {
        return Ok(());
    }
    let errors: Vec<Finding> =
        findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    Err(wrong(object, errors, "the document is wrong"))
}

/// The refusal of a document: its first fault, and all of them beside.
fn wrong(object: &str, findings: Vec<Finding>, what: &str) -> Refusal {
    let owners: BTreeSet<&str> =
        findings.iter().filter_map(|finding| finding.owner).map(Owner::as_str).collect();
    let first = findings.first();
    let message = first.map_or_else(|| what.to_owned(), |first| format!("{what}: {}", first.message));
    let mut refusal = Refusal::new(RefusalKind::Invalid, "invalid-document", object, message);
    if let Some(first) = first {
        refusal = refusal.field(first.field.clone()).next(first.next_step.clone());
    }
    if owners.len() == 1 {
        refusal = refusal.owner(owners.into_iter().collect::<String>());
    }
    refusal.findings(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneHost;

    impl Hosts for OneHost {
        fn first_of(&self, audience: &v1::Audience, _: &str) -> Option<String> {
            audience.terms.is_empty().then(|| "h1".to_owned())
        }
    }

    const HEAD: &str = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {name: web, owner: team}\n";

    fn upload(text: &str) -> Result<Ready, Refusal> {
        let upload = Upload { service: "web".into(), file: "web.yaml".into(), text: text.to_owned() };
        prepare(&Command::Upload(upload), &Inputs::default(), &Bodies::new(), &OneHost)
    }

    #[test]
    fn an_upload_is_parsed_checked_and_kept_as_it_is() {
        let ready = upload(HEAD).unwrap();
        let document = ready.prepared.document.unwrap();
        assert_eq!((document.owner.as_str(), &ready.bodies[0][..]), ("team", HEAD.as_bytes()));
        assert_eq!(document.body, blake3::hash(HEAD.as_bytes()).as_bytes());
        let refusal = upload(&format!("{HEAD}spec: {{callers: {{routes: [{{name: a, retry: {{}}}}]}}}}\n"))
            .unwrap_err();
        assert_eq!((refusal.code, refusal.findings[0].line), ("invalid-document", 4));
        let other = HEAD.replace("web", "ads");
        assert_eq!(upload(&other).unwrap_err().field.as_deref(), Some("metadata.name"));
    }

    #[test]
    fn an_activation_compiles_what_the_parts_come_to() {
        let platform = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {}\nspec: {callers: {connectTimeout: 3s}}\n";
        let bodies = Bodies::from([
            (
                Bytes::from_static(b"v"),
                Bytes::from(format!("{HEAD}spec: {{tiers: [{{name: t, clusters: [c]}}]}}\n")),
            ),
            (Bytes::from_static(b"p"), Bytes::from(platform)),
        ]);
        let inputs = |part: Option<PartInput>| Inputs {
            service: "web".into(),
            version: Some((3, Bytes::from_static(b"v"))),
            parts: [part, None, None, None],
            salt: "web-9".into(),
        };
        let activate =
            Command::Activate(commands::Activate { service: "web".into(), version: 3, ..Default::default() });
        let alone = prepare(&activate, &inputs(None), &bodies, &OneHost).unwrap();
        let part = PartInput { revision: 2, body: Bytes::from_static(b"p") };
        let ready = prepare(&activate, &inputs(Some(part)), &bodies, &OneHost).unwrap();
        let made = ready.prepared.release.unwrap();
        assert_eq!((made.version, made.platform, made.level), (3, 2, LEVEL));
        assert_eq!(&made.bundle[..], blake3::hash(&ready.bodies[0]).as_bytes());
        assert_ne!(made.release, alone.prepared.release.unwrap().release, "the part is in it");
        assert_eq!(ready.prepared.tiers["t"], [Workload { service: "web".into(), cluster: "c".into() }]);
        assert_eq!(ready.prepared.first_host.as_deref(), Some("h1"));
    }
}
