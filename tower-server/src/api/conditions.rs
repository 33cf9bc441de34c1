//! What a write depends on: the state that it was made for (`If-Match`), and that it happens once
//! (`Idempotency-Key`).

use actix_web::{
    FromRequest, HttpRequest, dev,
    http::header::{self, HeaderName, HeaderValue},
};
use futures::future;
use tower_common::api::IDEMPOTENCY_KEY;

use super::error::Refused;

/// The longest key that a client may choose.
const MAX_KEY_BYTES: usize = 128;

/// The state that a write was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// Any.
    Any,
    /// The one after this entry of the log.
    Index(u64),
}

/// The incarnation that a write was made for: any text, in quotes or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncarnationTag(pub Option<String>);

/// What makes a write that is sent twice one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub Option<String>);

impl IfMatch {
    /// The index, if it is one.
    pub fn index(self) -> Option<u64> {
        match self {
            Self::Any => None,
            Self::Index(index) => Some(index),
        }
    }

    fn parse(text: &str) -> Result<Self, Refused> {
        if text.trim() == "*" {
            return Ok(Self::Any);
        }
        let tag = text.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        // Also without quotes, which shells take away.
        let index = tag.unwrap_or(text.trim());
        let digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
        match index.parse() {
            Ok(index) if digits => Ok(Self::Index(index)),
            _ => Err(Refused::malformed("If-Match", "it is one ETag of this API, such as \"42\", or *")),
        }
    }
}

/// The header with this index.
pub fn etag(index: u64) -> (HeaderName, HeaderValue) {
    let value = HeaderValue::from_str(&format!("\"{index}\"")).unwrap_or(HeaderValue::from_static("\"0\""));
    (header::ETAG, value)
}

impl FromRequest for IfMatch {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let text = text(request, header::IF_MATCH.as_str());
        future::ready(text.and_then(|text| text.map_or(Ok(Self::Any), Self::parse)))
    }
}

impl FromRequest for IncarnationTag {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let text = text(request, header::IF_MATCH.as_str());
        future::ready(text.map(|text| Self(text.map(|text| text.trim().trim_matches('"').to_owned()))))
    }
}

impl FromRequest for Key {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let read = text(request, IDEMPOTENCY_KEY).and_then(|text| match text {
            Some(key) if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains(' ') => {
                let detail = format!("it has 1 to {MAX_KEY_BYTES} visible characters, and no spaces");
                Err(Refused::malformed(IDEMPOTENCY_KEY, detail))
            }
            key => Ok(Self(key.map(str::to_owned))),
        });
        future::ready(read)
    }
}

/// A header that is there once or not at all.
fn text<'a>(request: &'a HttpRequest, name: &str) -> Result<Option<&'a str>, Refused> {
    let mut values = request.headers().get_all(name);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Refused::malformed(name, "it is there more than once"));
    }
    match value.to_str() {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') => Ok(Some(text)),
        _ => Err(Refused::malformed(name, "it has other than visible ASCII characters")),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    async fn condition(value: &str) -> Result<IfMatch, Refused> {
        let request = TestRequest::put().insert_header((header::IF_MATCH, value)).to_http_request();
        IfMatch::extract(&request).await
    }

    #[actix_web::test]
    async fn one_tag_of_ours_or_anything() {
        assert_eq!(condition("\"42\"").await.unwrap(), IfMatch::Index(42));
        assert_eq!(condition("42").await.unwrap(), IfMatch::Index(42));
        assert_eq!(condition("*").await.unwrap(), IfMatch::Any);
        assert_eq!(IfMatch::extract(&TestRequest::put().to_http_request()).await.unwrap(), IfMatch::Any);
        for foreign in ["", "\"\"", "W/\"42\"", "\"a\"", "\"1\", \"2\"", "+1", "99999999999999999999"] {
            let refused = condition(foreign).await.unwrap_err();
            assert_eq!(refused.problem().field.as_deref(), Some("If-Match"), "{foreign}");
        }
        let twice = TestRequest::put().append_header((header::IF_MATCH, "1"));
        let twice = twice.append_header((header::IF_MATCH, "2")).to_http_request();
        assert!(IfMatch::extract(&twice).await.is_err());
    }

    #[actix_web::test]
    async fn an_entity_tag_names_an_incarnation() {
        let request = TestRequest::post().insert_header((header::IF_MATCH, "\"c-1a2\"")).to_http_request();
        assert_eq!(IncarnationTag::extract(&request).await.unwrap().0.as_deref(), Some("c-1a2"));
    }

    #[actix_web::test]
    async fn keys_are_short_and_visible() {
        let key = async |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).unwrap();
            let request = TestRequest::put().insert_header((IDEMPOTENCY_KEY, value)).to_http_request();
            Key::extract(&request).await.ok().and_then(|key| key.0)
        };
        assert_eq!(key(b"a-1").await.as_deref(), Some("a-1"));
        assert_eq!(key(b"").await, None);
        assert_eq!(key(b"a 1").await, None);
        assert_eq!(key(&[b'a'; MAX_KEY_BYTES + 1]).await, None);
        assert_eq!(key("ä".as_bytes()).await, None);
    }
}
