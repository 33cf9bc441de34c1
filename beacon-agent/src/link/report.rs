//! What Tower is told: what this Beacon holds, and what its Envoys made of it.

use parking_lot::Mutex;
use tower_proto::v1;

use crate::{mirror::Mirror, xds::Clients};

/// What a report says of rejections, at most: Tower takes 1 MiB, and many clients may reject at once, each
/// with pages of reasons.
const ERROR_BYTES: usize = 256 << 10;

/// What is told of one rejection; all of it is on the Beacon's own page.
const ONE_ERROR_BYTES: usize = 1024;

/// How many clients are told of.
const CLIENTS: usize = 1000;

/// Makes reports, and remembers the last that was sent.
#[derive(Debug)]
pub(super) struct Reporter {
    clients: Clients,
    last: Option<v1::Report>,
}

impl Reporter {
    /// For a new stream, on which nothing has been reported.
    pub(super) fn new(clients: Clients) -> Self {
        Self { clients, last: None }
    }

    /// The report, if it differs from the last that was sent.
    pub(super) fn changed(&self, mirror: &Mutex<Mirror>) -> Option<v1::Report> {
        let clients = bounded(self.clients.reports());
        let mirror = mirror.lock();
        let report = v1::Report {
            revision: mirror.revision(),
            positions: mirror.positions(),
            digest: Some(mirror.store().digest().to_proto()),
            clients,
            releases: Vec::new(),
        };
        (self.last.as_ref() != Some(&report)).then_some(report)
    }

    /// Notes that a report has been sent.
    pub(super) fn sent(&mut self, report: v1::Report) {
        self.last = Some(report);
    }
}

/// Shortens what is said of clients to what a report can hold: types first lose the ends of their errors,
/// then, if there are very many, the errors, and last the clients.
fn bounded(mut clients: Vec<v1::ClientReport>) -> Vec<v1::ClientReport> {
    let mut left = ERROR_BYTES;
    clients.truncate(CLIENTS);
    for report in clients.iter_mut().flat_map(|client| &mut client.types) {
        let end = report.error.floor_char_boundary(ONE_ERROR_BYTES.min(left));
        if end == 0 && !report.error.is_empty() {
            "too many to tell; see the Beacon's page".clone_into(&mut report.error);
            continue;
        }
        report.error.truncate(end);
        left -= end;
    }
    clients
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn a_report_fits_whatever_the_clients_say() {
        let rejected = |number: usize| v1::TypeReport {
            type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster".into(),
            rejected_version: format!("{number:032}"),
            error: "ü".repeat(4000),
            ..Default::default()
        };
        let client = |number: usize| v1::ClientReport {
            node_id: format!("envoy-{number}"),
            types: (0..4).map(rejected).collect(),
        };
        let bounded = bounded((0..3000).map(client).collect());
        let report = v1::Report { clients: bounded, ..Default::default() };
        assert!(report.encoded_len() < 1 << 20, "{} bytes", report.encoded_len());
        assert_eq!(report.clients[0].types[0].error.len(), 1024);
        assert!(report.clients[999].types[3].error.contains("too many"), "a rejection stays one");
    }
}
