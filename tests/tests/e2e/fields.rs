//! Each field of a service document, shown by traffic through the real Envoy.

mod answers;
mod balancing;
mod health;
mod limits;
mod matching;
mod patience;
mod rig;
mod splitting;
