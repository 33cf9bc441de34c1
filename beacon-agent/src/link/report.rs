//! What Tower is told: what this Beacon holds, and what its Envoys made of it.

use parking_lot::Mutex;
use tower_proto::v1;

use crate::{mirror::Mirror, xds::Clients};

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
        let clients = self.clients.reports();
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
