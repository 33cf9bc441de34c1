//! What Envoy's proto files say of values (protoc-gen-validate), so that what breaks it is refused here and
//! not by hosts: it is the first that each Envoy looks at.
//!
//! Envoy finds more than that; for the rest there are the checks of documents, and Envoy's own validation.

mod scalar;

use std::{borrow::Cow, sync::LazyLock};

use prost_reflect::{DynamicMessage, ExtensionDescriptor, FieldDescriptor, ReflectMessage, Value};

use super::messages::{self, POOL};

static RULES: LazyLock<ExtensionDescriptor> = LazyLock::new(|| extension("validate.rules"));
static REQUIRED: LazyLock<ExtensionDescriptor> = LazyLock::new(|| extension("validate.required"));

fn extension(name: &str) -> ExtensionDescriptor {
    POOL.get_extension_by_name(name).expect("descriptors with constraints")
}

/// Checks a serialized message of Envoy's, and what is in it.
///
/// # Errors
/// The first value that breaks a constraint: where, and which.
pub(super) fn check(type_name: &str, body: &[u8]) -> Result<(), messages::Error> {
    check_message(&messages::decode(type_name, body)?, "")
}

fn check_message(of: &DynamicMessage, path: &str) -> Result<(), messages::Error> {
    if let Some(inner) = messages::unpack(of)? {
        return check_message(&inner, path);
    }
    let descriptor = of.descriptor();
    for oneof in descriptor.oneofs() {
        let required = matches!(*oneof.options().get_extension(&REQUIRED), Value::Bool(true));
        if required && !oneof.fields().any(|field| of.has_field(&field)) {
            let names: Vec<_> = oneof.fields().map(|field| field.name().to_owned()).collect();
            return broken(path, format!("one of these is required: {}", names.join(", ")));
        }
    }
    for field in descriptor.fields() {
        check_field(of, &field, path)?;
    }
    Ok(())
}

fn check_field(of: &DynamicMessage, field: &FieldDescriptor, path: &str) -> Result<(), messages::Error> {
    let path = if path.is_empty() { field.name().to_owned() } else { format!("{path}.{}", field.name()) };
    let rules = rules(field);
    let value = of.get_field(field);
    match &*value {
        Value::List(items) => {
            let list = rules.as_ref().and_then(|rules| sub(rules, "repeated"));
            check_count(items.len(), list.as_ref(), ["min_items", "max_items"], &path)?;
            let each = list.as_ref().and_then(|list| sub(list, "items"));
            for (index, item) in items.iter().enumerate() {
                check_value(item, each.as_ref(), &format!("{path}[{index}]"))?;
            }
        }
        Value::Map(entries) => {
            let map = rules.as_ref().and_then(|rules| sub(rules, "map"));
            check_count(entries.len(), map.as_ref(), ["min_pairs", "max_pairs"], &path)?;
            let each = map.as_ref().and_then(|map| sub(map, "values"));
            for (key, entry) in entries {
                check_value(entry, each.as_ref(), &format!("{path}[{key:?}]"))?;
            }
        }
        value if of.has_field(field) => check_value(value, rules.as_ref(), &path)?,
        // Of alternatives only the one that is there counts.
        _ if field.containing_oneof().is_some() => {}
        Value::Message(_) if rules.as_ref().is_some_and(is_required) => {
            return broken(&path, "it is required".to_owned());
        }
        Value::Message(_) => {}
        // Without a value of its own it has that of its type, which has to be allowed.
        value if !field.supports_presence() => check_value(value, rules.as_ref(), &path)?,
        _ => {}
    }
    Ok(())
}

fn check_value(value: &Value, rules: Option<&DynamicMessage>, path: &str) -> Result<(), messages::Error> {
    let Value::Message(message) = value else {
        return rules.map_or(Ok(()), |rules| scalar::check(value, rules, path));
    };
    if rules.and_then(|rules| sub(rules, "message")).is_some_and(|rules| flag(&rules, "skip")) {
        return Ok(());
    }
    if let Some(rules) = rules {
        if let Some(held) = wrapped(message) {
            return scalar::check(&held, rules, path);
        }
        if let Some(rules) = sub(rules, "duration") {
            scalar::check_duration(message, &rules, path)?;
        }
    }
    check_message(message, path)
}

/// The value in a message that stands for one which may be absent.
fn wrapped(of: &DynamicMessage) -> Option<Cow<'_, Value>> {
    let descriptor = of.descriptor();
    let is_wrapper = descriptor.parent_file().name() == "google/protobuf/wrappers.proto";
    let field = descriptor.get_field_by_name("value").filter(|_| is_wrapper)?;
    Some(of.get_field(&field))
}

fn check_count(
    count: usize,
    rules: Option<&DynamicMessage>,
    [min, max]: [&str; 2],
    path: &str,
) -> Result<(), messages::Error> {
    let Some(rules) = rules else { return Ok(()) };
    let bound = |name| set(rules, name).and_then(|value| value.as_u64());
    if let Some(min) = bound(min).filter(|min| (count as u64) < *min) {
        return broken(path, format!("it has {count} items, and must have {min} at least"));
    }
    if let Some(max) = bound(max).filter(|max| count as u64 > *max) {
        return broken(path, format!("it has {count} items, and may have {max} at most"));
    }
    Ok(())
}

fn is_required(rules: &DynamicMessage) -> bool {
    ["message", "duration", "any"].iter().any(|kind| sub(rules, kind).is_some_and(|of| flag(&of, "required")))
}

/// The constraints of a field.
fn rules(field: &FieldDescriptor) -> Option<DynamicMessage> {
    let options = field.options();
    if !options.has_extension(&RULES) {
        return None;
    }
    options.get_extension(&RULES).as_message().cloned()
}

/// Those of them of one kind.
fn sub(rules: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    set(rules, name)?.as_message().cloned()
}

fn flag(rules: &DynamicMessage, name: &str) -> bool {
    set(rules, name).is_some_and(|value| matches!(*value, Value::Bool(true)))
}

/// What a constraint says, if it says something.
fn set<'a>(rules: &'a DynamicMessage, name: &str) -> Option<Cow<'a, Value>> {
    rules.has_field_by_name(name).then(|| rules.get_field_by_name(name)).flatten()
}

fn broken(path: &str, reason: String) -> Result<(), messages::Error> {
    let path = if path.is_empty() { ".".to_owned() } else { path.to_owned() };
    Err(messages::Error::Refused { path, reason })
}

#[cfg(test)]
mod tests;
