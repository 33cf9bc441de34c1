//! The web UI: the files that `scripts/build-ui` makes, as they are in this binary. A debug build reads them from
//! their folder instead, so that the page can be worked on while Tower runs.
//!
//! Every path that is none of the API's, of probes' or of a file, is a page of the UI: its index finds out which.

use std::borrow::Cow;

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        Method, StatusCode,
        header::{self, HeaderMap},
    },
};
use base64::{Engine, prelude::BASE64_STANDARD};
use rust_embed::RustEmbed;

/// The page that finds out what the others are.
const INDEX: &str = "index.html";

/// What in the index is replaced by something new with each answer, which styles need to count.
const NONCE: &str = "TOWER_NONCE";

/// Below this, names change with the content.
const HASHED: &str = "assets/";

/// A year, in which what has the hash of its content in its name does not change.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// What a browser takes, with the ending of the file that has it; better ones first.
const ENCODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

#[derive(RustEmbed)]
#[folder = "../ui/dist"]
#[allow_missing = true]
struct Files;

/// A file.
struct File {
    data: Cow<'static, [u8]>,
    media_type: String,
    hash: [u8; 32],
}

/// Whether this binary has the UI.
pub fn is_there() -> bool {
    read(INDEX).is_some()
}

/// Whether the UI has an answer to this; then it is open to all, because it tells nothing about anybody.
pub fn takes(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    method == Method::GET && find(path, wants_page(headers), |name| read(name).is_some()).is_some()
}

/// The UI's answer, if it has one.
pub fn answer(request: &HttpRequest) -> Option<HttpResponse> {
    let (path, headers) = (request.path(), request.headers());
    let exists = |name: &str| read(name).is_some();
    let name = find(path, wants_page(headers), exists).filter(|_| request.method() == Method::GET)?;
    if name == INDEX {
        return Some(index(&read(INDEX)?));
    }
    let file = read(name)?;
    let hash: String = file.hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let mut response = HttpResponseBuilder::new(StatusCode::OK);
    let cache = if name.starts_with(HASHED) { FOR_EVER } else { "no-cache" };
    response
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header((header::ETAG, tag.as_str()))
        .insert_header((header::VARY, "Accept-Encoding"));
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Some(response.status(StatusCode::NOT_MODIFIED).finish());
    }
    response.content_type(file.media_type);
    let packed = ENCODINGS.iter().find_map(|(encoding, ending)| {
        let taken =
            header_text(headers, header::ACCEPT_ENCODING).is_some_and(|taken| takes_it(taken, encoding));
        Some((encoding, read(&format!("{name}{ending}")).filter(|_| taken)?))
    });
    Some(match packed {
        Some((encoding, packed)) => {
            response.insert_header((header::CONTENT_ENCODING, *encoding)).body(packed.data)
        }
        None => response.body(file.data),
    })
}

/// The index. It is not kept anywhere, because of what is new in it.
fn index(file: &File) -> HttpResponse {
    let nonce = BASE64_STANDARD.encode(rand::random::<[u8; 16]>());
    let page = String::from_utf8_lossy(&file.data).replace(NONCE, &nonce);
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CONTENT_SECURITY_POLICY, policy(&nonce)))
        .insert_header((header::VARY, "Accept"))
        .body(page)
}

/// What the page may load, and from where: from Tower, and nothing that is written in the page itself but styles
/// that know the nonce.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self'; \
         font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The name of the file that is the answer to this path, if there is one.
fn find(path: &str, wants_page: bool, exists: impl Fn(&str) -> bool) -> Option<&str> {
    let name = path.strip_prefix('/')?;
    let first = name.split('/').next().unwrap_or_default();
    let packed = ENCODINGS.iter().any(|(_, ending)| name.ends_with(ending));
    if !name.is_empty() && name != INDEX && !packed && exists(name) {
        return Some(name);
    }
    // Where a script was, and is no more, a page would only confuse.
    let page = wants_page && !matches!(first, "api" | "metrics" | "healthz" | "readyz" | "assets");
    (page && exists(INDEX)).then_some(INDEX)
}

/// Browsers that want a page say so; whoever takes anything gets what is for tools.
fn wants_page(headers: &HeaderMap) -> bool {
    header_text(headers, header::ACCEPT).is_some_and(|accept| accept.contains("text/html"))
}

fn takes_it(accepted: &str, encoding: &str) -> bool {
    accepted.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn read(name: &str) -> Option<File> {
    let file = Files::get(name)?;
    let media_type = match file.metadata.mimetype() {
        text if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        other => other.to_owned(),
    };
    Some(File { hash: file.metadata.sha256_hash(), media_type, data: file.data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_a_page_gets_one_unless_it_is_of_the_api() {
        let files = ["index.html", "assets/a-1.js", "assets/a-1.js.br", "icon.svg"];
        let found = |path, page| find(path, page, |name| files.contains(&name));
        for page in ["/", "/services/web.mesh/edit", "/hosts/a%2Fb", "/nothing", "/index.html", "//x"] {
            assert_eq!(found(page, true), Some(INDEX), "{page}");
            assert_eq!(found(page, false), None, "{page}");
        }
        for (path, file) in [("/assets/a-1.js", "assets/a-1.js"), ("/icon.svg", "icon.svg")] {
            assert_eq!((found(path, true), found(path, false)), (Some(file), Some(file)));
        }
        for none in ["/api", "/api/v1/nothing", "/metrics", "/healthz", "/readyz", "/assets/b.js", "", "x"] {
            assert_eq!(found(none, true), None, "{none}");
        }
        assert_eq!(found("/assets/a-1.js.br", false), None);
        assert_eq!(find("/", true, |_| false), None, "without the UI there is no page");
    }

    #[test]
    fn each_index_has_a_nonce_of_its_own_and_allows_nothing_else() {
        let file = File {
            data: Cow::Borrowed(b"<meta nonce=\"TOWER_NONCE\"><style nonce=\"TOWER_NONCE\"></style>"),
            media_type: String::new(),
            hash: [0; 32],
        };
        let nonce = || {
            let response = index(&file);
            let policy = response.headers().get(header::CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap();
            assert!(!policy.contains("unsafe"), "{policy}");
            let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
            let body = actix_web::body::MessageBody::try_into_bytes(response.into_body()).unwrap();
            assert_eq!(String::from_utf8_lossy(&body).matches(&nonce).count(), 2);
            nonce
        };
        assert_ne!(nonce(), nonce());
    }

    #[test]
    fn encodings_are_those_that_the_browser_takes() {
        for (accepted, taken) in
            [("gzip, deflate, br", true), ("BR;q=0.5", true), ("br;q=0", false), ("", false), ("brx", false)]
        {
            assert_eq!(takes_it(accepted, "br"), taken, "{accepted}");
        }
    }
}
