//! The xDS services over gRPC: what the protocol's logic, tested by itself, does not show.

mod basics;
mod dumps;
mod envoy;
mod keepalive;
mod neighbours;
mod releases;
mod support;
mod transport;
