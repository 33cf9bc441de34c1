//! The actor, from a folder of files to a store that is slow.

use std::{fs, sync::Arc};

use actix::{Actor, Handler, ResponseFuture};
use prometheus_client::registry::Registry;
use tokio::sync::{Mutex, Semaphore};
use tower_common::store::{Store, Transaction};
use tower_proto::v1;

use super::{report::State, *};

/// Takes in as many transactions as there are permits.
#[derive(Clone)]
struct SlowStore {
    permits: Arc<Semaphore>,
    delivered: Arc<Mutex<Vec<Transaction>>>,
}

impl Actor for SlowStore {
    type Context = actix::Context<Self>;
}

impl Handler<Publish> for SlowStore {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, Publish(transaction): Publish, _: &mut Self::Context) -> Self::Result {
        let store = self.clone();
        Box::pin(async move {
            store.delivered.lock().await.push(transaction);
            store.permits.acquire().await.unwrap().forget();
        })
    }
}

struct Fixture {
    temp: tempfile::TempDir,
    store: SlowStore,
    source: SourceHandle,
    registry: Registry,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let lists = temp.path().join("lists");
        fs::create_dir(&lists).unwrap();
        let store = SlowStore { permits: Arc::new(Semaphore::new(0)), delivered: Arc::default() };
        let spec = parse(&format!("file://{}?id=files", lists.display())).unwrap();
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        let recipient = store.clone().start().recipient();
        let [source] = start(vec![spec], "default", temp.path(), Duration::ZERO, recipient, metrics)
            .unwrap()
            .try_into()
            .unwrap();
        Self { temp, store, source, registry }
    }

    fn write(&self, name: &str, address: &str) {
        let text = format!("service: web\nendpoints: [{{address: {address}, port: 80}}]");
        fs::write(self.temp.path().join("lists").join(name), text).unwrap();
    }

    /// Waits until the source reports so.
    async fn until(&self, condition: impl Fn(&SourceReport) -> bool) -> SourceReport {
        for _ in 0..1000 {
            let report = self.source.describe().await;
            if condition(&report) {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.source.describe().await);
    }

    /// Lets one transaction through, and waits for the next.
    async fn pass(&self) -> Transaction {
        let before = self.store.delivered.lock().await.len();
        self.store.permits.add_permits(1);
        for _ in 0..1000 {
            if let Some(next) = self.store.delivered.lock().await.get(before) {
                return next.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no transaction within ten seconds");
    }
}

#[actix::test]
async fn one_transaction_is_on_its_way_and_what_changes_meanwhile_is_one_more() {
    let fixture = Fixture::new();
    fixture.until(|report| report.state == State::Live).await;
    for number in 1..=3 {
        fixture.write(&format!("{number}.yaml"), &format!("10.0.0.{number}"));
        fixture.until(|report| report.endpoints == number).await;
    }
    fs::remove_file(fixture.temp.path().join("lists/1.yaml")).unwrap();
    fixture.write("4.yaml", "0.0.0.0");
    let report = fixture.until(|report| report.endpoints == 2 && report.problem_count == 1).await;
    assert!(report.problems[0].path.ends_with("/lists/4.yaml"), "{report:?}");
    assert_eq!(report.problems[0].reason.split(": ").next(), Some("line 2"), "{report:?}");

    let first = fixture.store.delivered.lock().await.clone();
    let [first] = &first[..] else { panic!("{first:?}") };
    assert_eq!(first.sources[0].state(), v1::SourceState::Loading);
    assert!(first.upserts.is_empty());
    let second = fixture.pass().await;
    assert_eq!(second.sources[0].state(), v1::SourceState::Live);
    let mut store = Store::new();
    store.apply(second);
    let names: Vec<&str> = store.iter().map(|resource| &*resource.key().name).collect();
    assert_eq!(names, ["10.0.0.2:80@files", "10.0.0.3:80@files", "files"]);

    let mut metrics = String::new();
    prometheus_client::encoding::text::encode(&mut metrics, &fixture.registry).unwrap();
    assert!(metrics.contains("tower_source_endpoints{source=\"files\"} 2\n"), "{metrics}");
}

#[actix::test]
async fn a_source_that_was_stopped_says_so_and_removes_nothing() {
    let fixture = Fixture::new();
    fixture.write("1.yaml", "10.0.0.1");
    fixture.until(|report| report.endpoints == 1).await;
    fixture.source.stop().await;
    fixture.source.stop().await;
    let report = fixture.source.describe().await;
    assert_eq!((report.state, report.reason.as_deref()), (State::Lost, Some("the source has been stopped")));
    fixture.store.permits.add_permits(10);
    assert!(fixture.store.delivered.lock().await.iter().all(|transaction| transaction.removals.is_empty()));
}

#[actix::test]
async fn what_was_published_of_a_folder_counts_on_after_a_restart() {
    let fixture = Fixture::new();
    fixture.write("1.yaml", "10.0.0.1");
    let before = fixture.until(|report| report.endpoints == 1).await.position.unwrap();
    fixture.source.stop().await;
    let spec = fixture.source.spec.clone();
    let recipient = fixture.store.clone().start().recipient();
    let again =
        start(vec![spec], "", fixture.temp.path(), Duration::ZERO, recipient, Metrics::default()).unwrap();
    let fixture = Fixture { source: again.into_iter().next().unwrap(), ..fixture };
    let after = fixture.until(|report| report.endpoints == 1).await.position.unwrap();
    assert_eq!(after.incarnation, before.incarnation);
    assert!(after.index > before.index);
}
