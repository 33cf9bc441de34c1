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
    /// What became of releases has to be looked at again.
    stale: bool,
    /// The last probe that has been applied, and when, until that is reported.
    probe: Option<(u64, Instant)>,
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
            stale: true,
            probe: None,
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

    /// A probe has been applied, unless it is 0.
    pub(super) fn applied(&mut self, probe: u64) {
        if probe > 0 {
            self.probe = Some((probe, Instant::now()));
        }
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
            ..v1::Report::default()
        };
        let releases = self.releases.news();
        let same = releases.is_empty() && self.probe.is_none() && self.last.as_ref() == Some(&report);
        let (probe, probe_us_ago) = self.probe.map_or((0, 0), |(probe, at)| (probe, micros(at.elapsed())));
        (!same).then(|| v1::Report { releases, probe, probe_us_ago, ..report })
    }

    /// Notes that a report has been sent.
    pub(super) fn sent(&mut self, mut report: v1::Report) {
        self.releases.sent(std::mem::take(&mut report.releases));
        self.probe = None;
        (report.probe, report.probe_us_ago) = (0, 0);
        self.last = Some(report);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
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
        // Other endpoints are no other releases.
        compositions.send_modify(|composition| composition.complete = true);
        reporter.due().await;
        assert_eq!(begun.elapsed(), 2 * INTERVAL);
        let held = Held { assigned: Some("r1".into()), served: "r1".into(), ..Held::default() };
        compositions.send_modify(|composition| {
            composition.held = Arc::new([("web".into(), Arc::new(held))].into());
        });
        reporter.due().await;
        assert_eq!(begun.elapsed(), 2 * INTERVAL + SHORTEST, "reports do not come closer than that");
        let report = reporter.changed(&mirror).expect("news");
        let told: Vec<_> = report.releases.iter().map(|held| (held.service.as_str(), held.state())).collect();
        assert_eq!(told, [("web", v1::held_release::State::Applied)]);
        assert_eq!(reporter.changed(&mirror).expect("it was not sent").releases.len(), 1);
        reporter.sent(report);
        assert_eq!(reporter.changed(&mirror), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_is_told_once_with_how_long_ago_it_was_applied() {
        let (_compositions, receiver) = watch::channel(Composition::default());
        let mirror = Mutex::new(Mirror::new("", NodeFacts::default()));
        let mut reporter = Reporter::new(Clients::new(), receiver);
        let first = reporter.changed(&mirror).expect("the first report");
        assert_eq!(first.probe, 0);
        reporter.sent(first);
        reporter.applied(0);
        assert_eq!(reporter.changed(&mirror), None);
        reporter.applied(7);
        tokio::time::advance(Duration::from_millis(300)).await;
        let report = reporter.changed(&mirror).expect("a probe");
        assert_eq!((report.probe, report.probe_us_ago), (7, 300_000));
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
