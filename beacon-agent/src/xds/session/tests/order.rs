//! What has to come in an order, across the types of one stream.

use crate::xds::testing::script::{check, check_delta, check_sotw};

/// A client that has everything of the services a and b.
const CONNECTED: &str = "world a b
    > CDS
    << CDS a b
    > EDS +a +b
    << EDS a b
    > LDS
    << LDS egress
    > RDS +egress
    << RDS egress(a,b)
    quiet
";

#[test]
fn one_change_goes_out_in_the_order_of_references() {
    check(&format!(
        "{CONNECTED}
         world a:1.2.2 b
         << EDS a:2
         << RDS egress(a:2,b)
         quiet"
    ));
    check_sotw(&format!(
        "{CONNECTED}
         world a:2.2.2 b
         << CDS a:2 b
         << EDS a:2
         << RDS egress(a:2,b)
         quiet"
    ));
    check_delta(&format!(
        "{CONNECTED}
         world a:2.2.2 b
         << CDS a:2
         << EDS a:2
         << RDS egress(a:2,b)
         quiet"
    ));
}

#[test]
fn requests_that_come_together_are_answered_in_the_order_of_references() {
    check(
        "world a
         > RDS +egress
         > LDS
         > EDS +a
         > CDS
         < CDS a
         < EDS a
         < LDS egress
         < RDS egress(a)
         quiet",
    );
}

#[test]
fn a_route_waits_until_its_new_cluster_is_accepted_and_others_do_not() {
    check_sotw(&format!(
        "{CONNECTED}
         world a:1.1.2 b c
         < CDS a b c
         < RDS egress(a:2,b)
         ack RDS
         quiet
         > EDS +c
         << EDS c
         quiet                 # c is warming
         ack CDS
         << RDS egress(a:2,b,c)
         quiet"
    ));
    check_delta(&format!(
        "{CONNECTED}
         world a:1.1.2 b c
         < CDS c
         < RDS egress(a:2,b)
         ack RDS
         quiet
         > EDS +c
         << EDS c
         quiet
         ack CDS
         << RDS egress(a:2,b,c)
         quiet"
    ));
}

#[test]
fn a_rejected_cluster_has_no_route() {
    check_delta(&format!(
        "{CONNECTED}
         world a b c d
         < CDS c d
         nack CDS
         < CDS c
         nack CDS              # it is c
         < CDS d
         ack CDS
         << RDS egress(a,b,d)
         quiet
         world a b c:2 d
         << CDS c:2
         << RDS egress(a,b,c,d)
         quiet"
    ));
    check_sotw(&format!(
        "{CONNECTED}
         world a b c
         < CDS a b c
         nack CDS
         quiet
         world a b c:2
         << CDS a b c:2
         << RDS egress(a,b,c)
         quiet"
    ));
}

#[test]
fn a_cluster_goes_after_the_routes_that_refer_to_it() {
    check_sotw(&format!(
        "{CONNECTED}
         world b
         << RDS egress(b)
         << CDS b
         quiet"
    ));
    check_delta(&format!(
        "{CONNECTED}
         world b
         << RDS egress(b)
         << CDS -a
         << EDS -a
         quiet"
    ));
}

#[test]
fn in_one_change_what_is_new_goes_first_and_what_is_dropped_last() {
    check_sotw(&format!(
        "{CONNECTED}
         world b c
         < CDS a b c
         < RDS egress(b)
         ack CDS
         ack RDS
         < CDS b c
         < RDS egress(b,c)
         quiet"
    ));
    check_delta(&format!(
        "{CONNECTED}
         world b c
         < CDS c
         < RDS egress(b)
         ack CDS
         ack RDS
         < CDS -a
         < EDS -a
         < RDS egress(b,c)
         quiet"
    ));
}

#[test]
fn a_cluster_that_comes_back_before_it_was_dropped_never_goes() {
    check(&format!(
        "{CONNECTED}
         world a b:1.1.2
         < RDS egress(a,b:2)
         world a
         quiet                 # the routes wait for their answer, and the cluster for the routes
         world a b:1.1.2
         ack RDS
         quiet"
    ));
}

#[test]
fn a_client_that_names_its_clusters_waits_for_nothing() {
    check(
        "world a
         > LDS +egress
         << LDS egress
         > RDS +egress
         << RDS egress(a)
         world a b
         << RDS egress(a,b)
         > CDS +b
         << CDS b
         > EDS +b
         << EDS b
         quiet",
    );
}

#[test]
fn without_routes_a_cluster_goes_at_once() {
    check_sotw(
        "world a b
         > CDS
         << CDS a b
         world b
         << CDS b
         quiet",
    );
    check_delta(
        "world a b
         > CDS
         << CDS a b
         > RDS +egress
         << RDS egress(a,b)
         > RDS -egress
         world b
         << CDS -a
         quiet",
    );
}

#[test]
fn a_change_of_routes_or_endpoints_sends_no_listener_and_no_cluster() {
    check(&format!(
        "{CONNECTED}
         world a:1.1.2 b
         << RDS egress(a:2,b)
         quiet
         world a:1.2.2 b
         << EDS a:2
         quiet"
    ));
}

#[test]
fn content_waits_for_an_answer_and_then_only_the_newest_goes() {
    check(
        "world a
         > EDS +a
         < EDS a
         world a:1.2
         wait 60000
         quiet
         world a:1.3
         quiet
         ack EDS
         << EDS a:3
         quiet",
    );
}

#[test]
fn clusters_are_held_back_for_half_a_second_at_most() {
    check_delta(
        "world a
         > CDS
         < CDS a
         world a:2
         quiet
         wait 499
         world a:3
         quiet
         wait 1
         < CDS a:3
         world a:4
         quiet
         wait 500
         < CDS a:4
         ack CDS 1             # late, and still right
         ack CDS 2
         ack CDS 3
         quiet",
    );
    check_sotw(
        "world a
         > CDS
         < CDS a
         world a b
         quiet
         wait 500
         < CDS a b
         > RDS +egress
         << RDS egress(a)
         world a b c
         quiet
         wait 500
         < CDS a b c
         ack CDS 2             # stale, but b is accepted
         << RDS egress(a,b)
         ack CDS 4
         << RDS egress(a,b,c)
         quiet",
    );
}

#[test]
fn what_was_asked_for_is_never_held_back() {
    check_delta(
        "world a b c
         > EDS +a
         < EDS a
         world a:1.2 b c
         > EDS +b
         < EDS b
         > EDS +x
         < EDS -x
         > EDS -b
         quiet
         ack EDS
         << EDS a:2",
    );
}

#[test]
fn content_that_went_out_with_an_answer_and_back_is_sent_again() {
    check_sotw(
        "world a
         > CDS
         < CDS a
         world a:2
         quiet
         > CDS +* +a nonce:
         < CDS a:2
         world a
         ack CDS
         << CDS a
         quiet",
    );
    check_delta(
        "world a
         > EDS +a
         < EDS a
         world a:1.2
         quiet
         > EDS +a
         < EDS a:2
         world a
         ack EDS
         << EDS a
         quiet",
    );
}

#[test]
fn the_deadline_is_that_of_held_clusters() {
    use std::time::Duration;

    use crate::xds::{delta::Delta, testing::script::Conversation};
    let mut conversation = Conversation::<Delta>::new();
    conversation.run("world a\n> CDS\n< CDS a\nquiet");
    assert_eq!(conversation.session.deadline(), None);
    conversation.run("world a:2\nquiet");
    let deadline = conversation.session.deadline();
    assert_eq!(deadline, Some(conversation.now + Duration::from_millis(500)));
    conversation.run("wait 100\nworld a:3\nquiet");
    assert_eq!(conversation.session.deadline(), deadline, "newer content does not wait longer");
    conversation.run("ack CDS\n< CDS a:3");
    assert_eq!(conversation.session.deadline(), None);
    conversation.run("world a:4\nquiet\nworld a:3\nwait 500\nquiet");
    assert_eq!(conversation.session.deadline(), None, "there is nothing to send any more");
}

#[test]
fn nothing_is_served_before_everything_is_loaded() {
    check_delta(
        "> CDS
         > EDS +a
         > LDS
         > RDS +egress
         quiet
         loading
         quiet
         world a
         << CDS a
         << EDS a
         << LDS egress
         << RDS egress(a)
         loading               # a new source: the rest goes on
         > EDS +x
         quiet                 # whether there is an x is not known
         > EDS +a
         << EDS a
         world a
         << EDS -x
         quiet",
    );
    check_sotw(
        "> CDS
         > EDS +a
         quiet
         world a
         << CDS a
         << EDS a
         quiet",
    );
}
