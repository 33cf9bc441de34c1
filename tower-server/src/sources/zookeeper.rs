//! Registrations in a ZooKeeper ensemble.
//!
//! [`session`] keeps in touch and decides when to read; [`tree`] reads, all of it or what changed;
//! [`interpret`] says what a znode means; [`layout`] which znodes count. Nothing but [`session`] and
//! [`reader`] knows the client library.

mod interpret;
pub(super) mod layout;
mod reader;
mod session;
mod tree;

pub(super) use self::session::run;
