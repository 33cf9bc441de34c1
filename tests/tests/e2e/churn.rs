//! Instances come and go at random, and traffic follows each time.

use anyhow::Result;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tower_tests::{Upstream, rounds};

use crate::{
    registrar::{Format, Registrar, Registration},
    support::{Mesh, answered_by, callers, seed},
};

/// Few enough that losing all but one at a time is never a mass loss, which would be held.
const UPSTREAMS: usize = 5;

#[tokio::test]
async fn traffic_follows_any_sequence() -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed());
    let mut registrar = Registrar::in_zookeeper(Format::Serverset).await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    let mut upstreams = Vec::new();
    for number in 0..UPSTREAMS {
        upstreams.push(Upstream::start(&format!("upstream-{number}")).await?);
    }
    let mut registered: Vec<(usize, Registration)> = Vec::new();
    for _ in 0..rounds(15, 500) {
        let absent: Vec<usize> =
            (0..UPSTREAMS).filter(|number| registered.iter().all(|(at, _)| at != number)).collect();
        let add = registered.len() < 2 || (!absent.is_empty() && random.random());
        if let Some(&number) = absent.choose(&mut random).filter(|_| add) {
            let registration = registrar.register(upstreams[number].address()).await?;
            registered.push((number, registration));
        } else {
            let at = random.random_range(0..registered.len());
            let (_, registration) = registered.swap_remove(at);
            registrar.deregister(registration).await?;
        }
        let names: Vec<&str> = registered.iter().map(|(number, _)| upstreams[*number].name()).collect();
        answered_by(&callers, "web", &names).await;
    }
    Ok(())
}
