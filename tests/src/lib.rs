//! What the end-to-end tests and the demo share: the real ZooKeeper, the real Envoy, our own
//! servers as processes, and tiny upstreams for the traffic.
//!
//! Nothing here knows Tower's or the Beacon's code. They are started as a user starts them, with
//! flags, and watched as an operator watches them: logs, HTTP, metrics, and the traffic itself.
//!
//! Three rules hold throughout:
//! - Whatever is started ends with the process that started it, however that process ends
//!   ([`leash`]).
//! - Nothing sleeps and hopes. What takes time is asked for again until a deadline ([`poll`]), and
//!   then the last answer is part of the failure.
//! - A test that fails shows the last lines of the logs of all it had started ([`log`]).

pub mod ask;
pub mod authority;
pub mod beacon;
pub mod daemon;
pub mod echo;
pub mod envoy;
pub mod files;
pub mod grpc;
pub mod http;
pub mod leash;
pub mod load;
pub mod log;
pub mod metrics;
pub mod pcloud;
pub mod poll;
pub mod ports;
pub mod programs;
pub mod proxy;
pub mod registry;
pub mod tower;
pub mod upstream;
pub mod zookeeper;

pub use ask::Ask;
pub use authority::{Authority, Issued};
pub use beacon::{Beacon, BeaconOptions, BootstrapOptions, Mode};
pub use echo::{Echo, Seen};
pub use envoy::Envoy;
pub use files::{Endpoint, EndpointFiles};
pub use grpc::GrpcClient;
pub use http::{Caller, Protocol, Reply, Tally};
pub use load::Load;
pub use pcloud::{Pcloud, Ran};
pub use poll::{eventually, rounds};
pub use proxy::{Fault, Proxy};
pub use registry::Registry;
pub use tower::{Tower, TowerOptions};
pub use upstream::Upstream;
pub use zookeeper::{Login, ZooKeeper};
