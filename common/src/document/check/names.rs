//! Names, and what refers to them.

use std::collections::BTreeSet;

use super::{
    super::{Document, places::child, rules},
    Check,
};
use crate::view::domains::domain_of;

/// The longest name of a subset, route, port or tier.
const MAX_NAME: usize = 63;

impl Check<'_> {
    /// The service, its subsets and tiers.
    pub(super) fn names(&mut self, document: &Document) {
        let name = &document.metadata.name;
        if !name.is_empty()
            && let Err(error) = domain_of(name)
        {
            let message = format!("{name:?} can be no service's name: {error}");
            self.find(rules::BAD_NAME, "metadata.name", message, "name the service as it is discovered");
        }
        for (subset, labels) in &document.spec.callers.subsets {
            let field = child("spec.callers.subsets", subset);
            self.word(&field, subset);
            self.ensure(
                !labels.is_empty() && labels.keys().all(|key| !key.is_empty()),
                rules::BAD_LABEL,
                &field,
                "a subset without labels is no subset",
                "say which labels its endpoints have",
            );
            self.subset_has_endpoints(name, subset, labels, &field);
        }
        let tiers = &document.spec.tiers;
        self.unique(
            tiers.iter().enumerate().map(|(index, tier)| (format!("spec.tiers[{index}].name"), &*tier.name)),
        );
        let mut clusters = BTreeSet::new();
        for (index, tier) in tiers.iter().enumerate() {
            let field = format!("spec.tiers[{index}]");
            self.word(&format!("{field}.name"), &tier.name);
            self.ensure(
                !tier.clusters.is_empty(),
                rules::BAD_NAME,
                &format!("{field}.clusters"),
                "a tier without clusters is no tier",
                "name its clusters",
            );
            for cluster in &tier.clusters {
                let there = !cluster.is_empty() && clusters.insert(cluster);
                let message = "a cluster is in one tier, and has a name";
                self.ensure(there, rules::DUPLICATE, &format!("{field}.clusters"), message, "name it once");
            }
        }
    }

    fn subset_has_endpoints(
        &mut self,
        service: &str,
        subset: &str,
        labels: &std::collections::BTreeMap<String, String>,
        field: &str,
    ) {
        let Some(facts) = self.world.services.as_ref().and_then(|services| services.get(service)) else {
            return;
        };
        let fits = |endpoint: &std::collections::BTreeMap<String, String>| {
            labels.iter().all(|(key, value)| endpoint.get(key) == Some(value))
        };
        if !facts.endpoints.iter().any(fits) {
            let message = format!("no endpoint of {service} is in the subset {subset:?}");
            self.find(rules::EMPTY_SUBSET, field, message, "look at the labels: pcloud service endpoints");
        }
    }

    /// A name that is part of names in xDS.
    pub(super) fn word(&mut self, field: &str, name: &str) {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            let message = format!("{name:?} is no name");
            let next = format!("use 1 to {MAX_NAME} letters, digits, - _ .");
            self.find(rules::BAD_NAME, field, message, next);
        }
    }

    /// A service that others refer to.
    pub(super) fn service(&mut self, field: &str, service: &str, subset: Option<&str>) {
        if let Err(error) = domain_of(service) {
            let message = format!("{service:?} can be no service's name: {error}");
            self.find(rules::BAD_NAME, field, message, "name a service as it is discovered");
            return;
        }
        let Some(services) = &self.world.services else { return };
        match (services.get(service), subset) {
            (None, _) => {
                let message = format!("nobody knows the service {service:?}");
                self.find(rules::NO_SUCH_SERVICE, field, message, "pcloud service list shows all");
            }
            (Some(facts), Some(subset)) if !facts.subsets.contains(subset) => {
                let message = format!("{service} has no subset {subset:?} in its active document");
                self.find(
                    rules::NO_SUCH_SUBSET,
                    field,
                    message,
                    format!("pcloud describe service {service}"),
                );
            }
            _ => {}
        }
    }
}
