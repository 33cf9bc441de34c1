//! Speaking to Tower's API.

use std::{fs, time::Duration};

use rand::Rng;
use reqwest::{
    Certificate, Client as Http, Identity, Method, RequestBuilder, Response,
    header::{self, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};
use tower_common::api::{Code, IDEMPOTENCY_KEY, PREFIX, Problem, YAML};
use tower_common::clock::unix_millis;

use crate::{
    context::Resolved,
    failure::{Exit, Failure},
    findings, period,
};

/// How long Tower may take for an answer. Events and waits come by streams and by asking again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Tower, and who asks it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: Http,
    tower: String,
    token: Option<HeaderValue>,
}

/// What is sent.
pub(crate) enum Body<'a> {
    /// Nothing.
    Nothing,
    /// JSON.
    Json(&'a serde_json::Value),
    /// A document in YAML, or in JSON, which is YAML as well.
    Document(&'a str),
}

impl Client {
    /// For this Tower.
    pub(crate) fn new(target: &Resolved) -> Result<Self, Failure> {
        let mut builder = Http::builder()
            .user_agent(concat!("pcloud/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would carry the token to where it was not meant for.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(file) = &target.tls_ca {
            let pem = fs::read(file)
                .map_err(|error| Failure::usage(format!("--tls-ca {}: {error}", file.display())))?;
            let certificates = Certificate::from_pem_bundle(&pem)
                .map_err(|error| Failure::usage(format!("--tls-ca {}: {}", file.display(), chain(&error))))?;
            builder = builder.tls_certs_only(certificates);
        }
        if let Some(file) = &target.tls_identity {
            let wrong = |what: String| Failure::usage(format!("--tls-identity {}: {what}", file.display()));
            let pem = fs::read(file).map_err(|error| wrong(error.to_string()))?;
            let identity = Identity::from_pem(&pem).map_err(|error| wrong(chain(&error)))?;
            builder = builder.identity(identity);
        }
        let token = target.token.as_ref().map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
                Failure::usage(format!("the token from {} has characters that none has", target.token_from))
            })?;
            value.set_sensitive(true);
            Ok::<_, Failure>(value)
        });
        Ok(Self {
            http: builder.build().map_err(|error| Failure::usage(chain(&error)))?,
            tower: target.tower.clone(),
            token: token.transpose()?,
        })
    }

    /// Tower's address.
    pub(crate) fn tower(&self) -> &str {
        &self.tower
    }

    /// Reads.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, Failure> {
        let request = self.request(Method::GET, path).query(query).timeout(ANSWER_TIMEOUT);
        self.answer(request, false).await
    }

    /// Reads text, such as a document as it was uploaded.
    pub(crate) async fn get_text(&self, path: &str, accept: &str) -> Result<String, Failure> {
        let request = self.request(Method::GET, path).header(header::ACCEPT, accept).timeout(ANSWER_TIMEOUT);
        let response = self.send(request, false).await?;
        response.text().await.map_err(|error| self.unreachable(&error, false))
    }

    /// Opens a stream of events.
    pub(crate) async fn events(
        &self,
        path: &str,
        query: &impl Serialize,
        last: Option<&str>,
    ) -> Result<Response, Failure> {
        let mut request =
            self.request(Method::GET, path).query(query).header(header::ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        self.send(request, false).await
    }

    /// Changes. The command's id goes along, so that one that comes twice is one.
    pub(crate) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Body<'_>,
        if_match: Option<&str>,
        query: &impl Serialize,
    ) -> Result<T, Failure> {
        let id: u128 = rand::rng().random();
        let mut request = self
            .request(method, path)
            .query(query)
            .header(IDEMPOTENCY_KEY, format!("{id:032x}"))
            .timeout(ANSWER_TIMEOUT);
        if let Some(etag) = if_match {
            request = request.header(header::IF_MATCH, quoted(etag));
        }
        request = match body {
            Body::Nothing => request,
            Body::Json(value) => request.json(value),
            Body::Document(text) => request.header(header::CONTENT_TYPE, YAML).body(text.to_owned()),
        };
        self.answer(request, true).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{PREFIX}{path}", self.tower));
        match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, token.clone()),
            None => request,
        }
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        changes: bool,
    ) -> Result<T, Failure> {
        let response = self.send(request, changes).await?;
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error, changes))?;
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(text).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("{} answered what this pcloud does not know: {error}", self.tower),
            )
            .next("compare the versions: pcloud auth status, pcloud --version")
        })
    }

    async fn send(&self, request: RequestBuilder, changes: bool) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.unreachable(&error, changes))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = response.bytes().await.unwrap_or_default();
        Err(match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => refused(&problem),
            Err(_) => Failure::new(
                Exit::Failed,
                format!("{} answered {status}: {}", self.tower, String::from_utf8_lossy(&body).trim()),
            )
            .next("is this Tower, and of this version? pcloud auth status"),
        })
    }

    fn unreachable(&self, error: &reqwest::Error, changes: bool) -> Failure {
        let message = format!("{}: {}", self.tower, chain(error));
        if changes && !error.is_connect() && !error.is_builder() {
            return Failure::new(Exit::Unknown, format!("{message}; it is not known whether it happened"))
                .next("look before you try again: pcloud activity list");
        }
        Failure::new(Exit::Failed, message).next("is --tower (PCLOUD_TOWER, pcloud context list) right?")
    }
}

/// What a refusal by Tower means here.
fn refused(problem: &Problem) -> Failure {
    let mut message = problem.detail.clone();
    if let Some(object) = problem.object.as_deref().filter(|object| !message.contains(object)) {
        message = format!("{object}: {message}");
    }
    if let Some(field) = problem.field.as_deref().filter(|field| !message.contains(field)) {
        message = format!("{field}: {message}");
    }
    for finding in &problem.findings {
        message.push_str(&format!("\n  {}", findings::line(finding)));
    }
    for entry in &problem.since {
        let when = period::ago(entry.time_unix_ms, unix_millis());
        message.push_str(&format!(
            "\n  since: #{} {} by {}, {when} ago",
            entry.index, entry.command, entry.author
        ));
    }
    let failure = Failure::new(Exit::of(problem.code), message);
    if problem.code == Code::Unauthenticated {
        return failure.next("pcloud auth login, or set PCLOUD_TOKEN; an admin makes tokens");
    }
    match &problem.next {
        Some(next) => failure.next(next),
        None => failure,
    }
}

/// An ETag as people may write it, as the header wants it.
fn quoted(etag: &str) -> String {
    if etag.starts_with('"') || etag.starts_with("W/") || etag == "*" {
        etag.to_owned()
    } else {
        format!("\"{etag}\"")
    }
}

/// An error with its causes: what failed is in the last.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
