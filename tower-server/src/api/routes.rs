//! The handlers, by what they are about.

pub mod probes;
pub mod services;
pub mod sources;
