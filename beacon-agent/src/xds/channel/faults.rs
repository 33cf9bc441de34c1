//! What a client does not take although nobody keeps it from it: its host is to blame, or nobody is found.

use std::sync::Arc;

use tower_common::{resource::Version, view::XdsResource};

use super::Channel;
use crate::xds::{blame::Blame, clients::Reason, triage::Suspects};

/// Why a client does not take something that is not kept from it: its host is to blame, or nobody is found.
#[derive(Debug)]
pub(in crate::xds) struct Fault {
    pub(super) version: Version,
    pub(in crate::xds) reason: Reason,
    /// What the client said.
    pub(in crate::xds) message: Arc<str>,
}

impl Channel {
    /// Leaves those suspects for which the client's host is not to blame.
    pub(super) fn set_hosts_fault_aside(&mut self, mut suspects: Suspects, message: &str) -> Suspects {
        let all_hosts = Reason::of(message) == Reason::Host;
        if self.kind.is_whole() {
            // An Envoy takes clusters and listeners one by one, and says which it could not take.
            let Some(blame) = Blame::read(message, &suspects.resources) else {
                if all_hosts {
                    self.retry.failed();
                    self.note_faults(&suspects.resources, Reason::Host, message);
                    suspects.resources.clear();
                }
                return suspects;
            };
            if !blame.host.is_empty() {
                self.retry.failed();
                let is_hosts = |suspect: &XdsResource| blame.host.contains(&suspect.name);
                let faulty: Vec<XdsResource> =
                    suspects.resources.extract_if(.., |suspect| is_hosts(suspect)).collect();
                self.note_faults(&faulty, Reason::Host, message);
                if blame.content.is_empty() {
                    self.ledger.concede(blame.innocent.iter());
                    suspects.resources.clear();
                }
            }
            return suspects;
        }
        // Of the others nobody is named. Each by itself shows whose file is missing.
        if all_hosts && suspects.resources.len() < 2 {
            suspects.resources.iter().for_each(|suspect| self.triage.acquit(&suspect.name));
            self.retry.failed();
            self.note_faults(&suspects.resources, Reason::Host, message);
            suspects.resources.clear();
        }
        suspects
    }

    pub(super) fn note_faults(&mut self, resources: &[XdsResource], reason: Reason, message: &str) {
        let message: Arc<str> = message.into();
        let fault = |resource: &XdsResource| {
            (resource.name.clone(), Fault { version: resource.version, reason, message: message.clone() })
        };
        self.faults.extend(resources.iter().map(fault));
    }

    /// Why the client does not take this content, although it is not kept from it.
    pub(in crate::xds) fn fault(&self, name: &str, version: Version) -> Option<&Fault> {
        self.faults.get(name).filter(|fault| fault.version == version)
    }
}
