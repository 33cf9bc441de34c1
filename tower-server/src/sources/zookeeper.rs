//! Registrations in a ZooKeeper ensemble.
//!
//! [`session`] keeps in touch and decides when to read; [`tree`] reads, all of it or what changed;
//! [`interpret`] says what a znode means; [`layout`] which znodes count; [`access`] is what a connection needs
//! of TLS and logins, [`connect`] makes it, and [`diagnose`] finds out why there is none. Nothing but
//! [`session`], [`reader`], [`connect`] and [`access`] speaks to the client library.

mod access;
mod connect;
mod diagnose;
mod interpret;
pub(super) mod layout;
mod reader;
mod session;
mod tree;

pub(crate) use self::connect::connect;
pub(super) use self::session::run;
