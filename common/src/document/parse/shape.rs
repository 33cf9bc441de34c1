//! Compares a tree with the schema of documents, and finds all that does not fit, not only the first.

use serde_json::{Map, Number, Value};

use super::{
    super::{
        Finding, Owner,
        model::{Duration, Percent},
        owners,
        places::{Place, Places, child, item},
        rules,
    },
    names::suggest,
    tree::{Field, Node, Tree},
};

/// Compares a tree with a schema.
pub(super) struct Shape<'a> {
    /// The schema of whole documents.
    pub(super) schema: &'a Value,
    /// Who wrote it.
    pub(super) owner: Owner,
    pub(super) places: Places,
    pub(super) findings: Vec<Finding>,
}

/// Where in the document and in the schema something is.
#[derive(Clone, Copy)]
struct At<'a> {
    schema: &'a Value,
    path: &'a str,
    /// The path without indices and keys, as in the table of owners.
    plain: &'a str,
}

impl<'a> Shape<'a> {
    /// What of the tree fits, as JSON.
    pub(super) fn root(&mut self, node: &Node) -> Value {
        self.node(node, At { schema: self.schema, path: "", plain: "" })
    }

    fn node(&mut self, node: &Node, at: At<'_>) -> Value {
        let at = At { schema: self.resolve(at.schema), ..at };
        let words = words(at.schema);
        if !words.is_empty() {
            return self.word(node, &words, at);
        }
        match (kind(at.schema), &node.value) {
            ("object", Tree::Map(fields)) => self.object(fields, node.place, at),
            ("array", Tree::List(items)) => {
                let schema = at.schema.get("items").unwrap_or(&Value::Bool(true));
                let items = items.iter().enumerate().map(|(index, node)| {
                    let path = item(at.path, index);
                    self.places.insert(&path, node.place);
                    self.node(node, At { schema, path: &path, plain: at.plain })
                });
                Value::Array(items.collect())
            }
            ("string", Tree::Text(text)) => {
                if at.schema["format"] == "mesh-duration"
                    && let Err(problem) = text.parse::<Duration>()
                {
                    self.scalar(node, at, problem);
                }
                Value::String(text.clone())
            }
            ("integer", Tree::Number(number)) if !number.is_f64() => self.integer(node, number, at),
            ("number", Tree::Number(number)) => {
                if at.schema["format"] == "mesh-percent"
                    && let Err(error) = serde_json::from_value::<Percent>(number.clone().into())
                {
                    self.scalar(node, at, error.to_string());
                }
                Value::Number(number.clone())
            }
            ("boolean", Tree::Bool(value)) => Value::Bool(*value),
            ("any", _) => plain(node),
            (wanted, _) => self.wrong(node, wanted, at),
        }
    }

    fn object(&mut self, fields: &[Field], place: Place, at: At<'_>) -> Value {
        let mut object = Map::new();
        let known = at.schema.get("properties").and_then(Value::as_object);
        let others = at.schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
        for field in fields {
            let path = child(at.path, &field.name);
            let scalar = !matches!(field.node.value, Tree::List(_) | Tree::Map(_));
            self.places.insert(&path, if scalar { field.node.place } else { field.place });
            let plain = child(at.plain, &field.name);
            if let Some(schema) = known.and_then(|known| known.get(&field.name)) {
                if !self.is_foreign(field, &path, &plain) {
                    let value = self.node(&field.node, At { schema, path: &path, plain: &plain });
                    object.insert(field.name.clone(), value);
                }
            } else if let Some(schema) = others {
                let value = self.node(&field.node, At { schema, path: &path, plain: at.plain });
                object.insert(field.name.clone(), value);
            } else {
                let names = known.into_iter().flat_map(Map::keys).map(String::as_str);
                let names = names.filter(|name| {
                    owners::writers(&child(at.plain, name)).is_none_or(|who| who.contains(&self.owner))
                });
                let finding = Finding::new(
                    rules::UNKNOWN_FIELD,
                    &path,
                    format!("there is no field {:?} here", field.name),
                    suggest(&field.name, names),
                );
                self.findings.push(finding.at(field.place));
            }
        }
        let required = at.schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !fields.iter().any(|field| field.name == name) {
                let place = self.places.find(at.path).unwrap_or(place);
                let finding = Finding::new(
                    rules::MISSING_FIELD,
                    &child(at.path, name),
                    format!("{name} is needed"),
                    format!("add {name}"),
                );
                self.findings.push(finding.at(place));
            }
        }
        Value::Object(object)
    }

    /// Whether a field is not its writer's: then it is refused, unless it only says whose it is.
    fn is_foreign(&mut self, field: &Field, path: &str, plain: &str) -> bool {
        let Some(writers) = owners::writers(plain) else { return false };
        if writers.contains(&self.owner) {
            return false;
        }
        let owner = writers[0];
        let reference = match &field.node.value {
            Tree::Map(fields) if fields.len() == 1 => field.node.get("ref").and_then(Node::text),
            _ => None,
        };
        if reference != Some(owner.as_str()) {
            let finding = Finding::new(
                rules::FOREIGN_FIELD,
                path,
                format!("{path} belongs to {owner}, and this is the part of {}", self.owner),
                format!("take it out, or write {{ref: {owner}}}, and ask {owner} for the change"),
            );
            self.findings.push(finding.at(field.place));
        }
        true
    }

    fn word(&mut self, node: &Node, words: &[&str], at: At<'_>) -> Value {
        let text = match &node.value {
            Tree::Text(text) => text.as_str(),
            // `off` and the like, in readers of older YAML.
            _ => return self.wrong(node, "string", at),
        };
        if !words.contains(&text) {
            let finding = Finding::new(
                rules::UNKNOWN_WORD,
                at.path,
                format!("{text:?} is not one of {}", words.join(", ")),
                suggest(text, words.iter().copied()),
            );
            self.findings.push(finding.at(node.place));
        }
        Value::String(text.to_owned())
    }

    fn integer(&mut self, node: &Node, number: &Number, at: At<'_>) -> Value {
        let most = match at.schema["format"].as_str() {
            Some("uint16") => u64::from(u16::MAX),
            Some("uint32") => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        if number.as_u64().is_none_or(|value| value > most) {
            self.scalar(node, at, format!("{number} is not a whole number from 0 to {most}"));
        }
        Value::Number(number.clone())
    }

    fn scalar(&mut self, node: &Node, at: At<'_>, problem: String) {
        let finding = Finding::new(rules::BAD_SCALAR, at.path, problem, "write another value");
        self.findings.push(finding.at(node.place));
    }

    fn wrong(&mut self, node: &Node, wanted: &str, at: At<'_>) -> Value {
        let (wanted, step) = match (wanted, &node.value) {
            ("string", Tree::Number(_) | Tree::Bool(_)) => ("text", "put it in quotes"),
            ("string", _) => ("text", "write text"),
            ("array", _) => ("a list", "write a list, with a dash before each item"),
            ("object", _) => ("an object", "write fields, with a name and a colon before each"),
            ("boolean", _) => ("true or false", "write true or false"),
            ("integer", _) => ("a whole number", "write a whole number, without quotes"),
            (_, _) => ("a number", "write a number, without quotes"),
        };
        let step =
            if matches!(node.value, Tree::Null) { "leave the field out, or give it a value" } else { step };
        let message = format!("{wanted} is wanted here, not {}", node.describe());
        let place = self.places.find(at.path).unwrap_or(node.place);
        self.findings.push(Finding::new(rules::WRONG_TYPE, at.path, message, step).at(place));
        Value::Null
    }

    /// Behind references, and the one of two alternatives that is not null.
    fn resolve<'b>(&self, schema: &'b Value) -> &'b Value
    where
        'a: 'b,
    {
        let mut schema = schema;
        loop {
            if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
                schema = &self.schema["$defs"][name.trim_start_matches("#/$defs/")];
            } else if let Some(some) = schema
                .get("anyOf")
                .and_then(Value::as_array)
                .and_then(|any| any.iter().find(|one| one["type"] != "null"))
            {
                schema = some;
            } else {
                return schema;
            }
        }
    }
}

/// The values of a field that knows only some.
fn words(schema: &Value) -> Vec<&str> {
    if let Some(word) = schema.get("const").and_then(Value::as_str) {
        return vec![word];
    }
    let list = |key| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    list("enum").filter_map(Value::as_str).chain(list("oneOf").flat_map(words)).collect()
}

fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("any")
        }
        _ => "any",
    }
}

fn plain(node: &Node) -> Value {
    match &node.value {
        Tree::Null => Value::Null,
        Tree::Bool(value) => Value::Bool(*value),
        Tree::Number(number) => Value::Number(number.clone()),
        Tree::Text(text) => Value::String(text.clone()),
        Tree::List(items) => Value::Array(items.iter().map(plain).collect()),
        Tree::Map(fields) => {
            Value::Object(fields.iter().map(|field| (field.name.clone(), plain(&field.node))).collect())
        }
    }
}
