//! Where a client is connected from.

use std::{fmt, net::SocketAddr};

use serde::{Serialize, Serializer};
use tonic::{Request, transport::server::UdsConnectInfo};

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// By TCP: whoever can reach the port.
    Tcp(Option<SocketAddr>),
    /// By the Unix socket: a process of this host that the socket's mode lets in.
    Unix {
        /// Its process id, if the system tells.
        pid: Option<i32>,
        /// Its user.
        uid: Option<u32>,
    },
}

impl Peer {
    pub(super) fn of<T>(request: &Request<T>) -> Self {
        match request.extensions().get::<UdsConnectInfo>() {
            Some(info) => {
                let credentials = info.peer_cred;
                Self::Unix {
                    pid: credentials.and_then(|credentials| credentials.pid()),
                    uid: credentials.map(|credentials| credentials.uid()),
                }
            }
            None => Self::Tcp(request.remote_addr()),
        }
    }

    /// Whether it came by the Unix socket.
    pub fn is_unix(&self) -> bool {
        match self {
            Self::Unix { .. } => true,
            Self::Tcp(_) => false,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(Some(address)) => address.fmt(f),
            Self::Tcp(None) => f.write_str("tcp"),
            Self::Unix { pid: Some(pid), uid: Some(uid) } => write!(f, "unix:pid={pid},uid={uid}"),
            Self::Unix { uid: Some(uid), .. } => write!(f, "unix:uid={uid}"),
            Self::Unix { .. } => f.write_str("unix"),
        }
    }
}

impl Serialize for Peer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
