//! The handlers, by what they are about.

pub mod activations;
pub mod activity;
pub mod config;
pub mod fleet;
mod groups;
pub mod log;
pub mod parts;
pub mod past;
pub mod plan;
pub mod probes;
pub mod queries;
pub mod schema;
pub mod services;
pub mod session;
pub mod sources;
pub mod tokens;
pub mod versions;
