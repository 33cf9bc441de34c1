//! Ports for those who must name theirs before they bind it, or bind the same one again.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the range from which Linux takes ports for outgoing connections and for binds to port 0
/// (32768 and up, unless configured otherwise). A port of that range may be given to anybody while a
/// server restarts; and a client that calls its dead server's port often enough is one day given
/// that very port, and is connected to itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port of 127.0.0.1 that nobody uses, and that this process will not be given again.
///
/// # Panics
///
/// If all ports of the range are taken.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two test processes at once begin at different places; within one, the counter decides.
    let start = std::process::id().wrapping_mul(97) % u32::from(COUNT);
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = u16::try_from((start + step) % u32::from(COUNT)).unwrap_or_default();
        let port = FIRST + offset;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port from {FIRST} to {}", FIRST + COUNT - 1)
}

/// An address on 127.0.0.1 with a [`free_port`].
pub fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn a_taken_port_is_passed_over() {
        let taken: Vec<TcpListener> =
            (0..20).map(|_| TcpListener::bind(free_address()).expect("a free port")).collect();
        let ports: Vec<u16> = taken.iter().map(|l| l.local_addr().expect("bound").port()).collect();
        assert!(!ports.contains(&free_port()));
    }
}
