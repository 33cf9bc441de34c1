//! From a service document to what Envoys are given.

mod messages;
