//! The service document: what owners write about a service, as YAML or JSON.
//!
//! - [`model`]: its fields, and what each means to Envoy; [`json_schema`]: the same for other tools
//! - [`parse`]: from text to a part; [`merge`](merge()): from parts to the whole, and where each field comes from
//! - [`check`](check()): what it means, and whether Envoy would take it; [`Finding`]: what is wrong, and where
//! - [`diff`], [`set_weights`]: differences by field, and the one edit that Tower makes itself

mod check;
mod content;
mod finding;
mod merge;
pub mod model;
mod owners;
mod parse;
mod places;
mod rules;
mod schema;

pub use self::{
    check::{MAX_RING, ServiceFacts, World, check, check_part, locate, refuses},
    content::{Change, diff, set_weights},
    finding::{Finding, Severity},
    merge::{Effective, Origin, Part, Parts, merge},
    model::{Document, Owner},
    owners::{FIELDS, owner_of},
    parse::{MAX_DOCUMENT_BYTES, Parsed, api_versions, parse},
    places::{Place, Places},
    rules::{RULES, Rule},
    schema::json_schema,
};
