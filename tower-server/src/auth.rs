//! Who somebody is who asks over HTTP, and what they may do.
//!
//! - [`token`]: what a token looks like, and how one is checked without telling anything about others
//! - [`identity`]: from what a request presents to who it is
//! - [`connection`]: the client certificate of a connection
//! - [`session`]: what a browser gets in exchange for a token, and how its requests are told from those of other sites
//! - [`gate`]: before every handler: nobody gets past it without a credential, but to what is open to all
//! - [`first`]: the token with which all others begin
//!
//! What tokens there are, and what they may do, is in the event log: a token is its id and the hash of its
//! secret; a client certificate is a name. What a role may do is decided where commands are carried out.

pub mod connection;
pub mod first;
pub mod gate;
pub mod identity;
pub mod session;
pub mod token;
