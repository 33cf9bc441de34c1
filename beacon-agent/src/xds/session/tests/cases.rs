//! Bugs of other servers, as they are told in public issue trackers.

use crate::xds::testing::script::{check, check_delta, check_sotw};

/// envoyproxy/go-control-plane#399
#[test]
fn b1_a_name_added_at_an_unchanged_version_is_answered() {
    check(
        "world a b
         > EDS +a
         << EDS a
         > EDS +b
         << EDS b
         quiet",
    );
}

/// envoyproxy/go-control-plane#1318
#[test]
fn b2_a_missing_name_makes_no_loop_and_is_sent_when_it_appears() {
    check_sotw(
        "world aggregate foo
         > CDS
         << CDS aggregate foo
         > EDS +foo +bar
         << EDS foo
         wait 3000
         quiet
         world aggregate foo bar
         << CDS aggregate bar foo
         << EDS bar
         quiet",
    );
    // The names only: a cluster that existed all along is not sent for it.
    check_sotw(
        "world foo
         > EDS +foo +bar
         << EDS foo
         wait 3000
         quiet
         world foo bar
         << EDS bar
         quiet",
    );
}

/// envoyproxy/go-control-plane#962, istio/istio#21111, cilium/cilium#3405
#[test]
fn b3_a_rejection_is_answered_by_new_content_only() {
    check_sotw(
        "world a
         > CDS
         < CDS a
         nack CDS
         wait 5000
         quiet
         nack CDS
         nack CDS
         quiet
         world a:2
         << CDS a:2
         quiet",
    );
    check_delta(
        "world a
         > CDS
         < CDS a
         nack CDS
         wait 5000
         quiet
         nack CDS
         quiet
         world a:2
         << CDS a:2
         quiet",
    );
    check(
        "world a
         > EDS +a
         < EDS a
         nack EDS
         quiet
         world a:1.2
         < EDS a:2
         nack EDS
         quiet
         world a:1.3
         << EDS a:3
         quiet",
    );
}

/// projectcontour/contour#1091, envoyproxy/envoy#4485
#[test]
fn b4_a_cluster_without_endpoints_gets_its_empty_assignment() {
    check(
        "world a
         > CDS
         << CDS a
         > EDS +a
         << EDS a
         > LDS
         << LDS egress
         quiet",
    );
}

/// envoyproxy/go-control-plane#465
#[test]
fn b5_a_node_that_has_nothing_is_told_so_once() {
    for ask in ["> CDS", "> CDS +*"] {
        check(&format!(
            "world
             {ask}
             << CDS
             quiet"
        ));
    }
}

/// istio/istio#41494, envoyproxy/java-control-plane#463
#[test]
fn b6_what_was_deleted_while_disconnected_is_reported() {
    check_delta(
        "world a b
         > CDS
         << CDS a b
         world a c
         < CDS c -b
         reconnect
         > CDS initial:a initial:b
         << CDS a c -b
         quiet",
    );
}

/// envoyproxy/go-control-plane#488
#[test]
fn b7_a_name_reported_missing_stays_subscribed() {
    check_delta(
        "world
         > EDS +foo
         << EDS -foo
         world foo
         << EDS foo
         quiet",
    );
}

/// hashicorp/consul#10563; with random timing in [`super::random`]
#[test]
fn b8_losing_all_resources_does_not_end_the_subscription() {
    check_delta(
        "world a b
         > EDS +a +b
         << EDS a b
         world
         << EDS -a -b
         world a b
         << EDS a b
         world
         < EDS -a -b
         world a b             # back before the client has said anything
         quiet
         ack EDS
         << EDS a b
         world
         world a b             # back before anything was sent
         quiet",
    );
}

/// envoyproxy/go-control-plane#245, kumahq/kuma#331, envoyproxy/java-control-plane#131
#[test]
fn b9_a_modified_cluster_gets_its_endpoints_again_exactly_once() {
    check_sotw(
        "world c d
         > CDS
         << CDS c d            # 1
         > EDS +c +d
         << EDS c d            # 2
         world c:2 d
         < CDS c:2 d           # 3
         < EDS c               # 4
         > EDS nonce:2         # asked before that was read
         quiet
         ack EDS
         ack CDS
         quiet",
    );
    check_delta(
        "world c d
         > CDS
         << CDS c d
         > EDS +c +d
         << EDS c d
         world c:2 d
         << CDS c:2
         << EDS c
         quiet",
    );
}
