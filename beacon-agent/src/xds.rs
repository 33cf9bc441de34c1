//! The xDS server: what Envoys and gRPC clients on this host are told of the composition.
//!
//! The protocol is logic without IO, and the gRPC service a thin shell around it:
//! - [`kind`]: the resource types and the two variants, state of the world and delta
//! - `session`: one aggregated stream; the order between types. It holds one `channel` per type, each
//!   with a `subscription` (what the client wants) and a `ledger` (what it has, as far as is known)
//! - `selection`: what goes into one message; `retry`: sending again what a host could not take
//! - `protocol`, `sotw`, `delta`: where the two variants differ
//! - `offer`, `pieces`, `gate`: what one client may have now, make before break; `targets`: the same for gRPC
//! - `triage`, `blame`, `memory`: what a client cannot take, how that is found out, and kept
//! - [`mod@statics`]: resources from files, which discovery does not bring
//! - `node`: what a client says of itself; `sources`: where it asks
//! - `driver`, [`mod@service`]: a stream of a client, from its first byte to its end
//! - [`mod@server`], [`mod@socket`], `peer`: TCP and the Unix socket, and who is at the other end
//! - `standing`: what one client has of the host's releases
//! - [`mod@clients`], [`mod@metrics`], [`mod@dump`]: what operators see, and what is reported
//!
//! There is no cache, and no task or queue per stream: a response is made from the newest composition
//! when the connection has room for it.

mod blame;
mod channel;
pub mod clients;
mod delta;
mod driver;
pub mod dump;
mod gate;
pub mod kind;
mod ledger;
mod memory;
pub mod metrics;
mod node;
mod offer;
pub mod peer;
mod pieces;
mod protocol;
mod retry;
mod selection;
pub mod server;
pub mod service;
mod session;
pub mod socket;
mod sotw;
mod sources;
mod standing;
pub mod statics;
mod subscription;
mod targets;
#[cfg(test)]
mod testing;
mod triage;

pub use self::{
    clients::Clients,
    kind::{Mode, ResourceType, Scope},
    memory::{Memories, MemoryError},
    metrics::Metrics,
    peer::Peer,
    server::{Keepalive, serve},
    service::{Options, services},
};
