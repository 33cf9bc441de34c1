//! Mirrors Tower's store on a host, and serves it to the local Envoys.
//!
//! [`link`] (Tower) and [`disk`] (the snapshot) are the inputs of the [`mirror`]; [`xds`], [`disk`] and
//! [`admin`] are its outputs. [`bootstrap`] tells an Envoy how to get here, and [`wait`] tells
//! others when it is ready.

pub mod admin;
pub mod bootstrap;
pub mod disk;
pub mod drain;
pub mod link;
pub mod metrics;
pub mod mirror;
pub mod options;
pub mod run;
pub mod wait;
pub mod xds;
