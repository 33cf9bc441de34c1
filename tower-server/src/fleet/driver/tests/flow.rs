//! The driver with a registry on an embedded log, and Beacons that say what they are told to.

use std::collections::BTreeMap;

use tower_common::{audience::NodeFacts, view::evaluate};
use tower_proto::v1::{activation_ended::Outcome, held_release::State as Said};

use super::{
    super::{
        super::testing::{held, node, report},
        *,
    },
    SECOND,
};
use crate::registry::{
    LogState,
    commands::{Abort, Activate, Plan, PlannedStep, RollBack, Traffic, Upload},
    testing::{by, endpoint, issue, options, store, until},
};

const DOCUMENT: &str = "apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: web, owner: team-web}
spec:
  callers:
    subsets: {stable: {track: stable}, canary: {track: canary}}
    routes:
    - name: all
      backendRefs: [{subset: stable, weight: 100}, {subset: canary, weight: 0}]
";

/// A Tower with Beacons.
struct Tower {
    _dir: tempfile::TempDir,
    registry: Registry,
    fleet: Arc<Fleet>,
    /// What hosts answer to releases, if it is not that they accept them.
    answers: BTreeMap<(&'static str, u64), Said>,
    hosts: Vec<&'static str>,
}

impl Tower {
    async fn new(hosts: &[&'static str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fleet = Arc::new(Fleet::default());
        let store = store();
        for track in ["stable", "canary"] {
            endpoint(&store, "web", track).await;
        }
        let mut options = options(dir.path(), &store);
        options.hosts = fleet.clone();
        let registry = crate::registry::start(options).await.unwrap();
        until(&registry, |status| status.state == LogState::Live).await;
        registry.submit(issue("admin", "admin"), by(TOWER, "")).await.unwrap();
        let tower = Self { _dir: dir, registry, fleet, answers: BTreeMap::new(), hosts: hosts.to_vec() };
        for (stream, host) in hosts.iter().enumerate() {
            tower.fleet.connect(&node(host, "a"), stream as u64);
            tower.fleet.report(host, stream as u64, &report(1, &[]));
        }
        tower
    }

    fn drive(&self, deadline: Duration) {
        let (registry, fleet) = (self.registry.clone(), self.fleet.clone());
        actix::spawn(run(Options { registry, fleet, run: "t".into(), deadline }));
    }

    async fn submit(&self, command: Command) -> crate::registry::Answer {
        self.registry.submit(command, by("admin", "")).await.unwrap()
    }

    async fn upload(&self, change: &str) -> u64 {
        let text = DOCUMENT.replace("name: all", &format!("name: {change}"));
        let upload = Upload { service: "web".into(), file: String::new(), text };
        self.submit(Command::Upload(upload)).await.version.unwrap()
    }

    /// Activates a version: to this host, and then to all, without pauses.
    async fn activate(&self, version: u64, first: &str) -> String {
        let step = PlannedStep { audience: format!("host={first}").parse().unwrap(), pause_ms: Some(0) };
        let all = PlannedStep { pause_ms: Some(0), ..PlannedStep::default() };
        let plan = Plan { steps: Some(vec![step, all]), ..Plan::default() };
        let activate = Activate { service: "web".into(), version, plan, again: false };
        self.submit(Command::Activate(activate)).await.activation.unwrap()
    }

    /// Each host says what it answers to the release that it has.
    fn answer(&self) {
        let revision = self.registry.revision_of("web");
        let state = self.registry.state();
        let service = state.service("web").unwrap();
        for (stream, host) in self.hosts.iter().enumerate() {
            let facts = NodeFacts::from(&node(host, "a"));
            let release = evaluate(&service.assignment, &facts).unwrap();
            let version = service.version_of(release).unwrap_or(0);
            let said = self.answers.get(&(*host, version)).copied().unwrap_or(Said::Accepted);
            self.fleet.report(host, stream as u64, &report(revision, &[held("web", release, said)]));
        }
    }

    /// Lets hosts answer until the activation has ended.
    async fn ended(&self, id: &str) -> v1::ActivationEnded {
        let mut applied = self.registry.applied();
        for _ in 0..1000 {
            self.answer();
            let state = self.registry.state();
            if let Some(ended) = state.activation(id).and_then(|(_, record)| record.ended.clone()) {
                return ended;
            }
            let _ = tokio::time::timeout(Duration::from_millis(10), applied.changed()).await;
        }
        panic!("{:?}", status(&self.registry, &self.fleet, &self.registry.state(), id));
    }

    /// The version that everybody has, if there are no rules.
    fn version(&self) -> Option<u64> {
        self.registry.read(|state| {
            let service = state.service("web").unwrap();
            let alone = service.assignment.rules.is_empty();
            alone.then(|| service.version_of(&service.assignment.default_release).unwrap_or(0))
        })
    }

    fn steps(&self) -> Vec<u64> {
        self.registry.read(|state| {
            let service = state.service("web").unwrap();
            let with_steps = service.activations.iter().map(|record| u64::from(record.step));
            with_steps.collect()
        })
    }
}

#[actix::test]
async fn an_activation_goes_on_as_hosts_accept_it_and_succeeds() {
    let tower = Tower::new(&["h1", "h2"]).await;
    tower.drive(DEADLINE);
    let version = tower.upload("one").await;
    let id = tower.activate(version, "h1").await;
    assert_eq!(tower.ended(&id).await.outcome(), Outcome::Succeeded);
    assert_eq!((tower.version(), tower.steps()), (Some(1), vec![1]));
    let state = tower.registry.state();
    let (_, _, sight, why) = status(&tower.registry, &tower.fleet, &state, &id).unwrap();
    assert_eq!((sight.counts.total, sight.counts.accepted, &*why), (2, 2, ""));
}

#[actix::test]
async fn the_first_rejection_takes_it_back_before_anybody_else_has_it() {
    let mut tower = Tower::new(&["h1", "h2"]).await;
    tower.answers.insert(("h1", 2), Said::Rejected);
    tower.drive(DEADLINE);
    for change in ["one", "two"] {
        let version = tower.upload(change).await;
        let id = tower.activate(version, "h1").await;
        let ended = tower.ended(&id).await;
        if version == 1 {
            assert_eq!(ended.outcome(), Outcome::Succeeded);
            continue;
        }
        let rejection = ended.rejection.clone().unwrap();
        assert_eq!(
            (ended.outcome(), &*rejection.host, &*rejection.error),
            (Outcome::Rejected, "h1", "it is wrong")
        );
    }
    assert_eq!((tower.version(), tower.steps()), (Some(1), vec![1, 0]), "h2 never had it");
    tower.answer();
    let state = tower.registry.state();
    let record = state.service("web").unwrap().activations.last().unwrap();
    let id = record.id().to_owned();
    let (_, _, sight, _) = status(&tower.registry, &tower.fleet, &state, &id).unwrap();
    assert!(sight.hosts.iter().all(|host| host.release == host.wanted), "nobody has it any more: {sight:?}");
}

#[actix::test]
async fn a_rejection_at_the_last_step_takes_it_back_from_all() {
    let mut tower = Tower::new(&["h1", "h2"]).await;
    tower.answers.insert(("h2", 1), Said::Rejected);
    tower.drive(DEADLINE);
    let version = tower.upload("one").await;
    let id = tower.activate(version, "h1").await;
    let ended = tower.ended(&id).await;
    assert_eq!((ended.outcome(), ended.rejection.unwrap().host), (Outcome::Rejected, "h2".to_owned()));
    assert_eq!((tower.version(), tower.steps()), (Some(0), vec![1]));
}

#[actix::test]
async fn a_host_that_does_not_answer_times_out_by_name() {
    let mut tower = Tower::new(&["h1", "h2"]).await;
    tower.answers.insert(("h1", 1), Said::Pending);
    tower.drive(SECOND / 5);
    let version = tower.upload("one").await;
    let id = tower.activate(version, "h1").await;
    let ended = tower.ended(&id).await;
    assert_eq!(ended.outcome(), Outcome::TimedOut);
    assert_eq!(ended.detail, "step 1: 0 of 1 hosts have accepted it; not h1 (an Envoy has not answered yet)");
    assert_eq!(tower.version(), Some(0));
}

#[actix::test]
async fn another_process_goes_on_where_the_one_before_was() {
    let tower = Tower::new(&["h1", "h2"]).await;
    let version = tower.upload("one").await;
    let id = tower.activate(version, "h1").await;
    tower.answer();
    tower.drive(DEADLINE);
    assert_eq!(tower.ended(&id).await.outcome(), Outcome::Succeeded);
}

#[actix::test]
async fn a_rollback_is_watched_like_anything_else_and_what_it_supersedes_is_over() {
    let mut tower = Tower::new(&["h1", "h2"]).await;
    tower.answers.insert(("h1", 2), Said::Pending);
    tower.drive(DEADLINE);
    let version = tower.upload("one").await;
    let first = tower.activate(version, "h1").await;
    tower.ended(&first).await;
    let version = tower.upload("two").await;
    let stuck = tower.activate(version, "h1").await;
    let back = tower.submit(Command::RollBack(RollBack { service: "web".into(), to: None })).await;
    assert_eq!(tower.ended(&stuck).await.outcome(), Outcome::Superseded);
    assert_eq!(tower.ended(&back.activation.unwrap()).await.outcome(), Outcome::Succeeded);
    assert_eq!(tower.version(), Some(1));
    let abort = Abort { service: "web".into(), activation: Some(stuck) };
    assert!(tower.submit(Command::Abort(abort)).await.events.is_empty());
}

#[actix::test]
async fn weights_for_a_time_return_by_themselves() {
    let tower = Tower::new(&["h1"]).await;
    tower.drive(DEADLINE);
    let version = tower.upload("one").await;
    let id = tower.activate(version, "h1").await;
    tower.ended(&id).await;
    let weights = [("stable".to_owned(), 90), ("canary".to_owned(), 10)].into();
    let plan = Plan { at_once: true, ttl_ms: Some(300), ..Plan::default() };
    let traffic = Traffic { service: "web".into(), weights, plan, route: None };
    let id = tower.submit(Command::Traffic(traffic)).await.activation.unwrap();
    let mut ended = tower.ended(&id).await;
    for _ in 0..1000 {
        if ended.outcome() == Outcome::Expired {
            break;
        }
        assert_eq!(ended.outcome(), Outcome::Succeeded);
        tokio::time::sleep(Duration::from_millis(10)).await;
        ended = tower.ended(&id).await;
    }
    assert_eq!((ended.outcome(), tower.version()), (Outcome::Expired, Some(1)));
}
