//! Which requests a route is for.

use anyhow::Result;
use http::Method;
use tower_tests::{Ask, Echo, Protocol};

use super::rig::{Instance, Rig, Running};

const SPEC: &str = "
callers:
  routes:
  - {name: exact, matches: [{path: {type: Exact, value: /exact}}], directResponse: {status: 200, body: exact}}
  - {name: prefix, matches: [{path: {value: /rank}}], directResponse: {status: 200, body: prefix}}
  - name: regex
    matches: [{path: {type: RegularExpression, value: '/v[0-9]+/[a-z]{1,3}'}}]
    directResponse: {status: 200, body: regex}
  - {name: method, matches: [{path: {value: /m}, method: POST}], directResponse: {status: 200, body: method}}
  - name: headers
    matches:
    - path: {value: /h}
      headers:
      - {name: X-Exact, value: 'yes'}
      - {name: x-prefix, type: Prefix, value: a}
      - {name: x-regex, type: RegularExpression, value: '[0-9]+'}
      - {name: x-present, type: Present}
    directResponse: {status: 200, body: headers}
  - name: query
    matches:
    - path: {value: /q}
      queryParams:
      - {name: exact, value: '1'}
      - {name: prefix, type: Prefix, value: a}
      - {name: regex, type: RegularExpression, value: '[0-9]+'}
      - {name: present, type: Present}
    directResponse: {status: 200, body: query}
  - name: either
    matches: [{path: {value: /one}}, {path: {value: /other}}]
    directResponse: {status: 200, body: either}
  - {name: first, matches: [{path: {value: /twice}}], directResponse: {status: 200, body: first}}
  - {name: second, matches: [{path: {value: /twice/a}}], directResponse: {status: 200, body: second}}
";

/// What a request is answered with; its status, unless that is 200.
async fn answer(running: &Running, ask: Ask) -> Result<String> {
    let reply = running.ask(&ask).await?;
    Ok(if reply.status == 200 { reply.body } else { reply.status.to_string() })
}

#[tokio::test]
async fn the_first_route_that_fits_decides() -> Result<()> {
    let running = Rig::default().service("web", SPEC, &[])?.start().await?;
    let paths = [
        ("/exact", "exact"),
        ("/exact/", "404"),
        ("/rank", "prefix"),
        ("/rank/", "prefix"),
        ("/rank/a/b?c=d", "prefix"),
        ("/ranking", "404"),
        ("/v12/abc", "regex"),
        ("/v12/abcd", "404"),
        ("/v12/abc/x", "404"),
        ("/one", "either"),
        ("/other/x", "either"),
        ("/twice/a", "first"),
        ("/nothing", "404"),
    ];
    for (path, expected) in paths {
        for protocol in Protocol::ALL {
            let ask = Ask::get("web", path).over(protocol);
            assert_eq!(answer(&running, ask).await?, expected, "{path} {protocol:?}");
        }
    }
    assert_eq!(answer(&running, Ask::get("web", "/m").method(Method::POST)).await?, "method");
    assert_eq!(answer(&running, Ask::get("web", "/m")).await?, "404");
    Ok(())
}

#[tokio::test]
async fn all_conditions_of_a_match_must_hold() -> Result<()> {
    let running = Rig::default().service("web", SPEC, &[])?.start().await?;
    let headers = [("x-exact", "yes"), ("x-prefix", "abc"), ("x-regex", "12"), ("x-present", "")];
    let with = |changed: (&str, Option<&str>)| {
        let mut ask = Ask::get("web", "/h");
        for (name, value) in headers {
            let value = if name == changed.0 { changed.1 } else { Some(value) };
            if let Some(value) = value {
                ask = ask.header(name, value);
            }
        }
        ask
    };
    assert_eq!(answer(&running, with(("", None))).await?, "headers");
    let wrong = [
        ("x-exact", Some("no")),
        ("x-exact", None),
        ("x-prefix", Some("ba")),
        ("x-regex", Some("12a")),
        ("x-present", None),
    ];
    for changed in wrong {
        assert_eq!(answer(&running, with(changed)).await?, "404", "{changed:?}");
    }
    let queries = [
        ("exact=1&prefix=abc&regex=12&present=", "query"),
        ("exact=2&prefix=abc&regex=12&present=", "404"),
        ("exact=1&prefix=ba&regex=12&present=", "404"),
        ("exact=1&prefix=abc&regex=12a&present=", "404"),
        ("exact=1&prefix=abc&regex=12", "404"),
    ];
    for (query, expected) in queries {
        assert_eq!(answer(&running, Ask::get("web", &format!("/q?{query}"))).await?, expected, "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn without_routes_everything_reaches_the_service() -> Result<()> {
    let echo = Echo::start("alpha").await?;
    let running =
        Rig::default().service("web", "callers: {}", &[Instance::at(echo.address())])?.start().await?;
    assert_eq!(answer(&running, Ask::get("web", "/any?thing").method(Method::PUT)).await?, "alpha");
    let seen = echo.last()?;
    assert_eq!((seen.method, seen.path.as_str()), (Method::PUT, "/any?thing"));
    Ok(())
}
