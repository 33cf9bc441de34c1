//! Rules of state of the world.

use crate::xds::testing::script::check_sotw as check;

#[test]
fn an_ack_gets_no_answer() {
    check(
        "world a
         > CDS
         < CDS a
         ack CDS
         quiet",
    );
}

#[test]
fn the_first_request_on_a_stream_starts_fresh_whatever_it_says() {
    check(
        "world a
         > CDS nonce:42
         << CDS a
         > EDS +a nonce:7 reject
         << EDS a
         quiet",
    );
}

#[test]
fn before_the_first_response_no_nonce_is_stale() {
    check(
        "loading
         > EDS +a nonce:7
         > EDS +b nonce:7
         world a b
         << EDS a b
         quiet",
    );
}

#[test]
fn a_stale_request_is_no_answer_and_changes_nothing() {
    check(
        "world a b
         > EDS +a
         << EDS a
         world a:1.2 b
         < EDS a:2
         > EDS +b nonce:1      # sent before the second response was read
         quiet
         ack EDS
         << EDS b
         quiet",
    );
}

#[test]
fn a_nonce_of_another_type_is_stale() {
    check(
        "world a
         > CDS
         < CDS a               # nonce 1
         > EDS +a
         < EDS a               # nonce 2
         ack EDS 1
         ack CDS 2
         quiet
         ack EDS
         ack CDS
         quiet",
    );
}

#[test]
fn several_requests_may_carry_the_same_nonce() {
    check(
        "world a b c
         > EDS +a
         << EDS a
         > EDS +b nonce:1
         < EDS b
         > EDS +c nonce:2
         << EDS c
         quiet",
    );
}

#[test]
fn no_nonce_says_nothing_of_a_response() {
    check(
        "world a b
         > EDS +a
         < EDS a
         > EDS nonce:
         quiet
         > EDS +b nonce:
         < EDS b
         world a:1.2 b
         quiet                 # still waiting for an answer
         ack EDS
         << EDS a:2",
    );
}

#[test]
fn a_name_that_comes_again_is_sent_again() {
    check(
        "world a b
         > EDS +a +b
         << EDS a b
         > EDS -a
         quiet
         world a:1.2 b
         quiet
         world a b
         > EDS +a
         << EDS a
         quiet",
    );
}

#[test]
fn the_explicit_wildcard_stands_beside_names_and_ends_by_itself() {
    check(
        "world a b
         > CDS +* +a
         << CDS a b
         > CDS -*
         quiet
         world a b:2
         quiet
         world a:2 b:2
         << CDS a:2
         > CDS +*
         << CDS a:2 b:2
         quiet",
    );
}

#[test]
fn once_a_name_was_given_an_empty_list_is_nothing() {
    check(
        "world a b
         > CDS +a
         << CDS a
         > CDS -a
         quiet
         world a:2 b:2 c
         quiet
         > CDS +a
         << CDS a:2
         reconnect             # a new stream forgets it
         > CDS -a
         << CDS a:2 b:2 c",
    );
}

#[test]
fn an_empty_list_is_everything_for_lds_and_cds_only() {
    check(
        "world a
         > EDS
         > RDS
         quiet
         > LDS
         << LDS egress
         world a:1.2.2
         quiet
         > EDS +a
         << EDS a:2
         > RDS +egress
         << RDS egress(a:2)",
    );
}

#[test]
fn an_empty_name_is_no_wildcard() {
    use crate::xds::testing::{script::Conversation, wire::Say};
    let mut conversation = Conversation::<crate::xds::sotw::Sotw>::new();
    conversation.run("world a");
    let say = Say { add: vec![String::new()], ..Say::default() };
    conversation.say(crate::xds::kind::ResourceType::Cluster, say).unwrap();
    conversation.run("quiet");
}

#[test]
fn a_missing_name_is_sent_when_it_is_created() {
    check(
        "world a
         > EDS +a +b
         << EDS a
         > CDS +b
         quiet
         world a b
         << CDS b
         << EDS b
         quiet",
    );
}

#[test]
fn named_clusters_that_do_not_exist_get_no_answer_and_lost_ones_an_empty_one() {
    check(
        "world a
         > CDS +b
         quiet
         world a b
         << CDS b
         world a
         << CDS                # what is not in it is gone
         quiet",
    );
}

#[test]
fn a_named_cluster_that_went_while_disconnected_is_omitted_from_an_answer() {
    check(
        "world a
         > CDS +a
         << CDS a
         world
         reconnect
         > CDS
         << CDS
         quiet",
    );
}

#[test]
fn a_removal_is_an_omission_and_the_last_leaves_an_empty_response() {
    check(
        "world a b
         > CDS
         << CDS a b
         world b
         << CDS b
         world
         << CDS
         quiet",
    );
}

#[test]
fn for_endpoints_leaving_out_says_nothing_and_what_comes_back_is_sent() {
    check(
        "world a b
         > EDS +a +b
         << EDS a b
         world b
         quiet
         world a b
         << EDS a
         quiet",
    );
}

#[test]
fn routes_and_endpoints_asked_for_again_are_sent_once_clusters_and_listeners_are_not() {
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
         > EDS
         << EDS a
         quiet
         > RDS
         << RDS egress(a)
         quiet
         > CDS
         > LDS
         quiet",
    );
}

#[test]
fn versions_are_those_of_the_content() {
    use crate::xds::{kind::ResourceType::Cluster, sotw::Sotw, testing::script::Conversation};
    let version = |world: &str| {
        let mut conversation = Conversation::<Sotw>::new();
        conversation.run(&format!("{world}\n> CDS"));
        conversation.read().unwrap();
        conversation.memory[&Cluster].version.clone()
    };
    assert_eq!(version("world a b"), version("world b a"));
    assert_ne!(version("world a b"), version("world a b:2"));
    assert_ne!(version("world a b"), version("world a"));
    assert_eq!(version("world a b"), version("world a:1.2.2 b"), "the other types have their own");
}
