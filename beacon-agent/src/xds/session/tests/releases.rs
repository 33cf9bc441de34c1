//! Releases: pieces that refer to several clusters, listeners of services on the host, and what is reported.

use std::sync::Arc;

use tower_common::{audience::Workload, view::NodeView};

use crate::xds::{
    delta::Delta,
    testing::script::{Conversation, check, check_delta, check_sotw, node},
};

/// An Envoy on a host of the service a, with everything.
const CONNECTED: &str = "world a b in:a
    > CDS
    << CDS a b inbound/a/1
    > EDS +a +b
    << EDS a b
    > LDS
    << LDS egress inbound/a/1
    > RDS +egress +inbound/a
    << RDS egress(a,b) inbound/a
    quiet
    stands a accepted
    stands b accepted
";

#[test]
fn a_release_moves_to_its_clusters_when_they_are_accepted() {
    check_delta(&format!(
        "{CONNECTED}
         world a+x b in:a
         < CDS a/x
         stands a pending
         quiet                 # the routes stay as they were
         > EDS +a/x
         << EDS a/x
         quiet
         ack CDS
         << RDS egress(a,b)
         quiet
         stands a accepted"
    ));
    check_sotw(&format!(
        "{CONNECTED}
         world a+x b:1.1.2 in:a
         < CDS a a/x b inbound/a/1
         << RDS egress(a,b:2)  # others do not wait
         quiet
         > EDS +a/x
         << EDS a/x
         ack CDS
         << RDS egress(a,b:2)
         quiet
         stands a accepted"
    ));
}

#[test]
fn clusters_that_a_release_drops_go_last() {
    check_delta(&format!(
        "{CONNECTED}
         world a+x b in:a
         << CDS a/x
         > EDS +a/x
         << EDS a/x
         << RDS egress(a,b)
         world a+y b in:a      # from x to y in one change
         < CDS a/y
         > EDS +a/y
         << EDS a/y
         quiet
         ack CDS
         < RDS egress(a,b)
         quiet                 # the client may go back to x
         ack RDS
         << CDS -a/x
         << EDS -a/x
         quiet"
    ));
}

#[test]
fn a_client_that_rejects_new_routes_still_has_the_clusters_of_the_old() {
    check_delta(&format!(
        "{CONNECTED}
         world a+x b in:a
         << CDS a/x
         > EDS +a/x
         << EDS a/x
         << RDS egress(a,b)
         world a:1.1.2 b in:a
         < RDS egress(a:2,b)
         nack RDS
         << RDS egress(a,b)
         quiet                 # with its cluster a/x
         stands a rejected
         stands b accepted
         world a:1.1.3 b in:a
         << RDS egress(a:3,b)
         << CDS -a/x
         << EDS -a/x
         stands a accepted"
    ));
}

#[test]
fn a_rejected_cluster_is_the_release_rejected() {
    let connected = CONNECTED.replace("> EDS +a +b\n    << EDS a b\n", "");
    check_delta(&format!(
        "{connected}
         world a:2 b:2 in:a
         < CDS a:2 b:2
         stands a pending
         nack CDS
         stands a pending      # it may be b
         << CDS a:2 b
         < CDS b:2
         nack CDS
         << CDS b
         quiet
         stands a accepted
         stands b rejected
         world a:2 b in:a      # taken back
         stands b accepted
         quiet"
    ));
}

#[test]
fn listeners_and_their_routes_come_and_go_in_order() {
    check_delta(
        "world a b
         > CDS
         << CDS a b
         > LDS
         << LDS egress
         > RDS +egress
         << RDS egress(a,b)
         world a b in:a
         < CDS inbound/a/1
         << LDS inbound/a/1
         quiet
         stands a pending
         > RDS +inbound/a
         << RDS inbound/a
         stands a pending
         ack CDS
         stands a accepted
         quiet
         world a b
         << LDS -inbound/a/1
         > RDS -inbound/a
         << CDS -inbound/a/1
         quiet",
    );
    check_sotw(
        "world a in:a
         > CDS
         << CDS a inbound/a/1
         > LDS
         << LDS egress inbound/a/1
         > RDS +egress +inbound/a
         << RDS egress(a) inbound/a
         world a in:a:2
         << LDS egress inbound/a/1:2
         quiet
         stands a accepted",
    );
}

#[test]
fn a_bad_listener_costs_only_its_own_service() {
    check_delta(&format!(
        "{CONNECTED}
         world a b in:a:2 in:b:2
         << CDS inbound/b/1
         < LDS inbound/a/1:2 inbound/b/1:2
         nack LDS
         << LDS inbound/a/1:2
         < LDS inbound/b/1:2
         nack LDS
         quiet
         stands a accepted
         stands b rejected"
    ));
    check_sotw(&format!(
        "{CONNECTED}
         world a b in:a:2 in:b:2
         << CDS a b inbound/a/1 inbound/b/1
         < LDS egress inbound/a/1:2 inbound/b/1:2
         blame LDS Error adding/updating listener(s) inbound/b/1: unknown filter
         << LDS egress inbound/a/1:2
         < LDS egress inbound/a/1:2 inbound/b/1:2
         nack LDS
         quiet
         stands a accepted
         stands b rejected"
    ));
}

#[test]
fn a_taken_port_costs_only_its_own_service_and_is_tried_again() {
    const TAKEN: &str = "Error adding/updating listener(s) inbound/b/1: cannot bind: Address already in use";
    check_delta(&format!(
        "{CONNECTED}
         world a b in:a:2 in:b
         << CDS inbound/b/1
         < LDS inbound/a/1:2 inbound/b/1
         blame LDS {TAKEN}
         stands a accepted
         stands b host
         world a b in:a:3 in:b
         << LDS inbound/a/1:3  # without the one whose port is taken
         stands b host
         quiet
         wait 1000
         << LDS inbound/b/1
         > RDS +inbound/b
         << RDS inbound/b
         stands b accepted
         quiet"
    ));
    check_sotw(&format!(
        "{CONNECTED}
         world a b in:a:2 in:b
         << CDS a b inbound/a/1 inbound/b/1
         < LDS egress inbound/a/1:2 inbound/b/1
         blame LDS {TAKEN}
         stands a accepted
         stands b host
         quiet
         wait 1000
         < LDS egress inbound/a/1:2 inbound/b/1
         blame LDS {TAKEN}
         quiet
         wait 2000
         << LDS egress inbound/a/1:2 inbound/b/1
         > RDS +inbound/b
         << RDS inbound/b
         stands b accepted"
    ));
}

#[test]
fn a_taken_port_does_not_hide_that_another_listener_is_bad() {
    const BOTH: &str = "Error adding/updating listener(s) inbound/a/1: cannot bind: Address already in use, \
                        inbound/b/1: unknown filter";
    check_delta(&format!(
        "{CONNECTED}
         world a b in:a:2 in:b:2
         << CDS inbound/b/1
         < LDS inbound/a/1:2 inbound/b/1:2
         blame LDS {BOTH}
         quiet
         > RDS +inbound/b
         << RDS inbound/b
         stands a host
         stands b rejected
         wait 1000
         << LDS inbound/a/1:2
         stands a accepted
         stands b rejected
         quiet"
    ));
}

#[test]
fn a_taken_port_and_a_bad_listener_cost_no_third() {
    const BOTH: &str = "Error adding/updating listener(s) inbound/a/1: cannot bind: Address already in use, \
                        inbound/b/1: unknown filter";
    check_delta(&format!(
        "{CONNECTED}
         world a b c d in:a:2 in:b:2 in:c in:d
         << CDS c d inbound/b/1 inbound/c/1 inbound/d/1
         < LDS inbound/a/1:2 inbound/b/1:2 inbound/c/1 inbound/d/1
         << RDS egress(a,b,c,d)
         blame LDS {BOTH}
         << LDS inbound/c/1 inbound/d/1
         < LDS inbound/b/1:2
         nack LDS
         quiet
         stands c pending      # it has not asked for the routes
         > RDS +inbound/c
         << RDS inbound/c
         stands a host
         stands b rejected
         stands c accepted"
    ));
    const TAKEN: &str = "Error adding/updating listener(s) inbound/a/1: cannot bind: Address already in use";
    check_sotw(&format!(
        "{CONNECTED}
         world a b c in:a:2 in:b:2 in:c
         << CDS a b c inbound/a/1 inbound/b/1 inbound/c/1
         < LDS egress inbound/a/1:2 inbound/b/1:2 inbound/c/1
         << RDS egress(a,b,c)
         blame LDS {BOTH}
         < LDS egress inbound/a/1:2 inbound/c/1
         blame LDS {TAKEN}
         < LDS egress inbound/a/1:2 inbound/b/1:2 inbound/c/1
         blame LDS {BOTH}
         quiet
         > RDS +inbound/c
         << RDS inbound/c
         stands a host
         stands b rejected
         stands c accepted"
    ));
}

#[test]
fn bad_routes_of_a_listener_are_told_from_bad_pieces() {
    check_delta(
        "world a in:a
         > CDS
         << CDS a inbound/a/1
         > LDS
         << LDS egress inbound/a/1
         > RDS +egress +inbound/a
         < RDS egress(a) inbound/a
         nack RDS
         << RDS egress(a)      # each by itself
         < RDS inbound/a
         nack RDS
         quiet
         stands a rejected",
    );
}

#[test]
fn a_client_that_has_just_begun_has_accepted_nothing() {
    check(
        "world a in:a
         > CDS
         << CDS a inbound/a/1
         stands a pending
         > LDS
         << LDS egress inbound/a/1
         stands a pending
         > RDS +egress
         << RDS egress(a)
         stands a pending
         > RDS +inbound/a
         << RDS inbound/a
         stands a accepted",
    );
}

#[test]
fn an_envoy_has_the_listeners_of_its_workloads_only() {
    let workload = Workload { service: "b".into(), cluster: String::new() };
    let node = NodeView { workloads: Some(Arc::from([workload])), ..node() };
    Conversation::<Delta>::of(&node).run(
        "world a b in:a in:b
         > CDS
         << CDS a b inbound/a/1 inbound/b/1
         > LDS
         << LDS egress inbound/b/1
         > RDS +egress +inbound/b
         << RDS egress(a,b) inbound/b
         stands a accepted     # it need not have its listener
         stands b accepted
         world a b in:a:2 in:b:2
         << LDS inbound/b/1:2
         quiet",
    );
}

#[test]
fn a_service_whose_assignment_ends_stands_nowhere() {
    check(&format!(
        "{CONNECTED}
         world b in:a
         stands a nowhere
         stands b accepted"
    ));
}
