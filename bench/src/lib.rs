//! Benchmarks of Tower and Beacon.
//!
//! - [`swarm`]: thousands of Beacons in one thread
//! - [`fleet`], [`mesh`]: what they are connected to, and what changes there
//! - [`floor`]: what must be paid by anybody
//! - [`peers`]: others that could do it, measured beside Tower
//! - [`figures`], [`machine`]: what was measured, and on what
//! - [`all`], [`document`], [`svg`]: all scenarios, as a page
//! - the rest: a scenario each

pub mod activation;
pub mod all;
pub mod beacon;
pub mod churn;
pub mod cilium;
pub mod document;
pub mod endtoend;
pub mod fanout;
pub mod figures;
pub mod fleet;
pub mod floor;
pub mod load;
pub mod log;
pub mod machine;
pub mod mesh;
pub mod peers;
pub mod registry;
pub mod slow;
pub mod soak;
pub mod storm;
pub mod svg;
pub mod swarm;
