//! Constraints of single values.

use std::cmp::Ordering;

use prost_reflect::{DynamicMessage, Value};
use regex::Regex;

use super::{broken, flag, set, sub};
use crate::compile::messages::Error;

/// Checks a value by what is said of its kind.
pub(super) fn check(value: &Value, rules: &DynamicMessage, path: &str) -> Result<(), Error> {
    match value {
        Value::String(text) => match sub(rules, "string") {
            Some(rules) => check_text(text, &rules, path),
            None => Ok(()),
        },
        Value::Bytes(bytes) => match sub(rules, "bytes") {
            Some(rules) => check_length(bytes.len(), &rules, ["min_len", "max_len"], "bytes", path),
            None => Ok(()),
        },
        Value::EnumNumber(number) => match sub(rules, "enum") {
            Some(rules) => check_enum(*number, &rules, path),
            None => Ok(()),
        },
        Value::Bool(held) => {
            let wanted =
                sub(rules, "bool").and_then(|rules| set(&rules, "const").and_then(|value| value.as_bool()));
            match wanted {
                Some(wanted) if wanted != *held => broken(path, format!("it must be {wanted}")),
                Some(_) | None => Ok(()),
            }
        }
        number => {
            let kinds = ["uint32", "uint64", "int32", "int64", "double", "float"];
            kinds
                .iter()
                .find_map(|kind| sub(rules, kind))
                .map_or(Ok(()), |rules| check_number(number, &rules, path))
        }
    }
}

/// Checks how long a time is.
pub(super) fn check_duration(of: &DynamicMessage, rules: &DynamicMessage, path: &str) -> Result<(), Error> {
    let time = |of: &DynamicMessage| {
        let seconds = of.get_field_by_name("seconds").and_then(|value| value.as_i64()).unwrap_or_default();
        let nanos = of.get_field_by_name("nanos").and_then(|value| value.as_i32()).unwrap_or_default();
        (seconds, nanos)
    };
    let held = time(of);
    check_bounds(path, |name| {
        let bound = sub(rules, name)?;
        let (seconds, nanos) = time(&bound);
        Some((held.cmp(&(seconds, nanos)), format!("{}s", seconds as f64 + f64::from(nanos) / 1e9)))
    })
}

fn check_number(of: &Value, rules: &DynamicMessage, path: &str) -> Result<(), Error> {
    let held = number(of);
    check_bounds(path, |name| {
        let bound = number(&*set(rules, name)?);
        Some((held.partial_cmp(&bound)?, bound.to_string()))
    })?;
    let Some(allowed) = set(rules, "in") else { return Ok(()) };
    match allowed.as_list() {
        Some(list) if !list.is_empty() && !list.iter().any(|value| number(value) == held) => {
            broken(path, format!("it may not be {held}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// How a value compares with each of the bounds that it has.
fn check_bounds(path: &str, compare: impl Fn(&str) -> Option<(Ordering, String)>) -> Result<(), Error> {
    type Bound = (&'static str, fn(Ordering) -> bool, &'static str);
    let bounds: [Bound; 5] = [
        ("gt", Ordering::is_gt, "more than"),
        ("gte", Ordering::is_ge, "at least"),
        ("lt", Ordering::is_lt, "less than"),
        ("lte", Ordering::is_le, "at most"),
        ("const", Ordering::is_eq, "exactly"),
    ];
    for (name, fits, words) in bounds {
        if let Some((_, bound)) = compare(name).filter(|(ordering, _)| !fits(*ordering)) {
            return broken(path, format!("it must be {words} {bound}"));
        }
    }
    Ok(())
}

fn number(of: &Value) -> f64 {
    match of {
        Value::I32(value) => f64::from(*value),
        Value::U32(value) => f64::from(*value),
        Value::F32(value) => f64::from(*value),
        Value::F64(value) => *value,
        // The bounds that there are fit.
        Value::I64(value) => *value as f64,
        Value::U64(value) => *value as f64,
        _ => 0.0,
    }
}

fn check_enum(held: i32, rules: &DynamicMessage, path: &str) -> Result<(), Error> {
    let listed = |name: &str| {
        set(rules, name)
            .and_then(|list| Some(list.as_list()?.iter().filter_map(Value::as_i32).collect::<Vec<_>>()))
    };
    let refused = listed("not_in").is_some_and(|list| list.contains(&held))
        || listed("in").is_some_and(|list| !list.is_empty() && !list.contains(&held));
    if refused { broken(path, format!("it may not be {held}")) } else { Ok(()) }
}

fn check_text(text: &str, rules: &DynamicMessage, path: &str) -> Result<(), Error> {
    if text.is_empty() && flag(rules, "ignore_empty") {
        return Ok(());
    }
    check_length(text.chars().count(), rules, ["min_len", "max_len"], "characters", path)?;
    check_length(text.len(), rules, ["min_bytes", "max_bytes"], "bytes", path)?;
    let word = |name: &str| set(rules, name).and_then(|value| value.as_str().map(str::to_owned));
    if let Some(prefix) = word("prefix").filter(|prefix| !text.starts_with(prefix.as_str())) {
        return broken(path, format!("it must begin with {prefix:?}"));
    }
    if let Some(suffix) = word("suffix").filter(|suffix| !text.ends_with(suffix.as_str())) {
        return broken(path, format!("it must end with {suffix:?}"));
    }
    if let Some(pattern) = word("pattern") {
        // One that this build cannot read is Envoy's to check.
        if Regex::new(&pattern).is_ok_and(|pattern| !pattern.is_match(text)) {
            return broken(path, format!("it must fit {pattern:?}"));
        }
    }
    check_header(text, rules, path)
}

/// What is to stand in a header.
fn check_header(text: &str, rules: &DynamicMessage, path: &str) -> Result<(), Error> {
    let kind = set(rules, "well_known_regex").and_then(|value| value.as_enum_number()).unwrap_or_default();
    let strict = set(rules, "strict").is_none_or(|value| value.as_bool() != Some(false));
    let token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_|~`".contains(letter);
    let plain = |letter: char| {
        if strict { !letter.is_ascii_control() || letter == '\t' } else { !"\0\r\n".contains(letter) }
    };
    let fits = match kind {
        1 if strict => !text.is_empty() && text.strip_prefix(':').unwrap_or(text).chars().all(token),
        1 | 2 => text.chars().all(plain),
        _ => true,
    };
    if fits { Ok(()) } else { broken(path, "it cannot stand in a header".to_owned()) }
}

fn check_length(
    length: usize,
    rules: &DynamicMessage,
    [min, max]: [&str; 2],
    unit: &str,
    path: &str,
) -> Result<(), Error> {
    let bound = |name| set(rules, name).and_then(|value| value.as_u64());
    if let Some(min) = bound(min).filter(|min| (length as u64) < *min) {
        return broken(path, format!("it has {length} {unit}, and must have {min} at least"));
    }
    if let Some(max) = bound(max).filter(|max| length as u64 > *max) {
        return broken(path, format!("it has {length} {unit}, and may have {max} at most"));
    }
    Ok(())
}
