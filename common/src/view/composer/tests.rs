//! Services without documents.

use std::sync::Arc;

use bytes::Bytes;
use tower_proto::v1;

use super::world::{World, endpoint, service};
use crate::resource::{Origin, Resource, ResourceKey};

#[test]
fn a_service_is_served_from_its_first_sign_of_life_to_its_last() {
    let mut world = World::new();
    assert!(world.add(service("web", 1)));
    assert_eq!((world.hosts(), world.members("web")), (vec!["web"], Some(0)));
    assert!(world.add(endpoint("web", "10.0.0.1")));
    assert_eq!(world.members("web"), Some(1));
    assert!(!world.remove(&service("web", 1)), "its endpoint is still there");
    assert_eq!((world.hosts(), world.members("web")), (vec!["web"], Some(1)));
    assert!(world.remove(&endpoint("web", "10.0.0.1")));
    assert_eq!((world.hosts(), world.members("web")), (vec![], None));
    assert!(world.composer.composition().clusters.is_empty());
}

#[test]
fn an_endpoint_changes_its_own_assignment_only() {
    let mut world = World::new();
    world.add(endpoint("a", "10.0.0.1"));
    world.add(endpoint("b", "10.0.0.1"));
    let before = world.composer.composition().clone();
    assert!(world.add(endpoint("a", "10.0.0.2")));
    let after = world.composer.composition();
    assert!(Arc::ptr_eq(&before.clusters, &after.clusters));
    assert!(Arc::ptr_eq(&before.virtual_hosts, &after.virtual_hosts));
    assert_eq!(before.assignments["b"], after.assignments["b"]);
    assert_ne!(before.assignments["a"], after.assignments["a"]);
}

#[test]
fn names_that_collide_have_one_owner() {
    let mut world = World::new();
    world.add(service("Ads", 7));
    world.add(service("ads", 3));
    world.add(service("ads.mesh", 1));
    assert_eq!(world.hosts(), ["ads"]);
    let owner = |world: &World| world.composer.composition().domains["ads"].to_string();
    assert_eq!(owner(&world), "ads");
    assert_eq!(world.composer.refused().count(), 2);
    assert_eq!(world.composer.composition().clusters.len(), 2, "those that could be host names");
    world.remove(&service("ads", 3));
    assert_eq!(world.hosts(), ["Ads"]);
    assert_eq!(owner(&world), "Ads");
    world.remove(&service("Ads", 7));
    assert!(world.composer.composition().domains.is_empty());
}

#[test]
fn a_name_that_means_something_in_xds_is_no_cluster() {
    let mut world = World::new();
    for name in ["*", "xdstp:x", "a b", ""] {
        world.add(service(name, 1));
        world.add(endpoint(name, "10.0.0.1"));
    }
    let composition = world.composer.composition();
    assert!(composition.clusters.is_empty() && composition.assignments.is_empty());
    assert_eq!(world.composer.refused().count(), 4);
}

#[test]
fn unknown_kinds_and_other_scopes_change_nothing() {
    let mut world = World::new();
    let origin = Origin { source: "zk".into(), index: 1 };
    let mut key = ResourceKey::new("", v1::Kind::Endpoint, "web", "x");
    key.kind = 4711;
    assert!(!world.add(Resource::new(key, origin.clone(), Bytes::new())));
    let key = ResourceKey::new("other", v1::Kind::Service, "web", "x");
    assert!(!world.add(Resource::new(key, origin, Bytes::new())));
}
