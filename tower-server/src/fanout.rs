//! From the store to thousands of streams.
//!
//! - [`frame`]: a change as bytes, encoded once, framed as gRPC frames messages
//! - [`log`]: a bounded ring of frames, which all streams share
//! - [`start`]: what brings a Beacon to a place in the ring, made once for all who need the same
//! - [`admission`]: how much of that may be on its way
//! - [`body`]: one stream's response: a start, and then a cursor into the ring
//! - [`service`]: `tower.v1.Sync` over HTTP/2
//! - `peer`: the other end of a connection, and which node it may be
//! - [`beacons`], [`refusals`]: who is connected, and what they report; who could not
//! - [`probes`]: how long what is sent takes until it is applied

pub mod admission;
pub mod beacons;
pub mod body;
pub mod frame;
pub mod log;
mod peer;
pub mod probes;
pub mod refusals;
pub mod service;
pub mod start;
