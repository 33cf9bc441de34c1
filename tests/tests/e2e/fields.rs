//! Each field of a service document, shown by traffic through the real Envoy.

mod answers;
mod balancing;
mod bytes;
mod health;
mod inbound;
mod limits;
mod logs;
mod matching;
mod patience;
pub(crate) mod rig;
mod secured;
mod splitting;
