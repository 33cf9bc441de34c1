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
