//! Audiences: which hosts something is for. Pure, and the same in Tower (to preview) and Beacon (to obey).
//!
//! - here: what is known of a host, and whether it [belongs to an audience](contains)
//! - [`spec`]: audiences as people write them
//!
//! The rules, and vectors to test other implementations with, are in `docs/AUDIENCES.md`.

pub mod spec;

use std::collections::BTreeMap;

use tower_proto::v1::{self, audience::term::Term};

pub use self::spec::{AudienceError, AudienceSpec};

/// A whole, in basis points.
pub const WHOLE: u32 = 10_000;

/// What is known of a host, as its Beacon says in its hello.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name.
    pub id: String,
    /// The zone that it is in, or nothing.
    pub zone: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What runs on it.
    pub workloads: Vec<Workload>,
}

/// Something that runs on a host: an instance of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    /// The service.
    pub service: String,
    /// The cluster of the service's instances, or nothing.
    pub cluster: String,
}

/// A term that this build does not know. Whether a host is in the audience cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audience has a term that this build does not know; a newer one does")]
pub struct UnknownTerm;

impl NodeFacts {
    /// The region that the host is in: its label `region`, or nothing.
    pub fn region(&self) -> &str {
        self.labels.get("region").map_or("", String::as_str)
    }

    /// Whether an instance of this service runs on the host.
    pub fn runs(&self, service: &str) -> bool {
        self.workloads.iter().any(|workload| workload.service == service)
    }
}

impl From<&v1::Node> for NodeFacts {
    fn from(node: &v1::Node) -> Self {
        let workload = |workload: &v1::Workload| Workload {
            service: workload.service.clone(),
            cluster: workload.cluster.clone(),
        };
        Self {
            id: node.id.clone(),
            zone: node.zone.clone(),
            labels: node.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            workloads: node.workloads.iter().map(workload).collect(),
        }
    }
}

/// Whether a host is in an audience: it fits all terms.
///
/// # Errors
/// If that depends on a term that this build does not know. A known term that does not fit decides.
pub fn contains(audience: &v1::Audience, node: &NodeFacts) -> Result<bool, UnknownTerm> {
    let mut unknown = false;
    for term in &audience.terms {
        match &term.term {
            Some(term) if !fits(term, node) => return Ok(false),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { Err(UnknownTerm) } else { Ok(true) }
}

fn fits(term: &Term, node: &NodeFacts) -> bool {
    match term {
        Term::Hosts(hosts) => hosts.names.contains(&node.id),
        Term::Zones(zones) => zones.names.contains(&node.zone),
        Term::Label(label) => node.labels.get(&label.key).is_some_and(|value| label.values.contains(value)),
        Term::Workloads(wanted) => wanted.workloads.iter().any(|wanted| {
            let fits = |cluster: &str| wanted.cluster.is_empty() || wanted.cluster == cluster;
            node.workloads.iter().any(|runs| runs.service == wanted.service && fits(&runs.cluster))
        }),
        Term::Percent(percent) => number(&percent.salt, &node.id) < percent.basis_points,
    }
}

/// A host's number from 0 to 9,999 for a salt. The audience of a percentage are the hosts whose number is
/// below its basis points, so a larger percentage of the same salt contains a smaller one.
pub fn number(salt: &str, host: &str) -> u32 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(salt.as_bytes()).update(&[0]).update(host.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    #[allow(clippy::cast_possible_truncation, reason = "below 10,000")]
    let number = (u64::from_be_bytes(first) % u64::from(WHOLE)) as u32;
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeFacts {
        NodeFacts {
            id: "host-1".into(),
            zone: "us-east-1a".into(),
            labels: [("team".into(), "ads".into())].into(),
            workloads: vec![Workload { service: "ads".into(), cluster: "canary".into() }],
        }
    }

    /// Whether the host is in the audience that this text, without tiers, describes.
    fn is_in(text: &str) -> bool {
        let spec: AudienceSpec = text.parse().unwrap();
        contains(&spec.resolve("salt", |_| None).unwrap(), &node()).unwrap()
    }

    #[test]
    fn a_host_is_in_an_audience_if_it_fits_all_terms() {
        for text in [
            "everyone",
            "host=other,host-1",
            "zone=us-east-1a",
            "label:team=ml,ads",
            "workload=ads",
            "workload=web,ads/canary",
            "100%",
            "zone=us-east-1a&label:team=ads&workload=ads",
        ] {
            assert!(is_in(text), "{text}");
        }
        for text in [
            "host=HOST-1",
            "zone=us-east-1b",
            "label:team=ml",
            "label:tier=ads",
            "workload=ads/main",
            "workload=canary",
            "zone=us-east-1a&label:team=ml",
        ] {
            assert!(!is_in(text), "{text}");
        }
    }

    #[test]
    fn nothing_known_fits_no_name() {
        let nobody = NodeFacts::default();
        let spec: AudienceSpec = "zone=a".parse().unwrap();
        assert_eq!(contains(&spec.resolve("", |_| None).unwrap(), &nobody), Ok(false));
    }

    #[test]
    fn an_unknown_term_is_an_error_unless_a_known_one_decides() {
        let unknown = v1::audience::Term { term: None };
        let hosts = |name: &str| v1::audience::Term {
            term: Some(Term::Hosts(v1::audience::Names { names: vec![name.into()] })),
        };
        let audience = |terms: &[v1::audience::Term]| v1::Audience { terms: terms.to_vec() };
        assert_eq!(contains(&audience(std::slice::from_ref(&unknown)), &node()), Err(UnknownTerm));
        assert_eq!(contains(&audience(&[unknown.clone(), hosts("host-1")]), &node()), Err(UnknownTerm));
        assert_eq!(contains(&audience(&[unknown, hosts("host-2")]), &node()), Ok(false));
        assert_eq!(contains(&audience(&[]), &node()), Ok(true));
    }

    /// The table in the documentation is what others test their implementations with.
    #[test]
    fn the_published_vectors_hold() {
        let document = include_str!("../../docs/AUDIENCES.md");
        let (_, vectors) = document.split_once("## Vectors").unwrap();
        let rows = vectors.lines().filter(|line| line.starts_with("| `"));
        let mut checked = 0;
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let (salt, host, expected) = (cells[1], cells[2], cells[3]);
            assert_eq!(number(salt, host).to_string(), expected, "{row}");
            checked += 1;
        }
        assert!(checked >= 8, "{checked}");
    }

    #[test]
    fn a_percentage_is_about_that_many_hosts_and_grows_without_losing_any() {
        let hosts: Vec<NodeFacts> =
            (0..10_000).map(|number| NodeFacts { id: format!("host-{number}"), ..node() }).collect();
        let members = |basis_points, salt: &str| -> Vec<bool> {
            let percent = v1::audience::Percent { basis_points, salt: salt.into() };
            let terms = vec![v1::audience::Term { term: Some(Term::Percent(percent)) }];
            let audience = v1::Audience { terms };
            hosts.iter().map(|host| contains(&audience, host).unwrap()).collect()
        };
        let count = |members: &[bool]| members.iter().filter(|is| **is).count();
        let (ten, fifty) = (members(1000, "a"), members(5000, "a"));
        assert!((900..1100).contains(&count(&ten)) && (4800..5200).contains(&count(&fifty)));
        assert!(ten.iter().zip(&fifty).all(|(ten, fifty)| !ten || *fifty));
        assert_ne!(ten, members(1000, "b"), "another activation gets other first hosts");
        assert_eq!((count(&members(0, "a")), count(&members(WHOLE, "a"))), (0, 10_000));
    }
}
