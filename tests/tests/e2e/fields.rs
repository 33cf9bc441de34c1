//! Each field of a service document, shown by traffic through the real Envoy.

mod answers;
mod matching;
mod rig;
