//! Documents on their way into the log, and out again as resources.

use tower_proto::v1::{self, part_edited::Owner as PartOwner};

use super::Source;
use crate::{
    registry::{
        Answer, Command, LogState, RefusalKind, Registry, State, SubmitError,
        commands::{Activate, EditPart, Plan, RollBack, Traffic, Upload},
        permission::TOWER,
        start,
        testing::{by, endpoint, issue, options, store, until},
    },
    store_actor::{Describe, StoreActor},
};

const HEAD: &str = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {name: web, owner: team-web}\n";

const SPLIT: &str = "spec:
  callers:
    subsets: {stable: {track: stable}, canary: {track: canary}}
    routes:
    - name: all
      backendRefs: [{subset: stable, weight: 100}, {subset: canary, weight: 0}]
";

struct Fixture {
    _dir: tempfile::TempDir,
    store: actix::Addr<StoreActor>,
    registry: Registry,
}

impl Fixture {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = store();
        let registry = start(options(dir.path(), &store)).await.unwrap();
        until(&registry, |status| status.state == LogState::Live).await;
        registry.submit(issue("admin", "admin"), by(TOWER, "")).await.unwrap();
        Self { _dir: dir, store, registry }
    }

    async fn run(&self, command: Command) -> Result<Answer, SubmitError> {
        self.registry.submit(command, by("admin", "")).await
    }

    async fn upload(&self, spec: &str) -> Result<Answer, SubmitError> {
        let text = format!("{HEAD}{spec}");
        let upload = Upload { service: "web".into(), file: "web.yaml".into(), text };
        self.run(Command::Upload(upload)).await
    }

    async fn activate(&self, version: u64) -> Result<Answer, SubmitError> {
        let plan = Plan { at_once: true, ..Plan::default() };
        self.run(Command::Activate(Activate { service: "web".into(), version, plan, again: false })).await
    }

    async fn edit(&self, owner: PartOwner, spec: &str) {
        let text = format!("apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {{}}\nspec: {spec}\n");
        let edit = EditPart { owner, service: None, file: "part.yaml".into(), text: Some(text) };
        self.run(Command::EditPart(edit)).await.unwrap();
    }

    async fn resources(&self) -> usize {
        self.store.send(Describe).await.unwrap().resources
    }

    /// The release that everybody has.
    fn made(&self) -> v1::ReleaseMade {
        self.registry.read(|state: &State| {
            let service = state.service("web").unwrap();
            service.release(&service.assignment.default_release).unwrap().clone()
        })
    }
}

fn refusal(result: Result<Answer, SubmitError>) -> crate::registry::Refusal {
    match result {
        Err(SubmitError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[actix::test]
async fn a_document_is_kept_as_it_was_sent_and_published_when_it_is_activated() {
    let fixture = Fixture::new().await;
    let before = fixture.resources().await;
    let answer = fixture.upload(SPLIT).await.unwrap();
    assert_eq!((answer.version, fixture.resources().await), (Some(1), before));
    let state = fixture.registry.state();
    let uploaded = state.service("web").unwrap().version(1).unwrap().uploaded.clone().unwrap();
    let body = fixture.registry.body(&uploaded.body).await.unwrap();
    assert_eq!((&body[..], &*uploaded.owner), (format!("{HEAD}{SPLIT}").as_bytes(), "team-web"));
    let again = fixture.upload(&format!("# The same.\n{SPLIT}")).await.unwrap();
    assert_eq!((again.version, &*again.note), (Some(1), "web@1 has the same content"));
    fixture.activate(1).await.unwrap();
    let bundle = fixture.registry.body(&fixture.made().bundle).await.unwrap();
    let parts = <v1::Bundle as prost::Message>::decode(bundle).unwrap().parts.len();
    assert_eq!(fixture.resources().await, before + parts + 1, "the parts, and the assignment");
}

#[actix::test]
async fn a_wrong_document_is_refused_with_its_places() {
    let fixture = Fixture::new().await;
    let wrong = refusal(fixture.upload("spec: {callers: {routes: [{name: a, retry: {}}]}}\n").await);
    assert_eq!((wrong.code, wrong.kind), ("invalid-document", RefusalKind::Invalid));
    assert_eq!((&*wrong.findings[0].file, wrong.findings[0].line), ("web.yaml", 4));
    let upload = Upload { service: "ads".into(), file: "web.yaml".into(), text: format!("{HEAD}{SPLIT}") };
    assert_eq!(refusal(fixture.run(Command::Upload(upload)).await).code, "another-service");
    let foreign = refusal(fixture.upload("spec: {patches: []}\n").await);
    assert_eq!(foreign.owner.as_deref(), Some("platform"), "{foreign}");
    assert_eq!(refusal(fixture.activate(1).await).code, "no-such-service");
}

#[actix::test]
async fn a_dependency_that_nobody_knows_is_refused() {
    let fixture = Fixture::new().await;
    let depends = "spec: {outbound: {dependencies: [{service: ads}]}}\n";
    let wrong = refusal(fixture.upload(depends).await);
    assert!(wrong.message.contains("nobody knows the service \"ads\""), "{wrong}");
    endpoint(&fixture.store, "ads", "stable").await;
    fixture.upload(depends).await.unwrap();
}

#[actix::test]
async fn parts_go_into_what_is_activated_next_and_a_way_back_takes_those_in_force() {
    let fixture = Fixture::new().await;
    fixture.upload(SPLIT).await.unwrap();
    fixture.activate(1).await.unwrap();
    let first = fixture.made();
    fixture.edit(PartOwner::Platform, "{callers: {connectTimeout: 3s}}").await;
    assert_eq!(fixture.made(), first);
    fixture.activate(1).await.unwrap();
    let second = fixture.made();
    assert_eq!((second.version, second.platform), (1, 1));
    assert_ne!(second.release, first.release);

    fixture.upload(&SPLIT.replace("name: all", "name: every")).await.unwrap();
    fixture.activate(2).await.unwrap();
    fixture.edit(PartOwner::Platform, "{callers: {connectTimeout: 4s}}").await;
    fixture.run(Command::RollBack(RollBack { service: "web".into(), to: Some(1) })).await.unwrap();
    assert_eq!(fixture.made(), second, "not the newest part, which nobody has activated");
}

#[actix::test]
async fn weights_make_a_version_and_go_only_where_somebody_is() {
    let fixture = Fixture::new().await;
    endpoint(&fixture.store, "web", "stable").await;
    fixture.upload(SPLIT).await.unwrap();
    fixture.activate(1).await.unwrap();
    let traffic = |canary| {
        let weights = [("stable".to_owned(), 100 - canary), ("canary".to_owned(), canary)].into();
        let plan = Plan { at_once: true, ..Plan::default() };
        Command::Traffic(Traffic { service: "web".into(), weights, plan, route: None })
    };
    let empty = refusal(fixture.run(traffic(10)).await);
    assert_eq!((empty.code, empty.field.as_deref()), ("empty-subset", Some("weights.canary")));
    endpoint(&fixture.store, "web", "canary").await;
    let answer = fixture.run(traffic(10)).await.unwrap();
    assert_eq!(answer.version, Some(2));
    let draft = fixture.registry.draft("web", &Source::Version(2)).await.unwrap();
    let refs = &draft.effective.document.spec.callers.routes[0].backend_refs;
    assert_eq!(refs.iter().map(|to| to.weight()).collect::<Vec<_>>(), [90, 10]);
    let back = fixture.run(traffic(0)).await.unwrap();
    assert_eq!(back.version, Some(1), "the same content is the same version");
    let unknown = [("nobody".to_owned(), 1)].into();
    let wrong = Traffic { service: "web".into(), weights: unknown, ..Traffic::default() };
    assert_eq!(refusal(fixture.run(Command::Traffic(wrong)).await).code, "invalid-document");
}
