//! Documents that are in the log, as they were sent.

use actix_web::{HttpRequest, http::header};
use tower_common::{
    api::{Code, Problem, YAML},
    document::{self, Document, Owner, Parsed},
};
use tower_proto::v1::part_edited;

use super::{caller::unreadable, error::Refused, told::findings};
use crate::registry::Registry;

/// A document as it was sent.
///
/// # Errors
/// If it cannot be read.
pub async fn text(registry: &Registry, hash: &[u8]) -> Result<String, Refused> {
    let body = registry.body(hash).await.map_err(|error| unreadable(&error))?;
    String::from_utf8(body.to_vec())
        .map_err(|error| Refused::new(Code::Internal, format!("a document in the log: {error}")))
}

/// What a document in the log says.
///
/// # Errors
/// If this build does not take it, as one that is older than the build that did.
pub fn parse(name: &str, text: &str, owner: Owner) -> Result<Parsed, Refused> {
    document::parse(name, text, owner).map_err(|found| {
        let mut problem = Problem::new(Code::Internal, "a document in the log is none to this Tower")
            .object(name)
            .next("look at it with another version of Tower");
        problem.findings = found.iter().map(findings::finding).collect();
        problem.into()
    })
}

/// A document in the log.
///
/// # Errors
/// If it cannot be read, or is none to this build.
pub async fn read(registry: &Registry, name: &str, hash: &[u8], owner: Owner) -> Result<Document, Refused> {
    Ok(parse(name, &text(registry, hash).await?, owner)?.document)
}

/// Whose document it is.
pub fn owner(owner: part_edited::Owner) -> Owner {
    match owner {
        part_edited::Owner::Unspecified | part_edited::Owner::Platform => Owner::Platform,
        part_edited::Owner::Security => Owner::Security,
    }
}

/// Whether the request wants the document itself, rather than what is known of it.
///
/// # Errors
/// If it wants neither that nor JSON.
pub fn wants_document(request: &HttpRequest) -> Result<bool, Refused> {
    let Some(value) = request.headers().get(header::ACCEPT) else { return Ok(false) };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    for wanted in text.split(',').map(|part| part.split(';').next().unwrap_or_default().trim()) {
        match wanted {
            "application/json" | "application/*" | "*/*" | "" => return Ok(false),
            YAML | "application/x-yaml" | "text/yaml" => return Ok(true),
            _ => {}
        }
    }
    Err(Refused::new(Code::NotAcceptable, format!("there is application/json and {YAML}, and not {text:?}")))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_first_media_type_that_there_is_decides() {
        let wants = |accept: &str| {
            wants_document(&TestRequest::get().insert_header((header::ACCEPT, accept)).to_http_request()).ok()
        };
        assert_eq!(wants_document(&TestRequest::get().to_http_request()).ok(), Some(false));
        for (accept, document) in [
            ("*/*", Some(false)),
            ("application/yaml", Some(true)),
            ("text/html, application/yaml;q=0.9, */*;q=0.8", Some(true)),
            ("application/json, application/yaml", Some(false)),
            ("text/html", None),
        ] {
            assert_eq!(wants(accept), document, "{accept}");
        }
    }
}
