//! Parameters that several routes take.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::{error::Refused, page::Page};

/// The longest name of a document, in characters.
const MAX_FILE_CHARS: usize = 200;

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// The `next` of the page before.
    cursor: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Why something is done that has no body.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReasonQuery {
    /// For those who read the activity log.
    #[param(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub reason: Option<String>,
}

/// About a document that is sent as the body.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DocumentQuery {
    /// What findings call the document.
    #[param(max_length = 200)]
    file: Option<String>,
    /// For those who read the activity log.
    #[param(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub reason: Option<String>,
}

/// A service in the path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OfService {
    /// The name of the service.
    pub service: String,
}

/// An id in the path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ById {
    /// The id.
    pub id: String,
}

impl PageQuery {
    /// The page.
    pub fn page(&self) -> Page<'_> {
        Page { cursor: self.cursor.as_deref(), limit: self.limit }
    }
}

impl DocumentQuery {
    /// What findings call the document.
    ///
    /// # Errors
    /// If that is too long.
    pub fn file(&self) -> Result<String, Refused> {
        check_file(self.file.as_deref())
    }
}

/// What findings call a document.
///
/// # Errors
/// If that is too long.
pub fn check_file(file: Option<&str>) -> Result<String, Refused> {
    let file = file.unwrap_or("document");
    if file.chars().count() > MAX_FILE_CHARS {
        return Err(Refused::malformed("file", format!("it has at most {MAX_FILE_CHARS} characters")));
    }
    Ok(file.to_owned())
}
