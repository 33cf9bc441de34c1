//! What a registration says of itself in free form, as labels.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::json;

/// Labels by name.
pub(super) type Labels = BTreeMap<String, String>;

/// The members of a JSON object that are text, numbers or truth values.
pub(super) fn labels(metadata: Option<&Value>, field: &str, remarks: &mut Vec<String>) -> Labels {
    match metadata {
        None | Some(Value::Null) => Labels::new(),
        Some(Value::Object(object)) => labels_of(object, field, remarks),
        Some(_) => {
            remarks.push(format!("field {field:?}: not an object, and is ignored"));
            Labels::new()
        }
    }
}

/// [`labels`] of what is known to be an object.
pub(super) fn labels_of(object: &Map<String, Value>, field: &str, remarks: &mut Vec<String>) -> Labels {
    let mut labels = Labels::new();
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        match json::scalar(value) {
            Some(text) => drop(labels.insert(name.clone(), text)),
            None => remarks.push(format!("field \"{field}.{name}\": not a text, and is ignored")),
        }
    }
    labels
}

/// The label `weight`, if it is a number, is the weight.
pub(super) fn take_weight(labels: &mut Labels, field: &str, remarks: &mut Vec<String>) -> Option<f64> {
    let text = labels.get("weight")?;
    match text.trim().parse::<f64>() {
        Ok(weight) if weight.is_finite() => {
            labels.remove("weight");
            Some(weight)
        }
        Ok(_) | Err(_) => {
            remarks.push(format!("field \"{field}.weight\": {text:?} is not a number, and stays a label"));
            None
        }
    }
}
