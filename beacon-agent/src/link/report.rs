//! What Tower is told: what this Beacon holds, and what its Envoys made of it.

mod releases;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tower_common::view::{Composition, Held};
use tower_proto::v1;

use self::releases::Releases;
use crate::{mirror::Mirror, xds::Clients};

/// What a report says of rejections, at most: Tower takes 1 MiB, and many clients may reject at once, each
/// with pages of reasons.
const ERROR_BYTES: usize = 256 << 10;

/// What is told of one rejection; all of it is on the Beacon's own page.
const ONE_ERROR_BYTES: usize = 1024;

/// How many clients are told of.
const CLIENTS: usize = 1000;

/// Reports are looked at this often, and at once if a client has accepted or rejected something of a release:
/// an activation waits for that.
const INTERVAL: Duration = Duration::from_secs(1);

/// How soon after a report the next one may be.
const SHORTEST: Duration = Duration::from_millis(50);

/// Makes reports, and remembers the last that was sent.
#[derive(Debug)]
pub(super) struct Reporter {
    clients: Clients,
    compositions: watch::Receiver<Composition>,
    standings: watch::Receiver<u64>,
    last: Option<v1::Report>,
    /// What the host holds, as far as it was looked at.
    held: Arc<BTreeMap<Arc<str>, Arc<Held>>>,
    releases: Releases,
    /// The last heartbeat that is in force, and since when, until it has been reported.
    applied: Option<(u64, Instant)>,
    /// What became of releases has to be looked at again.
    stale: bool,
    /// When it is time for a report, at the latest, and at the soonest.
    latest: Instant,
    soonest: Instant,
}

impl Reporter {
    /// For a new stream, on which nothing has been reported.
    pub(super) fn new(clients: Clients, mut compositions: watch::Receiver<Composition>) -> Self {
        let held = compositions.borrow_and_update().held.clone();
        let now = Instant::now();
        Self {
            standings: clients.release_changes(),
            clients,
            compositions,
            last: None,
            held,
            releases: Releases::default(),
            applied: None,
            stale: true,
            latest: now,
            soonest: now,
        }
    }

    /// Waits until there may be something to report. Nothing is lost if this is dropped.
    pub(super) async fn due(&mut self) {
        sleep_until(self.soonest).await;
        while !self.stale && !self.releases.has_more() {
            tokio::select! {
                () = sleep_until(self.latest) => break,
                Ok(()) = self.standings.changed() => self.stale = true,
                Ok(()) = self.compositions.changed() => {
                    let held = self.compositions.borrow_and_update().held.clone();
                    self.stale = !Arc::ptr_eq(&held, &self.held);
                    self.held = held;
                }
            }
        }
        let now = Instant::now();
        (self.latest, self.soonest) = (now + INTERVAL, now + SHORTEST);
    }

    /// A heartbeat has come into force. It is reported with what else is, or when it is time to look.
    pub(super) fn applied(&mut self, heartbeat: u64) {
        self.applied = Some((heartbeat, Instant::now()));
    }

    /// The report, if it differs from the last that was sent.
    pub(super) fn changed(&mut self, mirror: &Mutex<Mirror>) -> Option<v1::Report> {
        if std::mem::take(&mut self.stale) {
            self.releases.update(&self.clients.releases(&self.held));
        }
        let clients = bounded(self.clients.reports());
        let mirror = mirror.lock();
        let report = v1::Report {
            revision: mirror.revision(),
            positions: mirror.positions(),
            digest: Some(mirror.store().digest().to_proto()),
            clients,
            releases: Vec::new(),
            applied: None,
        };
        let releases = self.releases.news();
        let applied = self.applied.map(|(heartbeat, at)| v1::Applied {
            heartbeat,
            micros_ago: u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
        let same = releases.is_empty() && applied.is_none() && self.last.as_ref() == Some(&report);
        (!same).then(|| v1::Report { releases, applied, ..report })
    }

    /// Notes that a report has been sent.
    pub(super) fn sent(&mut self, mut report: v1::Report) {
        self.releases.sent(std::mem::take(&mut report.releases));
        if report.applied.take().is_some() {
            self.applied = None;
        }
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
    use tower_common::audience::NodeFacts;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_release_is_reported_as_soon_as_something_became_of_it() {
        let (compositions, receiver) = watch::channel(Composition::default());
        let mirror = Mutex::new(Mirror::new("", NodeFacts::default()));
        let mut reporter = Reporter::new(Clients::new(), receiver);
        let begun = Instant::now();
        reporter.due().await;
        let first = reporter.changed(&mirror).expect("the first report");
        assert!(first.releases.is_empty());
        reporter.sent(first);
        // Nothing happens: it is looked at again after a second, and there is nothing to say.
        reporter.due().await;
        assert_eq!(begun.elapsed(), INTERVAL);
        assert_eq!(reporter.changed(&mirror), None);
        // A heartbeat is told of once, and how long ago it came into force.
        reporter.applied(7);
        reporter.due().await;
        let report = reporter.changed(&mirror).expect("a heartbeat");
        assert_eq!(report.applied, Some(v1::Applied { heartbeat: 7, micros_ago: 1_000_000 }));
        reporter.sent(report);
        assert_eq!(reporter.changed(&mirror), None);
        // Other endpoints are no other releases.
        compositions.send_modify(|composition| composition.complete = true);
        reporter.due().await;
        assert_eq!(begun.elapsed(), 3 * INTERVAL);
        let held = Held { assigned: Some("r1".into()), served: "r1".into(), ..Held::default() };
        compositions.send_modify(|composition| {
            composition.held = Arc::new([("web".into(), Arc::new(held))].into());
        });
        reporter.due().await;
        assert_eq!(begun.elapsed(), 3 * INTERVAL + SHORTEST, "reports do not come closer than that");
        let report = reporter.changed(&mirror).expect("news");
        let told: Vec<_> = report.releases.iter().map(|held| (held.service.as_str(), held.state())).collect();
        assert_eq!(told, [("web", v1::held_release::State::Applied)]);
        assert_eq!(reporter.changed(&mirror).expect("it was not sent").releases.len(), 1);
        reporter.sent(report);
        assert_eq!(reporter.changed(&mirror), None);
    }

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
        let most = report.encoded_len() + releases::BYTES + (8 << 10);
        assert!(most < 1 << 20, "{most} bytes, with releases, digest and positions");
        assert_eq!(report.clients[0].types[0].error.len(), 1024);
        assert!(report.clients[999].types[3].error.contains("too many"), "a rejection stays one");
    }
}
