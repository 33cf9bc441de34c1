//! Step by step or at once, the composition is the same.

use proptest::prelude::*;

use super::{
    Composer,
    world::{
        World, assignment, cluster, dependency, endpoint, inbound_parts, labelled, node, routes, service,
        split_release,
    },
};
use crate::{
    resource::Resource,
    view::{Composition, Layer},
};

/// What comes or goes, of a few things.
#[derive(Debug, Clone)]
struct Step {
    what: Vec<(usize, bool)>,
}

/// Services and their endpoints, and assignments. Of an assignment there are several, of which the last counts.
fn facts() -> Vec<Resource> {
    let mut facts = vec![
        service("web", 3),
        service("api", 4),
        service("Web", 2),
        service("a b", 1),
        endpoint("api", "10.0.1.1"),
        endpoint("db", "10.0.2.1"),
    ];
    for (address, model) in [("10.0.0.1", "a"), ("10.0.0.2", "a"), ("10.0.0.3", "b")] {
        facts.push(labelled("web", address, &[("model", model)]));
    }
    for (rules, default) in [
        (&[][..], "r1"),
        (&[("host=host-1", "r2")], "r1"),
        (&[("host=host-2", "r2")], ""),
        (&[("zone=a", "")], "r2"),
        (&[], ""),
    ] {
        facts.push(assignment("web", rules, default));
    }
    facts.extend([assignment("api", &[], "r1"), assignment("api", &[("everyone", "r2")], "")]);
    facts
}

/// Releases, whole.
fn releases() -> Vec<Vec<Resource>> {
    vec![
        [split_release("r1"), inbound_parts("r1")].concat(),
        vec![
            cluster("r2", "web", "web", &[]),
            cluster("r2", "web", "web/new", &[("model", "b")]),
            routes("r2", "web", &[("web/new", 50), ("api", 50), ("db", 1)]),
        ],
        vec![cluster("r1", "api", "api", &[]), dependency("r1", "api", "web", 80)],
        vec![routes("r2", "api", &[("web", 1)]), dependency("r2", "api", "api", 90)],
    ]
}

/// Applies a step: things are first all facts, then releases.
fn apply(world: &mut World, step: &Step) {
    let (facts, releases) = (facts(), releases());
    let resources = |index: usize| match facts.get(index) {
        Some(fact) => vec![fact.clone()],
        None => releases[index - facts.len()].clone(),
    };
    for (index, comes) in &step.what {
        let resources = resources(*index);
        if *comes {
            world.add_all(resources);
        } else {
            world.remove_all(&resources);
        }
    }
}

fn layers(composition: &Composition) -> [&Layer; 8] {
    [
        &composition.clusters,
        &composition.assignments,
        &composition.virtual_hosts,
        &composition.grpc_hosts,
        &composition.listeners,
        &composition.route_configs,
        &composition.secrets,
        &composition.socket_secrets,
    ]
}

/// What is kept because of a problem depends on what was there before, and is compared when it is solved.
fn compare(world: &World) {
    let composition = world.composition();
    if composition.held.values().any(|held| held.problem.is_some()) {
        return;
    }
    let fresh = Composer::of_store("", world.composer.node.clone(), &world.store);
    let fresh = fresh.composition();
    assert_eq!(layers(composition), layers(fresh));
    assert_eq!(composition.domains, fresh.domains);
    assert_eq!(composition.held, fresh.held);
}

fn step() -> impl Strategy<Value = Step> {
    let things = facts().len() + releases().len();
    prop::collection::vec((0..things, prop::bool::weighted(0.7)), 1..4).prop_map(|what| Step { what })
}

proptest! {
    #[test]
    fn step_by_step_is_as_at_once(steps in prop::collection::vec(step(), 1..16), own in any::<bool>()) {
        let mut world = World::of(node("host-1", if own { &["web", "api"] } else { &[] }));
        for step in &steps {
            apply(&mut world, step);
            compare(&world);
        }
        for release in releases() {
            world.add_all(release);
        }
        let held = &world.composition().held;
        prop_assert!(held.values().all(|held| held.problem.is_none()), "{held:?}");
        compare(&world);
    }
}
