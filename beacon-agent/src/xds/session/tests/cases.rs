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

/// envoyproxy/go-control-plane#249, #119, #349
#[test]
fn b10_nobody_has_to_ask_for_all_there_is() {
    check_sotw(
        "world new other
         > EDS +old
         quiet
         > EDS +new
         << EDS new
         quiet
         > CDS +other
         << CDS other
         quiet",
    );
    check_delta(
        "world new other
         > EDS +old
         << EDS -old
         > EDS +new
         << EDS new
         > CDS +other
         << CDS other
         quiet",
    );
}

/// envoyproxy/go-control-plane#526, #800; the order under random conditions is in [`super::envoy`]
#[test]
fn b11_one_commit_goes_out_make_before_break() {
    const CONNECTED: &str = "world c1 r
        > CDS
        << CDS c1 r
        > EDS +c1 +r
        << EDS c1 r
        > LDS
        << LDS egress
        > RDS +egress
        << RDS egress(c1,r)
        quiet
        world c2 r:1.1.2";
    check_sotw(&format!(
        "{CONNECTED}
         < CDS c1 c2 r
         < RDS egress(r:2)     # c2 is not accepted yet; the other service does not wait
         > EDS +c2
         << EDS c2
         ack CDS
         ack RDS
         < CDS c2 r            # the last: the routes to c1 are gone
         < RDS egress(c2,r:2)
         quiet"
    ));
    check_delta(&format!(
        "{CONNECTED}
         < CDS c2
         < RDS egress(r:2)
         > EDS +c2
         < EDS c2
         ack CDS
         ack EDS
         ack RDS
         < CDS -c1
         < EDS -c1
         < RDS egress(c2,r:2)
         quiet"
    ));
}

/// envoyproxy/go-control-plane#540
#[test]
fn b12_a_response_about_clusters_is_never_a_part() {
    for ask in ["> CDS +a +b +c", "> CDS"] {
        check_sotw(&format!(
            "world a b c
             {ask}
             << CDS a b c
             world a b:2 c
             << CDS a b:2 c
             quiet"
        ));
    }
}

/// grpc/grpc-java#9632, envoyproxy/java-control-plane#411
#[test]
fn b13_what_was_unsubscribed_and_is_wanted_again_is_sent_again() {
    check(
        "world a b
         > LDS +egress
         << LDS egress
         > LDS -egress
         quiet
         world a b:2
         quiet
         > LDS +egress
         << LDS egress
         quiet",
    );
    check(
        "world a b
         > CDS +a
         << CDS a
         > CDS -a
         world a b:2
         quiet
         > CDS +a
         << CDS a
         quiet",
    );
}

/// envoyproxy/xds-relay#147: two clients with different names; a session knows no other.
#[test]
fn b15_each_client_sees_its_own_names() {
    use crate::xds::{sotw::Sotw, testing::script::Conversation};
    for round in 0..100 {
        let mut clients = [Conversation::<Sotw>::new(), Conversation::new()];
        let names = ["x", "y"];
        clients.iter_mut().for_each(|client| client.run("world x y"));
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for index in order {
            clients[index].run(&format!("> EDS +{}", names[index]));
        }
        for index in order {
            clients[index].run(&format!("<< EDS {}\nquiet", names[index]));
        }
    }
}

/// kumahq/kuma#2171, projectcontour/contour#1280
#[test]
fn b16_what_is_not_loaded_is_not_told_as_empty() {
    check(
        "loading
         > CDS
         > LDS
         > EDS +a
         wait 10000
         quiet
         world a
         << CDS a
         << EDS a
         << LDS egress
         quiet
         loading               # a source that is read again takes nothing away
         quiet",
    );
}

/// envoyproxy/gateway#6618
#[test]
fn b18_who_returns_gets_what_is_current() {
    check(
        "world a
         > CDS
         << CDS a
         world a:5
         reconnect
         > CDS initial:a
         << CDS a:5
         quiet",
    );
}

/// envoyproxy/envoy#14847, istio/istio#46144
#[test]
fn b21_no_name_is_twice_in_a_response() {
    // Whatever happens in between: each response of a conversation is checked for it.
    check_delta(
        "world a
         > CDS +a +* +a
         << CDS a
         world
         world a:2
         << CDS a:2
         > CDS +a -a
         << CDS a:2
         quiet",
    );
}

/// istio/istio#34949
#[test]
fn b22_a_partial_push_removes_nothing() {
    check_delta(
        "world a b c
         > EDS +a +b +c
         << EDS a b c
         world a:1.2 b c
         << EDS a:2
         quiet",
    );
}

/// envoyproxy/go-control-plane#977
#[test]
fn b23_routes_and_endpoints_touch_no_listener() {
    check(
        "world a
         > CDS
         << CDS a
         > EDS +a
         << EDS a
         > LDS
         << LDS egress
         > RDS +egress
         << RDS egress(a)
         world a:1.1.2
         << RDS egress(a:2)
         quiet
         world a:1.2.2
         << EDS a:2
         quiet",
    );
}
