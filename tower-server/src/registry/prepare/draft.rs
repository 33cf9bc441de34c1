//! What a document comes to with the parts of platform and security.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message;
use tower_common::document::{self, Document, Effective, Finding, Owner, Parsed, Parts, Severity, World};
use tower_proto::v1;

use super::{Preparer, Ready, Source, parts::Revisions, tiers};
use crate::{
    compile,
    event_log::EventLog,
    registry::{
        commands::{Prepared, PreparedDocument},
        fold::versions::release_name,
        handle::SubmitError,
        refusal::{Refusal, RefusalKind},
        state::State,
    },
};

/// The level of the compiler: it rises with each change of what it makes of the same document.
const LEVEL: u32 = 1;

/// A document with its parts, checked.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The service.
    pub service: String,
    /// The service's own part, and its places in the text.
    pub parsed: Parsed,
    /// What all parts come to.
    pub effective: Effective,
    /// What is wrong with it, and what is remarkable.
    pub findings: Vec<Finding>,
    parts: [Option<Document>; 4],
    revisions: Revisions,
}

impl Preparer {
    /// A document with these parts, checked against what is known of other services.
    pub(in crate::registry) async fn draft(
        &self,
        log: &EventLog,
        state: &State,
        name: &str,
        source: &Source,
        revisions: &Revisions,
    ) -> Result<Draft, SubmitError> {
        let mut draft = self.compose(log, state, name, source, revisions).await?;
        let world = self.world(log, state, name, &draft.effective.document).await?;
        draft.check(&world);
        Ok(draft)
    }

    /// A document with these parts, checked by itself: what stood before is not refused for what others have
    /// become.
    pub(super) async fn compose(
        &self,
        log: &EventLog,
        state: &State,
        name: &str,
        source: &Source,
        revisions: &Revisions,
    ) -> Result<Draft, SubmitError> {
        let object = format!("service {name}");
        let parsed = match source {
            Source::Text { file, text } => document::parse(file, text, Owner::Service)
                .map_err(|findings| wrong(&object, findings, "the document is wrong"))?,
            Source::Version(number) => {
                let version = state.service(name).and_then(|service| service.version(*number));
                let Some(uploaded) = version.and_then(|version| version.uploaded.as_ref()) else {
                    let object = format!("version {name}@{number}");
                    return Err(Refusal::new(
                        RefusalKind::NotFound,
                        "no-such-version",
                        object,
                        "there is none",
                    )
                    .field("version")
                    .into());
                };
                read(log, &format!("{name}@{number}"), Owner::Service, &uploaded.body).await?
            }
        };
        named(&object, &parsed.document, Some(name))?;
        let mut parts = [const { None }; 4];
        for (part, body) in parts.iter_mut().zip(revisions.bodies(name)) {
            let Some((called, owner, body)) = body else { continue };
            *part = Some(read(log, &called, owner, &body).await?.document);
        }
        let mut draft = Draft {
            service: name.to_owned(),
            effective: Effective::default(),
            findings: Vec::new(),
            parsed,
            parts,
            revisions: revisions.clone(),
        };
        draft.replace(draft.parsed.document.clone(), &World::unknown())?;
        Ok(draft)
    }
}

impl Draft {
    /// Takes another document in place of the service's own.
    pub(super) fn replace(&mut self, document: Document, world: &World) -> Result<(), Refusal> {
        self.parsed.document = document;
        let [platform, platform_own, security, security_own] = &self.parts;
        self.effective = document::merge(&Parts {
            platform: platform.as_ref(),
            platform_for_service: platform_own.as_ref(),
            security: security.as_ref(),
            security_for_service: security_own.as_ref(),
            service: &self.parsed.document,
        })
        .map_err(|findings| wrong(&self.object(), findings, "the parts do not fit together"))?;
        self.check(world);
        Ok(())
    }

    fn check(&mut self, world: &World) {
        self.findings = self.parsed.findings.clone();
        self.findings.extend(document::check(&self.effective, world));
        document::locate(&mut self.findings, &self.parsed.places);
    }

    /// Refuses a document with errors.
    pub(super) fn must_hold(&self) -> Result<(), Refusal> {
        refuse(&self.object(), &self.findings)
    }

    /// What hosts would be given.
    ///
    /// # Errors
    /// If the document has errors.
    pub fn compile(&self) -> Result<v1::Bundle, Refusal> {
        self.must_hold()?;
        compile::compile(&self.effective, &self.service)
            .map_err(|findings| wrong(&self.object(), findings, "it cannot be compiled"))
    }

    /// The release of it, as of this version.
    pub(super) fn release(self, version: u64) -> Result<Ready, Refusal> {
        let bundle = Bytes::from(self.compile()?.encode_to_vec());
        let hash = Bytes::copy_from_slice(blake3::hash(&bundle).as_bytes());
        let [platform, platform_for_service, security, security_for_service] = self.revisions.numbers();
        let made = v1::ReleaseMade {
            release: release_name(&hash),
            version,
            platform,
            platform_for_service,
            security,
            security_for_service,
            level: LEVEL,
            bundle: hash,
        };
        let tiers = tiers(&self.service, &self.effective.document);
        let prepared = Prepared { release: Some(made), tiers, ..Prepared::default() };
        Ok(Ready { prepared, bodies: vec![bundle], findings: self.findings })
    }

    fn object(&self) -> String {
        format!("service {}", self.service)
    }
}

/// A document that is in the log. A newer build may know more of what is wrong than the one that took it.
pub(super) async fn read(
    log: &EventLog,
    called: &str,
    owner: Owner,
    body: &[u8],
) -> Result<Parsed, SubmitError> {
    let body = log.body(body).await?;
    let text = String::from_utf8_lossy(&body);
    document::parse(called, &text, owner)
        .map_err(|findings| wrong(called, findings, "the document is wrong").into())
}

/// A document that is to be kept.
pub(super) fn kept(document: &Document, text: &str) -> Ready {
    let body = Bytes::copy_from_slice(text.as_bytes());
    let prepared = PreparedDocument {
        hash: document.hash().to_vec(),
        body: blake3::hash(&body).as_bytes().to_vec(),
        owner: document.metadata.owner.clone().unwrap_or_default(),
    };
    let prepared = Prepared { document: Some(prepared), ..Prepared::default() };
    Ready { prepared, bodies: vec![body], findings: Vec::new() }
}

/// Refuses a document about something else than the path or the command says.
pub(super) fn named(object: &str, document: &Document, service: Option<&str>) -> Result<(), Refusal> {
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

pub(super) fn refuse(object: &str, findings: &[Finding]) -> Result<(), Refusal> {
    if !document::refuses(findings) {
        return Ok(());
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    Err(wrong(object, errors.cloned().collect(), "the document is wrong"))
}

/// The refusal of a document: its first fault, and all of them beside.
pub(super) fn wrong(object: &str, findings: Vec<Finding>, what: &str) -> Refusal {
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
