//! The API as a whole: that routes and description are the same, and what every request has in common.

use std::{collections::BTreeSet, sync::Arc};

use actix_web::{
    App, Error,
    body::MessageBody,
    dev::{Service, ServiceResponse},
    http::{Method, header},
    test, web,
};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower_common::{api::problem::MEDIA_TYPE, served::Served};
use tower_proto::v1;

use super::{
    AppState, configure,
    openapi::{DOCUMENT, operations},
    stream::Streams,
    testing,
};
use crate::{
    auth::{gate::Credentials, identity::Known, token::Secret},
    fanout::beacons::Beacons,
    registry::{Command, commands::IssueToken, permission::TOWER, testing::by},
};

async fn state(folder: &std::path::Path) -> AppState {
    let registry = testing::registry(folder).await;
    AppState {
        carried_out: crate::decisions::follow(registry.clone(), Arc::default()),
        registry,
        log_target: "embedded".into(),
        streams: Streams::new(CancellationToken::new()),
        store: testing::store(),
        sources: Arc::default(),
        beacons: Arc::new(Beacons::default()),
        tls: None,
        scope: String::new(),
        costly: Arc::default(),
        served: Served::All,
        warn_services: 1000,
        metrics: Arc::new(Registry::default()),
    }
}

/// A token of each of these roles.
fn issue(roles: &[&str], known: &Mutex<Vec<Known>>) -> String {
    let secret = Secret::generate().unwrap();
    let issued = v1::TokenIssued {
        id: secret.id().to_owned(),
        name: "tester".into(),
        hash: secret.hash().to_vec().into(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        ..Default::default()
    };
    known.lock().push(Known { issued, revoked: false });
    secret.reveal()
}

struct Answer {
    status: u16,
    media_type: String,
    allow: String,
    body: Value,
}

async fn ask(
    app: &impl Service<actix_http::Request, Response = ServiceResponse<impl MessageBody>, Error = Error>,
    token: Option<&str>,
    method: &str,
    path: &str,
    body: Option<(&str, &[u8])>,
) -> Answer {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = test::TestRequest::default().method(method).uri(path);
    if let Some(token) = token {
        request = request.insert_header((header::AUTHORIZATION, format!("Bearer {token}")));
    }
    if let Some((media_type, body)) = body {
        request = request.insert_header((header::CONTENT_TYPE, media_type)).set_payload(body.to_vec());
    }
    let (head, body) = match app.call(request.to_request()).await {
        Ok(response) => {
            let (_, response) = response.into_parts();
            let (head, body) = response.into_parts();
            let endless =
                head.headers().get(header::CONTENT_TYPE).is_some_and(|it| it == "text/event-stream");
            let body = if endless { None } else { actix_web::body::to_bytes(body).await.ok() };
            (head, body.unwrap_or_default())
        }
        Err(error) => {
            let (head, body) = error.error_response().into_parts();
            (head, actix_web::body::to_bytes(body).await.unwrap_or_default())
        }
    };
    let text =
        |name| head.headers().get(name).map_or("", |value: &header::HeaderValue| value.to_str().unwrap());
    Answer {
        status: head.status().as_u16(),
        media_type: text(header::CONTENT_TYPE).to_owned(),
        allow: text(header::ALLOW).to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }
}

macro_rules! app {
    ($known:expr) => {{
        let folder = tempfile::tempdir().unwrap();
        app!($known, state(folder.path()).await)
    }};
    ($known:expr, $state:expr) => {{
        let known = $known.clone();
        let find =
            move |id: &str| Ok(known.lock().iter().find(|known: &&Known| known.issued.id == id).cloned());
        let app = App::new()
            .app_data(web::Data::new($state))
            .app_data(web::Data::new(Credentials::new(find)))
            .configure(configure);
        test::init_service(app).await
    }};
}

#[actix_web::test]
async fn the_published_description_is_the_handlers_own() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schema/openapi.json");
    let now = format!("{}\n", serde_json::to_string_pretty(&*DOCUMENT).unwrap());
    if std::env::var_os("TOWER_BLESS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(published == now, "docs/schema/openapi.json is old: run the test with TOWER_BLESS=1");
}

const METHODS: [&str; 7] = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"];

/// A path with something in place of its parameters.
fn example(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect::<Vec<_>>().join("/")
}

#[actix_web::test]
async fn what_is_described_is_there_and_takes_no_other_method() {
    let known = Arc::new(Mutex::new(Vec::new()));
    let app = app!(known);
    let admin = issue(&["admin"], &known);
    for (path, item) in &DOCUMENT.paths.paths {
        let described: BTreeSet<&str> = operations(item).map(|(method, _)| method).collect();
        for method in METHODS {
            let answer = ask(&app, Some(&admin), method, &example(path), None).await;
            if described.contains(method) {
                assert_ne!(answer.status, 405, "{method} {path}");
                let nothing = answer.status == 404 && answer.body["detail"].to_string().contains("no page");
                assert!(!nothing, "{method} {path} is described, and not there");
            } else {
                assert_eq!(answer.status, 405, "{method} {path}: {}", answer.body);
                let allowed: BTreeSet<&str> = answer.allow.split(", ").collect();
                assert_eq!(allowed, described, "{path}");
            }
        }
    }
}

#[actix_web::test]
async fn nobody_gets_anything_but_what_is_open() {
    let known = Arc::new(Mutex::new(Vec::new()));
    let app = app!(known);
    let open =
        ["/", "/healthz", "/readyz", "/metrics", "/api/v1/openapi.json", "/api/v1/schema/service.json"];
    let nobody = Secret::generate().unwrap().reveal();
    for (path, item) in &DOCUMENT.paths.paths {
        for (method, operation) in operations(item) {
            let open =
                open.contains(&path.as_str()) || (method, path.as_str()) == ("POST", "/api/v1/session");
            let none = operation.security.as_ref().is_some_and(|needed| needed.len() == 1);
            assert_eq!(open, none, "{method} {path}: the description says otherwise");
            for token in [None, Some(nobody.as_str()), Some("rubbish")] {
                let answer = ask(&app, token, method, &example(path), None).await;
                assert_eq!(answer.status == 401, !open, "{method} {path}: {}", answer.body);
            }
        }
    }
    for path in ["/nothing", "/api/v1/nothing", "/api/v1//sources", "/%2Fapi/v1/sources", "//"] {
        assert_eq!(ask(&app, None, "GET", path, None).await.status, 401, "{path}");
    }
    let nothing = issue(&["emperor"], &known);
    assert_eq!(ask(&app, Some(&nothing), "GET", "/api/v1/sources", None).await.status, 403);
}

#[actix_web::test]
async fn whatever_is_wrong_is_a_problem_that_names_it() {
    let known = Arc::new(Mutex::new(Vec::new()));
    let admin = issue(&["admin"], &known);
    let folder = tempfile::tempdir().unwrap();
    let state = state(folder.path()).await;
    let issued = known.lock()[0].issued.clone();
    state.registry.submit(Command::IssueToken(IssueToken { issued }), by(TOWER, "")).await.unwrap();
    let app = app!(known, state);
    let json_type = "application/json";
    let large = vec![b' '; 3 << 20];
    let release = "/api/v1/holds/zk-1/release";
    for (method, path, body, status, field) in [
        ("GET", "/api/v1/nothing", None, 404, None),
        ("POST", "/api/v1/services", None, 405, None),
        ("GET", "/api/v1/services?limit=0", None, 400, Some("limit")),
        ("GET", "/api/v1/services?limit=x", None, 400, Some("limit")),
        ("GET", "/api/v1/services?cursor=x", None, 422, Some("cursor")),
        ("GET", "/api/v1/services?sort=size", None, 400, Some("sort")),
        ("GET", "/api/v1/services?sort=name&sort=name", None, 400, Some("sort")),
        ("GET", "/api/v1/services?serach=x", None, 400, Some("serach")),
        ("POST", release, Some((json_type, &b"{"[..])), 400, Some("body")),
        ("POST", release, Some((json_type, b"{} {}")), 400, Some("body")),
        ("POST", release, Some((json_type, b"[]")), 400, Some("body")),
        ("POST", release, Some((json_type, br#"{"reason": 7}"#)), 400, Some("reason")),
        ("POST", release, Some((json_type, br#"{"raeson": "r"}"#)), 400, Some("raeson")),
        ("POST", release, Some(("text/plain", b"r")), 415, Some("Content-Type")),
        ("POST", release, Some((json_type, &large)), 413, None),
        ("POST", release, Some((json_type, br#"{"reason": "r"}"#)), 404, None),
        ("POST", release, None, 404, None),
        ("POST", "/api/v1/sources/zk/adopt", None, 404, None),
    ] {
        let answer = ask(&app, Some(&admin), method, path, body).await;
        let what = format!("{method} {path}: {}", answer.body);
        assert_eq!((answer.status, answer.media_type.as_str()), (status, MEDIA_TYPE), "{what}");
        assert_eq!(answer.body["status"], status, "{what}");
        assert_eq!(answer.body["field"], field.map_or(Value::Null, |field| json!(field)), "{what}");
        for member in ["type", "title", "code", "detail", "applied"] {
            assert!(answer.body[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {what}");
        }
    }
}
