//! The protocol's rules, one test each, as conversations between a client and a session. The words of a
//! conversation are explained in [`crate::xds::testing::script`].

mod cases;
mod delta;
mod envoy;
mod fuzz;
mod isolation;
mod limits;
mod order;
mod others;
mod outlines;
mod random;
mod rejections;
mod releases;
mod sotw;
