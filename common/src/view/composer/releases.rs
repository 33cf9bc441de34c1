//! Services with documents.

use std::sync::Arc;

use prost::Message;
use tower_proto::{
    envoy::envoy::config::{
        accesslog::v3::AccessLog,
        cluster::v3::Cluster,
        core::v3::config_source::ConfigSourceSpecifier,
        route::v3::{RouteConfiguration, VirtualHost, route_action::ClusterSpecifier},
    },
    v1,
};

use super::{
    Composer,
    world::{
        World, assignment, cluster, dependency, endpoint, inbound_parts, labelled, local_cluster, node, part,
        routes, service, split_release, virtual_host,
    },
};
use crate::view::{PartKind, domains::DomainError, route::default_virtual_host};

fn weights(world: &World, service: &str) -> Vec<(String, u32)> {
    let Some(ClusterSpecifier::WeightedClusters(weighted)) = world.action(service).cluster_specifier else {
        panic!("no weights")
    };
    let weight = |c: &tower_proto::envoy::envoy::config::route::v3::weighted_cluster::ClusterWeight| {
        (c.name.clone(), c.weight.map_or(0, |weight| weight.value))
    };
    weighted.clusters.iter().map(weight).collect()
}

fn split(stable: u32, canary: u32) -> Vec<(String, u32)> {
    vec![("web/stable".into(), stable), ("web/canary".into(), canary)]
}

#[test]
fn a_release_takes_the_place_of_the_default_and_back() {
    let mut world = World::new();
    world.add_all([
        labelled("web", "10.0.0.1", &[("model", "a")]),
        labelled("web", "10.0.0.2", &[("model", "b")]),
    ]);
    let before = world.composition().clone();
    assert!(!world.add_all(split_release("r1")), "nothing is served that is not assigned");
    assert!(world.add(assignment("web", &[], "r1")));
    assert_eq!(world.clusters(), ["web", "web/canary", "web/stable"]);
    assert_eq!(
        ["web", "web/canary", "web/stable"].map(|name| world.members(name)),
        [Some(2), Some(1), Some(1)]
    );
    assert_eq!(weights(&world, "web"), split(90, 10));
    let host = world.host("web");
    assert_eq!(
        (host.name.as_str(), host.domains.as_slice()),
        ("web", &["web".into(), "web.mesh".into()][..])
    );
    let piece = &world.composition().virtual_hosts["web"];
    assert_eq!(piece.clusters().map(|name| &**name).collect::<Vec<_>>(), ["web/canary", "web/stable"]);
    let held = world.held("web");
    assert_eq!((held.assigned.as_deref(), &*held.served, &held.problem), (Some("r1"), "r1", &None));
    let parts: Vec<_> = held.parts.iter().map(|part| (part.kind, &*part.name)).collect();
    let cluster = PartKind::Cluster;
    assert_eq!(
        parts,
        [(cluster, "web"), (cluster, "web/canary"), (cluster, "web/stable"), (PartKind::Piece, "web")]
    );

    assert!(world.add(assignment("web", &[], "")), "an assignment of nothing ends it");
    assert!(world.composition().held.is_empty());
    for (layer, expected) in [
        (&world.composition().clusters, &before.clusters),
        (&world.composition().assignments, &before.assignments),
        (&world.composition().virtual_hosts, &before.virtual_hosts),
    ] {
        assert_eq!(layer, expected);
    }
}

#[test]
fn the_first_rule_with_the_host_decides() {
    let mut world = World::of(node("host-1", &[]));
    world.add_all(["r1", "r2", "r3"].into_iter().flat_map(split_release));
    let mut given = |rules: &[(&str, &str)], default| {
        world.add(assignment("web", rules, default));
        let held = world.held("web");
        assert_eq!(held.assigned.as_deref(), Some(&*held.served));
        let cluster = world.composition().clusters["web"].body.clone();
        (held.served.to_string(), Cluster::decode(cluster).unwrap().alt_stat_name)
    };
    let both = |release: &str, stat: &str| (release.to_owned(), stat.to_owned());
    assert_eq!(given(&[("host=host-1", "r1"), ("everyone", "r2")], "r3"), both("r1", "r1"));
    assert_eq!(given(&[("host=host-2", "r1"), ("zone=a", "r2")], "r3"), both("r2", "r2"));
    assert_eq!(given(&[("host=host-2", "r1")], "r3"), both("r3", "r3"));
    assert_eq!(given(&[("host=host-1", "")], "r3"), both("", ""));
}

#[test]
fn a_service_is_served_without_being_discovered() {
    let mut world = World::new();
    world.add_all(split_release("r1"));
    world.add(assignment("web", &[], "r1"));
    assert_eq!((world.hosts(), world.members("web")), (vec!["web"], Some(0)));
    assert_eq!(weights(&world, "web"), split(90, 10), "all are empty");
    // Whoever is discovered comes first.
    world.add(service("Web", 1));
    assert_eq!(world.hosts(), ["Web"]);
    let (_, error) = world.composer.refused().next().unwrap();
    assert_eq!(*error, DomainError::Taken { domain: "web".into(), owner: "Web".into() });
    world.remove(&service("Web", 1));
    world.remove(&assignment("web", &[], "r1"));
    assert!(world.hosts().is_empty() && world.clusters().is_empty());
    assert!(world.composition().assignments.is_empty() && world.composition().held.is_empty());
}

#[test]
fn a_subset_without_endpoints_gets_no_traffic_and_that_is_told() {
    let mut world = World::new();
    let (stable, canary) =
        (labelled("web", "10.0.0.1", &[("model", "a")]), labelled("web", "10.0.0.2", &[("model", "b")]));
    world.add_all(split_release("r1"));
    world.add_all([assignment("web", &[], "r1"), stable.clone()]);
    assert_eq!(weights(&world, "web"), split(90, 0));
    assert_eq!(world.held("web").notes, ["web/canary has no endpoint in service, and gets no traffic"]);
    world.add(canary.clone());
    assert_eq!(weights(&world, "web"), split(90, 10));
    assert!(world.held("web").notes.is_empty());
    let version = world.composition().virtual_hosts["web"].version;
    world.remove(&stable);
    assert_eq!(weights(&world, "web"), split(0, 10));
    world.remove(&canary);
    assert_eq!(weights(&world, "web"), split(90, 10), "there is nobody to be preferred");
    assert_eq!(world.composition().virtual_hosts["web"].version, version);
}

#[test]
fn weights_of_another_services_cluster_follow_its_endpoints() {
    let mut world = World::new();
    world.add_all([
        cluster("r1", "web", "web", &[]),
        routes("r1", "web", &[("web", 1), ("api", 1)]),
        assignment("web", &[], "r1"),
        endpoint("web", "10.0.0.1"),
    ]);
    let api = |world: &World| weights(world, "web")[1].1;
    assert_eq!(api(&world), 0, "it is not there");
    world.add(service("api", 1));
    assert_eq!(api(&world), 0, "nobody is there");
    world.add(endpoint("api", "10.0.0.2"));
    assert_eq!(api(&world), 1);
    let held = world.held("web").parts.iter().find(|part| part.kind == PartKind::Piece).unwrap().version;
    assert_eq!(held, world.composition().virtual_hosts["web"].version);
    world.remove_all(&[service("api", 1), endpoint("api", "10.0.0.2")]);
    assert_eq!(api(&world), 0);
}

#[test]
fn a_cluster_may_have_the_endpoints_of_another_service() {
    let mut world = World::new();
    let lent = v1::ClusterPart {
        endpoints_of: "api".into(),
        ..v1::ClusterPart::decode(cluster("r1", "web", "web", &[]).body().clone()).unwrap()
    };
    world.add_all([
        part(v1::Kind::Cluster, "web", "r1/web", &lent),
        routes("r1", "web", &[("web", 1)]),
        assignment("web", &[], "r1"),
    ]);
    assert_eq!(world.members("web"), Some(0));
    world.add(endpoint("api", "10.0.0.1"));
    assert_eq!(world.members("web"), Some(1));
    world.add(endpoint("web", "10.0.0.2"));
    assert_eq!(world.members("web"), Some(1));
}

#[test]
fn what_cannot_be_evaluated_leaves_what_there_is() {
    let mut world = World::of(node("host-1", &[]));
    world.add_all([endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1")]);
    let check = |world: &World, assigned: Option<&str>, served: &str, problem: &str| {
        let held = world.held("web");
        assert_eq!((held.assigned.as_deref(), &*held.served), (assigned, served));
        let told = held.problem.as_deref().unwrap_or_default();
        assert!(told.contains(problem) && told.is_empty() == problem.is_empty(), "{told}");
    };
    // What it has is the default.
    world.add(assignment("web", &[], "r1"));
    check(&world, Some("r1"), "", "no part of the release r1 is here");
    assert_eq!(world.composition().virtual_hosts["web"], default_virtual_host("web", "web"));
    world.add_all(split_release("r1"));
    check(&world, Some("r1"), "r1", "");
    let served = world.composition().clone();
    world.add(assignment("web", &[("?", "r2"), ("everyone", "r3")], "r4"));
    check(&world, None, "r1", "a term that this build does not know");
    world.add(assignment("web", &[("host=host-2", "r2")], "r3"));
    check(&world, Some("r3"), "r1", "no part of the release r3");
    let torn = part(v1::Kind::Cluster, "web", "r3/web", &v1::Service { since: 1 });
    world.add(torn.clone());
    check(&world, Some("r3"), "r1", "cluster r3/web: it cannot be read");
    world.add(crate::resource::Resource::new(
        assignment("web", &[], "").key().clone(),
        torn.origin().clone(),
        vec![0xff].into(),
    ));
    check(&world, None, "r1", "the assignment cannot be read");
    // It is kept also when its parts are gone.
    world.remove_all(&split_release("r1"));
    let now = world.composition();
    assert_eq!((&now.clusters, &now.virtual_hosts), (&served.clusters, &served.virtual_hosts));
    world.add(endpoint("web", "10.0.0.2"));
    assert_eq!(world.members("web"), Some(2), "endpoints go on");
    world.remove(&torn);
    world.add_all(split_release("r3"));
    world.add(assignment("web", &[], "r3"));
    check(&world, Some("r3"), "r3", "");
}

#[test]
fn who_has_nothing_to_keep_takes_the_best_guess() {
    let guess = |rules: &[(&str, &str)], default: &str| {
        let mut world = World::of(node("host-1", &[]));
        let parts = split_release("r1").into_iter().chain(split_release("r2"));
        world.add_all(parts.chain([assignment("web", rules, default)]));
        assert!(world.held("web").problem.is_some());
        world.held("web").served.to_string()
    };
    assert_eq!(guess(&[("?", "r9"), ("everyone", "r1")], "r2"), "r1");
    assert_eq!(guess(&[("?", "r9"), ("everyone", "r9")], "r2"), "r2");
    assert_eq!(guess(&[("?", "r9"), ("host=host-2", "r1")], "r9"), "");
    assert_eq!(guess(&[("everyone", "r9")], "r2"), "r2");
}

#[test]
fn a_release_that_is_not_whole_is_not_served() {
    let refused = |parts: Vec<crate::resource::Resource>, problem: &str| {
        let mut world = World::of(node("host-1", &["web"]));
        world.add_all(parts);
        world.add_all([assignment("web", &[], "r1"), endpoint("web", "10.0.0.1")]);
        let held = world.held("web");
        let told = held.problem.as_deref().unwrap_or("nothing");
        assert!(told.contains(problem), "{told:?} does not contain {problem:?}");
        assert_eq!(world.clusters(), ["web"]);
    };
    let with = |part| [split_release("r1"), vec![part]].concat();
    let mut lacking = split_release("r1");
    lacking.remove(2);
    refused(lacking, "the virtual host refers to \"web/canary\", of which there is no part");
    refused(with(cluster("r1", "web", "api", &[])), "\"api\" is no name for what belongs to this service");
    let twice = part(
        v1::Kind::VirtualHost,
        "web",
        "r1/other",
        &v1::VirtualHostPart {
            virtual_host: virtual_host(&[("web", 1)]).encode_to_vec().into(),
            side: v1::Side::Callers.into(),
            ..Default::default()
        },
    );
    refused(with(twice), "the release has routes for callers already");
    let domains = v1::VirtualHostPart {
        virtual_host: VirtualHost { domains: vec!["*".into()], ..Default::default() }.encode_to_vec().into(),
        side: v1::Side::Callers.into(),
        ..Default::default()
    };
    refused(vec![part(v1::Kind::VirtualHost, "web", "r1/callers", &domains)], "brings its own domains");
    let mut sideless = v1::ClusterPart::decode(cluster("r1", "web", "web/x", &[]).body().clone()).unwrap();
    sideless.side = 0;
    refused(with(part(v1::Kind::Cluster, "web", "r1/x", &sideless)), "which side");
    sideless.side = 77;
    refused(with(part(v1::Kind::Cluster, "web", "r1/x", &sideless)), "side 77 is not known");
    let homeless = v1::ClusterPart { side: 1, endpoints_of: String::new(), ..sideless };
    refused(with(part(v1::Kind::Cluster, "web", "r1/x", &homeless)), "does not say of which service");
    let listener = inbound_parts("r1").remove(1);
    refused(with(listener), "inbound/web/8443 refers to \"inbound/web\", of which there is no part");
    let again = local_cluster("r1", "web", "web/canary");
    let again = v1::ClusterPart::decode(again.body().clone()).unwrap();
    refused(with(part(v1::Kind::Cluster, "web", "r1/x", &again)), "another part is called \"web/canary\"");
}

#[test]
fn a_key_in_a_secret_is_refused_and_not_quoted() {
    use tower_proto::envoy::envoy::{
        config::core::v3::{DataSource, data_source::Specifier},
        extensions::transport_sockets::tls::v3::{Secret, TlsCertificate, secret},
    };
    let inline =
        DataSource { specifier: Some(Specifier::InlineString("PRIVATE".into())), ..Default::default() };
    let certificate = TlsCertificate { private_key: Some(inline), ..Default::default() };
    let secret =
        Secret { name: "inbound/web".into(), r#type: Some(secret::Type::TlsCertificate(certificate)) };
    let body = v1::SecretPart { secret: secret.encode_to_vec().into(), side: v1::Side::Inbound.into() };
    let mut world = World::new();
    world.add_all(split_release("r1"));
    world.add(part(v1::Kind::SecretReference, "web", "r1/key", &body));
    world.add(assignment("web", &[], "r1"));
    let problem = world.held("web").problem.clone().unwrap();
    assert!(problem.contains("holds a key") && !problem.contains("PRIVATE"), "{problem}");
    assert!(world.composition().secrets.is_empty());
}

#[test]
fn hosts_of_a_service_have_its_listeners_and_others_do_not() {
    let parts = [split_release("r1"), inbound_parts("r1"), vec![assignment("web", &[], "r1")]].concat();
    let mut caller = World::of(node("host-1", &["api"]));
    caller.add_all(parts.clone());
    assert_eq!(caller.clusters(), ["web", "web/canary", "web/stable"]);
    let composition = caller.composition();
    assert!(composition.listeners.is_empty() && composition.route_configs.is_empty());
    assert!(composition.secrets.is_empty());

    let mut own = World::of(node("host-2", &["web", "api"]));
    own.add_all(parts.clone());
    assert_eq!(own.clusters(), ["inbound/web/8443", "web", "web/canary", "web/stable"]);
    assert_eq!(own.members("inbound/web/8443"), None, "it brings its own");
    let composition = own.composition();
    let names = |layer: &crate::view::Layer| layer.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&composition.listeners), ["inbound/web/8443", "outbound/web/db"]);
    let outbound = &composition.listeners["outbound/web/db"];
    assert_eq!(outbound.clusters().map(|name| &**name).collect::<Vec<_>>(), ["db"]);
    assert_eq!(names(&composition.route_configs), ["inbound/web"]);
    let routes = RouteConfiguration::decode(composition.route_configs["inbound/web"].body.clone()).unwrap();
    assert_eq!(
        (routes.virtual_hosts.len(), routes.virtual_hosts[0].domains.as_slice()),
        (1, &["*".into()][..])
    );
    assert_eq!(names(&composition.secrets), ["inbound/web"]);
    assert!(Arc::ptr_eq(&composition.secrets, &composition.socket_secrets));
    let kinds: Vec<PartKind> = own.held("web").parts.iter().map(|part| part.kind).collect();
    use PartKind::{Cluster, Listener, Piece, Routes};
    assert_eq!(
        kinds,
        [Cluster, Cluster, Cluster, Cluster, Piece, Listener, Listener, Routes],
        "nobody refers to the secret"
    );

    own.remove_all(&parts);
    let composition = own.composition();
    assert!(composition.listeners.is_empty() && composition.route_configs.is_empty());
    assert!(composition.secrets.is_empty() && own.clusters().is_empty());
}

#[test]
fn what_runs_here_says_how_it_calls_others() {
    let parts = [
        endpoint("web", "10.0.0.1"),
        cluster("r1", "api", "api", &[]),
        dependency("r1", "api", "web", 80),
        assignment("api", &[], "r1"),
    ];
    let timeout = |world: &World| world.action("web").timeout.map(|timeout| (timeout.seconds, timeout.nanos));
    let mut other = World::of(node("host-1", &[]));
    other.add_all(parts.clone());
    assert_eq!(timeout(&other), Some((0, 0)));
    let mut own = World::of(node("host-2", &["api"]));
    own.add_all(parts);
    assert_eq!(timeout(&own), Some((0, 80_000_000)));
    // Also of a service with a release.
    own.add_all(split_release("r1"));
    own.add(assignment("web", &[], "r1"));
    assert_eq!(timeout(&own), Some((0, 80_000_000)));
    assert_eq!(own.held("web").notes, ["called from here as api says"]);
    own.add_all([cluster("r2", "api", "api", &[]), dependency("r2", "api", "other", 80)]);
    own.add(assignment("api", &[], "r2"));
    assert_eq!(timeout(&own), None, "the release of web says nothing");
    own.add(assignment("api", &[], "r1"));
    own.remove(&assignment("api", &[], "r1"));
    assert_eq!(timeout(&own), None);
}

#[test]
fn grpc_has_other_routes_if_the_release_says_so() {
    let body = v1::VirtualHostPart {
        virtual_host: virtual_host(&[("web", 1)]).encode_to_vec().into(),
        side: v1::Side::Callers.into(),
        grpc: virtual_host(&[("web/canary", 1)]).encode_to_vec().into(),
        ..Default::default()
    };
    let mut world = World::new();
    world.add_all([
        cluster("r1", "web", "web", &[]),
        cluster("r1", "web", "web/canary", &[]),
        part(v1::Kind::VirtualHost, "web", "r1/callers", &body),
        assignment("web", &[], "r1"),
    ]);
    let specifier = |world: &World| world.action("web").cluster_specifier;
    assert_eq!(specifier(&world), Some(ClusterSpecifier::Cluster("web".into())));
    let grpc = VirtualHost::decode(world.composition().grpc_hosts["web"].body.clone()).unwrap();
    assert_eq!((grpc.name.as_str(), grpc.routes.len()), ("web", 1));
    assert_ne!(grpc, world.host("web"));
    world.remove(&assignment("web", &[], "r1"));
    assert!(world.composition().grpc_hosts.is_empty());
}

#[test]
fn grpc_has_other_clusters_if_the_release_says_so() {
    let mut body = v1::ClusterPart::decode(cluster("r1", "web", "web", &[]).body().clone()).unwrap();
    let envoys = Cluster::decode(body.cluster.clone()).unwrap();
    body.grpc = Cluster { alt_stat_name: "grpc".into(), ..envoys.clone() }.encode_to_vec().into();
    let mut world = World::new();
    let release = [part(v1::Kind::Cluster, "web", "r1/web", &body), routes("r1", "web", &[("web", 1)])];
    world.add_all(release.into_iter().chain([assignment("web", &[], "r1")]));
    let composition = world.composition();
    let grpc = Cluster::decode(composition.grpc_clusters["web"].body.clone()).unwrap();
    assert_eq!((grpc.alt_stat_name.as_str(), grpc.eds_cluster_config.is_some()), ("grpc", true));
    assert_ne!(composition.clusters["web"], composition.grpc_clusters["web"]);
    world.add(service("web", 1));
    world.remove(&assignment("web", &[], "r1"));
    assert!(world.composition().grpc_clusters.is_empty() && world.clusters() == ["web"]);
    body.grpc = Cluster { name: "other".into(), ..envoys }.encode_to_vec().into();
    world.add_all([part(v1::Kind::Cluster, "web", "r1/web", &body), assignment("web", &[], "r1")]);
    assert!(world.held("web").problem.as_ref().is_some_and(|problem| problem.contains("another name")));
}

#[test]
fn services_of_one_log_have_it_together() {
    let log = |name: &str| AccessLog { name: name.into(), ..Default::default() }.encode_to_vec();
    let logged = |service: &str, name: &str| {
        let body = v1::VirtualHostPart {
            virtual_host: virtual_host(&[(service, 1)]).encode_to_vec().into(),
            side: v1::Side::Callers.into(),
            access_log: log(name).into(),
            ..Default::default()
        };
        let host = part(v1::Kind::VirtualHost, service, "r1/callers", &body);
        [cluster("r1", service, service, &[]), host, assignment(service, &[], "r1")]
    };
    let mut world = World::new();
    let logs = |world: &World| world.composition().access_logs.clone();
    world.add_all(logged("web", "a").into_iter().chain(logged("api", "a")));
    let both = logs(&world);
    assert_eq!(both.iter().map(|log| log.to_vec()).collect::<Vec<_>>(), [log("a")]);
    world.remove(&assignment("web", &[], "r1"));
    assert!(Arc::ptr_eq(&logs(&world), &both), "the other one still has it");
    world.add_all(logged("web", "b"));
    assert_eq!(logs(&world).len(), 2);
    world.remove_all(&[assignment("web", &[], "r1"), assignment("api", &[], "r1")]);
    assert!(logs(&world).is_empty());
}

#[test]
fn clusters_ask_for_their_endpoints_on_the_aggregated_stream() {
    let mut world = World::new();
    world.add_all(split_release("r1"));
    world.add(assignment("web", &[], "r1"));
    let cluster = Cluster::decode(world.composition().clusters["web/canary"].body.clone()).unwrap();
    let source = cluster.eds_cluster_config.unwrap().eds_config.unwrap().config_source_specifier;
    assert!(matches!(source, Some(ConfigSourceSpecifier::Ads(_))));
}

#[test]
fn a_change_costs_what_it_changes() {
    let mut world = World::new();
    world.add_all(split_release("r1"));
    world.add_all([assignment("web", &[], "r1"), endpoint("api", "10.0.0.1")]);
    world.add(labelled("web", "10.0.0.1", &[("model", "a")]));
    let before = world.composition().clone();
    world.add(labelled("web", "10.0.0.2", &[("model", "a")]));
    let after = world.composition();
    assert!(Arc::ptr_eq(&before.clusters, &after.clusters));
    assert!(Arc::ptr_eq(&before.virtual_hosts, &after.virtual_hosts));
    assert!(Arc::ptr_eq(&before.held, &after.held));
    assert_eq!(before.assignments["web/canary"], after.assignments["web/canary"]);
    assert_ne!(before.assignments["web/stable"], after.assignments["web/stable"]);
    let before = after.clone();
    assert!(!world.add_all(split_release("r2")), "a release that nobody is given changes nothing");
    assert!(world.composition().is_same(&before));
}

/// As Tower does, to show who would get what.
#[test]
fn a_preview_is_a_composition_for_any_host() {
    let mut world = World::new();
    world.add_all(split_release("r1").into_iter().chain(split_release("r2")));
    world.add(assignment("web", &[("zone=a&label:team=ads", "r2")], "r1"));
    let given = |facts| {
        let composer = Composer::of_store("", facts, &world.store);
        composer.composition().held["web"].served.to_string()
    };
    let mut ads = node("host-1", &[]);
    ads.labels.insert("team".into(), "ads".into());
    assert_eq!((given(node("host-1", &[])), given(ads)), ("r1".to_owned(), "r2".to_owned()));
}
