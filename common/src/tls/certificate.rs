//! What a certificate says: whose it is, and until when.

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;

const SPIFFE: &str = "spiffe://";

/// The parts of a certificate that are used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    names: Vec<String>,
    /// When it ends, in seconds since the Unix epoch.
    pub not_after_unix: i64,
}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(der: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).map_err(|error| error.to_string())?;
        let alternatives = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
        let (mut uris, mut hosts) = (Vec::new(), Vec::new());
        for name in alternatives.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::URI(uri) if uri.starts_with(SPIFFE) => uris.push((*uri).to_owned()),
                GeneralName::DNSName(host) => hosts.push(host.to_ascii_lowercase()),
                _ => {}
            }
        }
        uris.append(&mut hosts);
        Ok(Self { names: uris, not_after_unix: certificate.validity().not_after.timestamp() })
    }

    /// The names of a node in it: first the SPIFFE ids, then the DNS names, of its subject alternative
    /// names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The node id that it gives: the first of its names that is not a wildcard.
    pub fn node_id(&self) -> Option<&str> {
        self.names.iter().map(String::as_str).find(|name| !name.starts_with("*."))
    }

    /// Whether its owner may be this node. A certificate without names leaves that open.
    pub fn is_for(&self, node_id: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| matches(name, node_id))
    }
}

/// A SPIFFE id is exact; a DNS name has no case, and its wildcard stands for one label.
fn matches(name: &str, node_id: &str) -> bool {
    if name.starts_with(SPIFFE) {
        return name == node_id;
    }
    match name.strip_prefix("*.") {
        Some(parent) => node_id
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent)),
        None => name.eq_ignore_ascii_case(node_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::Authority;

    fn certificate(names: &[&str]) -> Certificate {
        let pair = Authority::new("ca").issue(names);
        Certificate::parse(&pair.der).unwrap()
    }

    #[test]
    fn a_node_is_who_its_certificate_says() {
        let host = certificate(&["Host-1.example", "other.example"]);
        assert_eq!(host.node_id(), Some("host-1.example"));
        assert!(host.is_for("HOST-1.example") && host.is_for("other.example"));
        assert!(!host.is_for("host-2.example") && !host.is_for(""));

        let spiffe = certificate(&["host-1", "spiffe://mesh/host/1"]);
        assert_eq!(spiffe.node_id(), Some("spiffe://mesh/host/1"));
        assert!(spiffe.is_for("host-1") && !spiffe.is_for("spiffe://mesh/host/11"));
    }

    #[test]
    fn a_wildcard_is_one_label_and_no_node() {
        let fleet = certificate(&["*.example"]);
        assert_eq!(fleet.node_id(), None);
        assert!(fleet.is_for("a.example"));
        assert!(!fleet.is_for("a.b.example") && !fleet.is_for(".example") && !fleet.is_for("example"));
    }

    #[test]
    fn a_certificate_without_names_leaves_the_node_open() {
        let anonymous = certificate(&[]);
        assert_eq!(anonymous.node_id(), None);
        assert!(anonymous.is_for("anybody"));
        assert!(anonymous.not_after_unix > 1_700_000_000);
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(Certificate::parse(&CertificateDer::from(b"rubbish".to_vec())).is_err());
    }
}
