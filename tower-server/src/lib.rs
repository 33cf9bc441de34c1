//! Watches where services register, and fans changes out to Beacons.
//!
//! Sources ([`sources`]) turn what they watch into transactions; one actor ([`store_actor`]) applies
//! them to the store, encodes each once and appends it to the frame log; streams ([`fanout`]) are cursors
//! into that log, over connections that [`grpc`] accepts. [`api`] is HTTP, for people, tools and probes, and
//! [`auth`] says who they are.
//!
//! What is decided about services is in the event log ([`event_log`]); [`compile`] makes resources of it.

pub mod api;
pub mod auth;
pub mod compile;
pub mod decisions;
pub mod event_log;
pub mod fanout;
pub mod fleet;
pub mod grpc;
pub mod metrics;
pub mod options;
pub mod registry;
pub mod run;
pub mod sources;
pub mod store_actor;
