//! YAML as a tree in which everything has a place. Sizes are bounded before and while it is read.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::Number;
use serde_saphyr::{Location, Spanned};

use super::super::places::Place;

/// Nodes of a document; one of the largest size has hardly more than half as many.
const MAX_NODES: usize = 100_000;

/// How deep a document is nested; patches are deepest.
const MAX_DEPTH: usize = 48;

/// How many nodes aliases may repeat.
const MAX_REPEATED: usize = 20_000;

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) value: Tree,
    pub(super) place: Place,
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Field>),
}

/// An entry of a map.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    /// Where the name is.
    pub(super) place: Place,
    pub(super) node: Node,
}

/// Why a text is no tree.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) place: Place,
    pub(super) problem: String,
}

/// Reads one document.
///
/// # Errors
/// If it is no YAML, has a key twice, or is larger than the bounds, also by aliases.
pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: MAX_NODES * 2,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_documents: 1,
            max_merge_keys: 100,
            max_aliases: 1000,
            max_anchors: 1000,
            max_recorded_anchor_events: MAX_NODES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPEATED,
            max_replay_stack_depth: 16,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| SyntaxError {
        place: error.location().map(place).unwrap_or_default(),
        problem: problem(error.without_snippet()),
    })
}

fn problem(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => format!("{key:?} is there twice"),
        serde_saphyr::Error::Budget {
            breach: serde_saphyr::budget::BudgetBreach::Documents { .. }, ..
        } => "there is more than one document in it".to_owned(),
        serde_saphyr::Error::Budget { breach, .. } => format!("it is larger than is read: {breach:?}"),
        other => other.to_string(),
    }
}

fn place(location: Location) -> Place {
    let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Place { line: number(location.line()), column: number(location.column()) }
}

impl Node {
    /// The field of a map.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Tree::Map(fields) => fields.iter().find(|field| field.name == name).map(|field| &field.node),
            _ => None,
        }
    }

    /// The field of a map.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match &mut self.value {
            Tree::Map(fields) => {
                fields.iter_mut().find(|field| field.name == name).map(|field| &mut field.node)
            }
            _ => None,
        }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, for people.
    pub(super) const fn describe(&self) -> &'static str {
        match &self.value {
            Tree::Null => "nothing",
            Tree::Bool(_) => "true or false",
            Tree::Number(_) => "a number",
            Tree::Text(_) => "text",
            Tree::List(_) => "a list",
            Tree::Map(_) => "an object",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Tree>::deserialize(deserializer)?;
        Ok(Self { value: spanned.value, place: place(spanned.referenced) })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
        Number::from_f64(value).map(Tree::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = access.next_key::<Spanned<String>>()? {
            let node = access.next_value()?;
            fields.push(Field { name: name.value, place: place(name.referenced), node });
        }
        Ok(Tree::Map(fields))
    }
}
