//! What no route takes: a page of the UI, a path that there is not, or a method that its path does not take.

use actix_web::{HttpRequest, HttpResponse, dev::ResourceDef};
use std::sync::LazyLock;

use super::{
    error::Refused,
    openapi::{self, DOCUMENT},
    ui,
};

/// Each path with the methods that it takes.
static PATHS: LazyLock<Vec<(ResourceDef, Vec<&'static str>)>> = LazyLock::new(|| {
    let paths = DOCUMENT.paths.paths.iter();
    paths
        .map(|(path, item)| {
            (ResourceDef::new(path.as_str()), openapi::operations(item).map(|(method, _)| method).collect())
        })
        .collect()
});

/// The answer.
pub async fn nothing_here(request: HttpRequest) -> Result<HttpResponse, Refused> {
    if let Some(page) = ui::answer(&request) {
        return Ok(page);
    }
    let (method, path) = (request.method(), request.path());
    let methods: Vec<&str> = PATHS
        .iter()
        .filter(|(known, _)| known.is_match(path))
        .flat_map(|(_, methods)| methods.clone())
        .collect();
    if methods.is_empty() {
        let list = format!("{}/openapi.json", openapi::PREFIX);
        return Err(Refused::no_such("page", path, &list));
    }
    let allow = methods.join(", ");
    Err(Refused::wrong_method(format!("{path} takes {allow}, not {method}"), allow))
}
