//! Rules of delta.

use crate::xds::testing::script::check_delta as check;

#[test]
fn only_what_changed_is_sent() {
    check(
        "world a b c
         > CDS
         << CDS a b c
         world a:2 b c
         << CDS a:2
         > EDS +a +b +c
         << EDS a b c
         world a:2 b:1.2 c
         << EDS b:2
         quiet",
    );
}

#[test]
fn subscriptions_ride_on_any_message_whatever_its_nonce() {
    check(
        "world a b c d
         > EDS +a
         < EDS a
         > EDS +b nonce:1      # on an ACK
         < EDS b
         > EDS +c nonce:2 reject
         < EDS c
         > EDS +d nonce:99     # stale
         < EDS d
         > EDS -d nonce:99
         world a b c d:1.2
         quiet",
    );
}

#[test]
fn a_name_subscribed_to_is_answered_even_if_current() {
    check(
        "world a
         > CDS
         << CDS a
         > EDS +a
         << EDS a
         > EDS +a
         << EDS a
         quiet
         > CDS +a
         << CDS a
         > CDS +*
         << CDS a
         quiet",
    );
}

#[test]
fn a_missing_name_is_reported_and_sent_when_created() {
    check(
        "world
         > EDS +a
         << EDS -a
         quiet
         > CDS +a
         << CDS -a
         world a
         << CDS a
         << EDS a
         quiet",
    );
}

#[test]
fn a_deleted_resource_is_reported_once_and_sent_when_created_again() {
    check(
        "world a b
         > EDS +a +b
         << EDS a b
         world b
         << EDS -a
         quiet
         world b:1.2
         << EDS b:2
         world a b:1.2
         << EDS a
         quiet
         > CDS
         << CDS a b
         << EDS a b:2          # new clusters need their endpoints
         world b:1.2
         << CDS -a
         << EDS -a
         world a b:1.2
         << CDS a
         << EDS a
         quiet",
    );
}

#[test]
fn what_is_gone_since_the_last_stream_is_reported() {
    check(
        "world a c
         > CDS initial:a initial:b
         << CDS a c -b
         quiet
         > EDS +a initial:a initial:x   # x is not wanted any more
         << EDS a
         > LDS +* initial:old
         << LDS egress -old
         quiet",
    );
}

#[test]
fn a_wildcard_is_answered_once_even_if_there_is_nothing() {
    check(
        "world
         > CDS +*
         << CDS
         quiet
         world a
         << CDS a",
    );
}

#[test]
fn the_legacy_wildcard_lasts_until_it_is_unsubscribed_from() {
    check(
        "world a b
         > CDS
         << CDS a b
         > CDS +a
         << CDS a
         > CDS -*
         quiet
         world a b:2
         quiet
         world a:2 b:2
         << CDS a:2",
    );
}

#[test]
fn an_unsubscribed_name_is_answered_while_a_wildcard_is_on() {
    check(
        "world a
         > CDS +* +a +b
         << CDS a -b
         > CDS -a
         << CDS a
         > CDS -b
         << CDS -b
         > CDS -b              # it is not subscribed to
         quiet",
    );
}

#[test]
fn unknown_names_and_mere_unsubscriptions_get_no_answer() {
    check(
        "world a
         > EDS +a
         << EDS a
         > EDS -a -x
         quiet
         > EDS +a
         << EDS a
         quiet",
    );
}

#[test]
fn a_name_in_both_lists_is_answered_and_touches_no_other() {
    check(
        "world a b
         > EDS +a +b
         << EDS a b
         > EDS +a -a
         << EDS a
         world a:1.2 b:1.2
         << EDS a:2 b:2
         quiet",
    );
}

#[test]
fn a_wildcard_is_for_lds_and_cds_only() {
    check(
        "world a
         > EDS
         quiet
         > EDS +*
         << EDS -*
         quiet",
    );
}

#[test]
fn a_partial_change_removes_nothing() {
    check(
        "world a b c
         > EDS +a +b +c
         << EDS a b c
         world a:1.2 b c
         << EDS a:2
         quiet",
    );
}

#[test]
fn a_wildcard_that_begins_while_a_response_waits_is_answered_with_everything() {
    check(
        "world a b
         > CDS +a
         < CDS a
         > CDS +*
         << CDS b
         quiet",
    );
}
