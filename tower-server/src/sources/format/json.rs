//! Reading JSON tolerantly: unknown keys are no business of ours, numbers may be written as strings, and
//! what follows the first value is remarked. Errors name the field.

use serde_json::{Map, Value};

use super::DecodeError;
use crate::sources::address::{Host, parse_port};

/// The first JSON value, which must be an object.
pub(super) fn object(data: &[u8], remarks: &mut Vec<String>) -> Result<Map<String, Value>, DecodeError> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    if data.iter().all(blank) {
        return Err(DecodeError::Empty);
    }
    let mut values = serde_json::Deserializer::from_slice(data).into_iter::<Value>();
    let first =
        values.next().ok_or(DecodeError::Empty)?.map_err(|error| DecodeError::NotJson(error.to_string()))?;
    let rest = &data[values.byte_offset()..];
    if !rest.iter().all(blank) {
        remarks.push(format!("{} bytes follow the JSON value", rest.len()));
    }
    match first {
        Value::Object(object) => Ok(object),
        _ => Err(DecodeError::NotJson("not an object".to_owned())),
    }
}

/// A string, number or truth value, as text. Nothing for what has parts.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A port, as a number or a string.
pub(super) fn port(value: &Value, field: &str) -> Result<u16, DecodeError> {
    let text = scalar(value).unwrap_or_default();
    parse_port(text.trim()).map_err(|problem| self::field(field, format!("{value}: {problem}")))
}

/// A host: an address, perhaps in brackets, or a name.
pub(super) fn host(text: &str, field: &str) -> Result<Host, DecodeError> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    Host::parse(bare).map_err(|problem| self::field(field, format!("{text:?}: {problem}")))
}

/// The value of a key that must be there.
pub(super) fn required<'a>(
    object: &'a Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<&'a Value, DecodeError> {
    object.get(key).filter(|value| !value.is_null()).ok_or_else(|| field(path, "missing"))
}

/// The error of a field.
pub(super) fn field(field: &str, problem: impl Into<String>) -> DecodeError {
    DecodeError::Field { field: field.to_owned(), problem: problem.into() }
}
