//! Looks host names up, a bounded number at a time.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::{sync::Semaphore, time::timeout};

use super::address::usable;

/// How often every name is looked up again.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(30);

const TIMEOUT: Duration = Duration::from_secs(5);

/// A look-up occupies a thread. More at once would be no faster for a name server that is slow.
const AT_ONCE: usize = 16;

/// The addresses of a name, or why there are none.
type Answer = Result<Vec<IpAddr>, String>;

/// Look-ups by the system's resolver, as its administrator has configured it.
#[derive(Debug)]
pub(super) struct Resolver {
    permits: Arc<Semaphore>,
    asking: BTreeSet<Arc<str>>,
}

impl Resolver {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)), asking: BTreeSet::new() }
    }

    /// A look-up, unless one of this name is on its way.
    pub(super) fn ask(&mut self, name: &Arc<str>) -> Option<BoxFuture<'static, (Arc<str>, Answer)>> {
        if !self.asking.insert(name.clone()) {
            return None;
        }
        let (name, permits) = (name.clone(), self.permits.clone());
        Some(Box::pin(async move {
            let _permit = permits.acquire_owned().await;
            let answer = look_up(&name).await;
            (name, answer)
        }))
    }

    /// A look-up has come back.
    pub(super) fn answered(&mut self, name: &str) {
        self.asking.remove(name);
    }
}

async fn look_up(name: &str) -> Answer {
    match timeout(TIMEOUT, tokio::net::lookup_host((name, 0))).await {
        Ok(Ok(found)) => usable_only(found),
        Ok(Err(error)) => Err(format!("cannot be looked up: {error}")),
        Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
    }
}

fn usable_only(found: impl Iterator<Item = SocketAddr>) -> Answer {
    let addresses: Vec<IpAddr> = found.filter_map(|address| usable(address.ip()).ok()).collect();
    if addresses.is_empty() { Err("has no usable address".to_owned()) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_look_up_of_a_name_at_a_time() {
        let mut resolver = Resolver::new();
        let name: Arc<str> = "localhost".into();
        let look_up = resolver.ask(&name).unwrap();
        assert!(resolver.ask(&name).is_none());
        let (name, answer) = look_up.await;
        assert!(answer.unwrap().iter().all(IpAddr::is_loopback));
        resolver.answered(&name);
        assert!(resolver.ask(&name).is_some());
    }

    #[tokio::test]
    async fn a_name_that_does_not_exist_is_an_error() {
        assert!(look_up("does-not-exist.invalid").await.is_err());
        assert!(usable_only(["0.0.0.0:0".parse().unwrap()].into_iter()).is_err());
    }
}
