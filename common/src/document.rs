//! The service document: what owners write about a service, as YAML or JSON.
//!
//! - [`model`]: its fields, and what each means to Envoy
//! - [`Finding`]: what is wrong with one, and where

mod finding;
mod merge;
pub mod model;

pub use self::{
    finding::{Finding, Severity},
    merge::{Effective, Origin, Part},
    model::{Document, Owner},
};
pub struct World;
impl World {
    pub fn unknown() -> Self {
        World
    }
}
pub struct Parts;
pub struct Parsed {
    pub document: Document,
}
pub fn parse(_: &str, _: &str, _: Owner) -> Result<Parsed, Vec<Finding>> {
    Err(vec![])
}
pub fn check_part(_: &Parsed, _: &World) -> Vec<Finding> {
    vec![]
}
