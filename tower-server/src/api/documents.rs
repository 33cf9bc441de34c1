//! Documents that are in the log.

use actix_web::{HttpRequest, http::header};
use serde_json::Value;
use tower_common::api::{Code, YAML};

use super::{caller::unreadable, error::Refused};
use crate::registry::Registry;

/// A document as it was sent.
///
/// # Errors
/// If it cannot be read.
pub async fn text(registry: &Registry, hash: &[u8]) -> Result<String, Refused> {
    let body = registry.body(hash).await.map_err(|error| unreadable(&error))?;
    String::from_utf8(body.to_vec())
        .map_err(|error| Refused::new(Code::Internal, format!("the document: {error}")))
}

/// A document's fields.
///
/// # Errors
/// If it is no document, which nobody could have uploaded.
pub fn value(text: &str) -> Result<Value, Refused> {
    serde_saphyr::from_str(text)
        .map_err(|error| Refused::new(Code::Internal, format!("the document: {error}")))
}

/// Whether the request wants the document itself, rather than what is known of it.
///
/// # Errors
/// If it wants neither that nor JSON.
pub fn wants_document(request: &HttpRequest) -> Result<bool, Refused> {
    let Some(value) = request.headers().get(header::ACCEPT) else { return Ok(false) };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let types = || text.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
    for wanted in types() {
        match wanted {
            "application/json" | "application/*" | "*/*" | "" => return Ok(false),
            YAML | "application/x-yaml" | "text/yaml" => return Ok(true),
            _ => {}
        }
    }
    Err(Refused::new(Code::NotAcceptable, format!("there is application/json and {YAML}, and not {text:?}")))
}
