//! What handlers take from requests. What cannot be read is refused, and the field is named.

use std::{future::Future, ops::RangeInclusive, pin::Pin, time::Duration};

use actix_web::{
    FromRequest, HttpRequest, dev,
    http::header,
    web::{Bytes, BytesMut},
};
use futures::{StreamExt, future};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower_common::api::{Code, MAX_DOCUMENT_BYTES, MAX_REASON_CHARS, Problem};

use super::error::Refused;

/// The largest JSON body: one with a document in it, each of whose characters is escaped.
const MAX_JSON_BYTES: usize = 2 * MAX_DOCUMENT_BYTES + (64 << 10);

/// The longest query, in bytes.
const MAX_QUERY_BYTES: usize = 16 << 10;

/// A body that has not come by then does not come.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// A JSON body.
#[derive(Debug)]
pub struct Json<T>(pub T);

/// A JSON body that need not be there.
#[derive(Debug)]
pub struct Maybe<T>(pub T);

/// The parameters after the question mark.
#[derive(Debug)]
pub struct Query<T>(pub T);

/// The parameters in the path.
#[derive(Debug)]
pub struct Path<T>(pub T);

/// A document as a body, as it was sent.
#[derive(Debug)]
pub struct Document(pub String);

type Extracted<T> = Pin<Box<dyn Future<Output = Result<T, Refused>>>>;

impl<T: DeserializeOwned + 'static> FromRequest for Json<T> {
    type Error = Refused;
    type Future = Extracted<Self>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let (typed, body) = (json_type(request), body(request, payload, MAX_JSON_BYTES));
        Box::pin(async move {
            typed?;
            let body = body.await?;
            if body.is_empty() {
                return Err(Refused::malformed("body", "there is no body; it has to be JSON"));
            }
            parse(&body).map(Self)
        })
    }
}

impl<T: DeserializeOwned + Default + 'static> FromRequest for Maybe<T> {
    type Error = Refused;
    type Future = Extracted<Self>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let (typed, body) = (json_type(request), body(request, payload, MAX_JSON_BYTES));
        Box::pin(async move {
            let body = body.await?;
            if body.is_empty() {
                return Ok(Self(T::default()));
            }
            typed?;
            Ok(Self(parse::<Option<T>>(&body)?.unwrap_or_default()))
        })
    }
}

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        future::ready(query(request.query_string()).map(Self))
    }
}

impl<T: DeserializeOwned> FromRequest for Path<T> {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let result: Result<T, _> = request.match_info().load();
        // What does not fit into the type of a path's parameter names nothing that there is.
        future::ready(result.map(Self).map_err(|error| {
            Problem::new(Code::NotFound, format!("there is nothing at {}: {error}", request.path())).into()
        }))
    }
}

impl FromRequest for Document {
    type Error = Refused;
    type Future = Extracted<Self>;

    fn from_request(request: &HttpRequest, payload: &mut dev::Payload) -> Self::Future {
        let typed = media_type(request);
        let body = body(request, payload, MAX_DOCUMENT_BYTES);
        Box::pin(async move {
            match typed.as_str() {
                "application/yaml" | "application/x-yaml" | "text/yaml" | "application/json" => {}
                other => {
                    let detail = format!("a document is application/yaml or application/json, not {other:?}");
                    return Err(Refused::malformed_type(detail));
                }
            }
            let body = body.await?;
            String::from_utf8(body.to_vec()).map(Self).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                Refused::malformed("body", format!("the document is not UTF-8 at byte {at}"))
            })
        })
    }
}

impl Refused {
    fn malformed_type(detail: String) -> Self {
        Problem::new(Code::UnsupportedMediaType, detail).field("Content-Type").into()
    }
}

/// The media type of the body, without its parameters, in lower case.
fn media_type(request: &HttpRequest) -> String {
    let value = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn json_type(request: &HttpRequest) -> Result<(), Refused> {
    match media_type(request).as_str() {
        "application/json" => Ok(()),
        other => Err(Refused::malformed_type(format!("the body has to be application/json, not {other:?}"))),
    }
}

/// The whole body, if it is not larger than this.
fn body(
    request: &HttpRequest,
    payload: &mut dev::Payload,
    max: usize,
) -> impl Future<Output = Result<Bytes, Refused>> + use<> {
    let too_large = move || Refused::new(Code::TooLarge, format!("the body has more than {max} bytes"));
    let told =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let mut payload = payload.take();
    async move {
        if told.is_some_and(|told: u64| told > max as u64) {
            return Err(too_large());
        }
        let read = async {
            let mut body = BytesMut::new();
            while let Some(chunk) = payload.next().await {
                let chunk = chunk.map_err(|error| Refused::malformed("body", error.to_string()))?;
                if body.len() + chunk.len() > max {
                    return Err(too_large());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body.freeze())
        };
        tokio::time::timeout(BODY_TIMEOUT, read).await.unwrap_or_else(|_| {
            Err(Refused::malformed("body", format!("it has not come within {BODY_TIMEOUT:?}")))
        })
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let malformed = |error: serde_json::Error| Refused::malformed("body", error.to_string());
    let mut value: Value = serde_json::from_slice(body).map_err(malformed)?;
    // A list of values without names would do, too, and nobody means that.
    if value.is_array() {
        return Err(Refused::malformed("body", "it has to be a JSON object, not a list"));
    }
    whole_numbers(&mut value);
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if matches!(path.as_str(), "." | "?") { "body".to_owned() } else { path };
        Refused::malformed(&field, error.into_inner().to_string())
    })
}

/// In JSON 1.0 is as whole a number as 1.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a whole number below 2^53"
            )]
            if float.fract() == 0.0 && (0.0..9e15).contains(&float) {
                *value = Value::from(float as u64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn query<T: DeserializeOwned>(text: &str) -> Result<T, Refused> {
    if text.len() > MAX_QUERY_BYTES {
        return Err(Refused::malformed("query", format!("it has more than {MAX_QUERY_BYTES} bytes")));
    }
    let mut names: Vec<_> = form_urlencoded::parse(text.as_bytes()).map(|(name, _)| name).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Refused::malformed(&twice[0], "it is there more than once"));
    }
    let values = serde_urlencoded::Deserializer::new(form_urlencoded::parse(text.as_bytes()));
    serde_path_to_error::deserialize(values).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "query".to_owned() } else { path };
        Refused::malformed(&field, error.into_inner().to_string())
    })
}

/// A reason as it goes into the log.
///
/// # Errors
/// If it is too long, or not one line.
pub fn reason(reason: Option<String>) -> Result<String, Refused> {
    let reason = reason.unwrap_or_default();
    if reason.chars().count() > MAX_REASON_CHARS {
        let detail = format!("a reason has at most {MAX_REASON_CHARS} characters");
        return Err(Refused::malformed("reason", detail));
    }
    if reason.chars().any(char::is_control) {
        return Err(Refused::malformed("reason", "a reason is one line, without control characters"));
    }
    Ok(reason)
}

/// The largest integer of the API: that of the format `int64`.
pub const MAX_INTEGER: u64 = i64::MAX as u64;

/// Refuses a number that is out of bounds.
///
/// # Errors
/// If it is there, and out of bounds.
pub fn bounded(field: &str, value: Option<u64>, bounds: RangeInclusive<u64>) -> Result<(), Refused> {
    match value {
        Some(value) if !bounds.contains(&value) => {
            let (low, high) = bounds.into_inner();
            Err(Refused::malformed(field, format!("it is from {low} to {high}, and not {value}")))
        }
        _ => Ok(()),
    }
}
