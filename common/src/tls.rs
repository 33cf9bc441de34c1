//! TLS: the files that flags name, what is made of them, and noticing that they changed.
//!
//! - [`files`]: certificates and keys in PEM, read with errors that name flag and file
//! - [`certificate`]: what a certificate says: whose it is, and until when
//! - [`server`], [`client`]: the two ends of a connection
//! - [`reload`]: keeps what was made in step with the files
//!
//! No socket is opened here, and no key is ever part of a message.

pub mod certificate;
pub mod client;
pub mod files;
pub mod reload;
pub mod server;
#[cfg(test)]
mod testing;

pub use self::{
    certificate::Certificate,
    client::{ClientFiles, ClientTls},
    files::{TlsError, TlsFile},
    reload::{Reloading, TlsFiles, TlsStatus},
    server::{ServerFiles, ServerTls},
};

/// Makes ring the cryptography of this process. Dependencies may bring others, and rustls does not
/// choose between them.
pub fn install_provider() {
    // It fails if one is installed, by an earlier call: then there is nothing to do.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
