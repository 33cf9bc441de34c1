//! What every answer tells browsers: to run nothing in it, not to guess what it is, and to keep it to themselves.

use actix_web::{
    Error,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
};

/// For all that is no page.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// Each with its value, unless a handler knows better.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, NOTHING),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
    (header::CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Adds what is not there yet.
pub fn harden(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

/// Lets a request pass, and hardens its answer. Refusals are hardened already.
///
/// # Errors
/// If the handler fails.
pub async fn pass(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut response = next.call(request).await?;
    harden(response.headers_mut());
    Ok(response)
}
