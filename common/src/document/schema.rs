//! The JSON Schema of documents, made of the model.

use std::sync::OnceLock;

use serde_json::Value;

use super::{Document, Owner, owners::FIELDS};

/// That of a whole document, with the fields of all owners.
pub(super) fn whole() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| schemars::schema_for!(Document).to_value())
}

/// The schema of documents, for editors and other tools: of the fields that this owner may write, or of all.
/// It is that of [`model`](super::model), in JSON Schema 2020-12.
pub fn json_schema(owner: Option<Owner>) -> Value {
    let mut schema = whole().clone();
    let Some(owner) = owner else { return schema };
    for (field, writers) in FIELDS.iter().filter(|(_, writers)| !writers.contains(&owner)) {
        debug_assert!(!writers.is_empty(), "{field} has no owner");
        remove(&mut schema, field);
    }
    schema
}

/// Takes a field out of a schema. A definition that is used at two places, such as that of routes, is not on
/// the way to a field of one of them.
fn remove(schema: &mut Value, field: &str) {
    let mut steps: Vec<&str> = field.split('.').collect();
    let Some(last) = steps.pop() else { return };
    let mut at = String::new();
    for step in steps {
        at = format!("{at}/properties/{step}");
        let Some(found) = schema.pointer(&at) else { return };
        let reference = found["$ref"].as_str().or_else(|| found["anyOf"][0]["$ref"].as_str());
        if let Some(reference) = reference.and_then(|reference| reference.strip_prefix('#')) {
            at = reference.to_owned();
        }
    }
    let shared = at.ends_with("/AccessLog");
    let properties = schema.pointer_mut(&format!("{at}/properties")).and_then(Value::as_object_mut);
    if let Some(properties) = properties.filter(|_| !shared) {
        properties.remove(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_the_model_s() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schema/mesh-service.json");
        let now = format!("{}\n", serde_json::to_string_pretty(&json_schema(None)).unwrap());
        if std::env::var_os("TOWER_BLESS").is_some() {
            std::fs::write(path, &now).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(published == now, "docs/schema/mesh-service.json is old: run the test with TOWER_BLESS=1");
    }

    #[test]
    fn an_owner_s_schema_has_their_fields() {
        let service = json_schema(Some(Owner::Service)).to_string();
        assert!(!service.contains("\"patches\":{") && service.contains("\"subsets\":{"));
        let security = json_schema(Some(Owner::Security)).to_string();
        assert!(!security.contains("\"subsets\":{") && security.contains("\"allowedCallers\":{"));
    }
}
