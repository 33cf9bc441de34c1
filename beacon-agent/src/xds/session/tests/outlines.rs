//! The scenarios of the public suite for xDS servers (ii/xds-test-harness), told anew for the types that
//! can play them here. Its "never responds more than necessary" is `quiet`.

use crate::xds::testing::script::{check, check_delta, check_sotw};

#[test]
fn s1_s2_s3_a_wildcard_gets_everything_in_one_response_each_time() {
    check_sotw(
        "world a b c
         > CDS
         << CDS a b c
         world a b:2 c
         << CDS a b:2 c
         world a b:2 c d
         << CDS a b:2 c d
         quiet
         > LDS
         << LDS egress
         quiet",
    );
}

#[test]
fn s4_named_subsets_get_the_subset() {
    check(
        "world a b c
         > LDS +egress
         << LDS egress
         > RDS +egress
         << RDS egress(a,b,c)
         > CDS +a +c
         << CDS a c
         > EDS +a +b
         << EDS a b
         quiet",
    );
}

#[test]
fn s5_s6_an_update_in_a_named_subset() {
    check_sotw(
        "world a b c
         > CDS +a +b
         << CDS a b
         world a:2 b c
         << CDS a:2 b
         > EDS +a +b
         << EDS a b
         world a:2.2 b c
         << EDS a:2
         quiet",
    );
}

#[test]
fn s7_s8_a_missing_name_is_created_later() {
    check_sotw(
        "world a b
         > CDS +a +b +z
         << CDS a b
         world a b z
         << CDS a b z
         quiet",
    );
    check_sotw(
        "world a b
         > EDS +a +b +z
         << EDS a b
         world a b z
         << EDS z
         quiet",
    );
}

#[test]
fn s9_d6_two_types_on_one_stream() {
    check(
        "world a
         > CDS
         << CDS a
         > LDS
         << LDS egress
         > RDS +egress
         << RDS egress(a)
         > EDS +a
         << EDS a
         world a:1.1.2
         << RDS egress(a:2)
         quiet
         world a:1.2.2
         << EDS a:2
         quiet
         world a:1.3.3
         << EDS a:3
         << RDS egress(a:3)
         quiet",
    );
}

#[test]
fn s9_an_answer_under_the_url_of_another_type_stalls_no_push() {
    check_sotw(
        "world a
         > CDS
         < CDS a               # 1
         > LDS
         < LDS egress          # 2
         ack CDS 1
         ack CDS 2             # meant for LDS
         quiet
         world a:2
         << CDS a:2
         quiet",
    );
}

#[test]
fn u1_u2_after_shrinking_to_one_name_only_that_one_comes() {
    for kind in ["CDS", "EDS"] {
        let (b, both) = if kind == "CDS" { ("b:2", "a:2 b:2 c:2") } else { ("b:2", "a:1.2 b:1.2 c:1.2") };
        check_sotw(&format!(
            "world a b c
             > {kind} +a +b +c
             << {kind} a b c
             > {kind} -a -c
             quiet
             world {both}
             << {kind} {b}
             quiet"
        ));
    }
}

#[test]
fn u3_after_unsubscribing_from_all_there_is_silence() {
    for (kind, name, content) in
        [("CDS", "a", "a"), ("EDS", "a", "a"), ("LDS", "egress", "egress"), ("RDS", "egress", "egress(a)")]
    {
        check(&format!(
            "world a
             > {kind} +{name}
             << {kind} {content}
             > {kind} -{name}
             world a:2.2.2 b
             quiet"
        ));
    }
}

#[test]
fn d1_subscribing_to_one_and_then_another() {
    for kind in ["CDS", "EDS"] {
        check_delta(&format!(
            "world a b c
             > {kind} +a
             << {kind} a
             > {kind} +b
             << {kind} b
             quiet"
        ));
    }
}

#[test]
fn d2_one_of_several_is_updated() {
    check_delta(
        "world a b c
         > CDS +a +b +c
         << CDS a b c
         world a b:2 c
         << CDS b:2
         > EDS +a +b +c
         << EDS a b c
         world a b:2.2 c
         << EDS b:2
         > RDS +egress
         << RDS egress(a,b,c)
         world a b:2.2.2 c
         << RDS egress(a,b:2,c)
         quiet",
    );
}

#[test]
fn d3_d4_missing_then_created_then_removed_then_created_again() {
    for kind in ["CDS", "EDS"] {
        check_delta(&format!(
            "world
             > {kind} +a
             << {kind} -a
             world a
             << {kind} a
             world
             << {kind} -a
             world a
             << {kind} a
             quiet"
        ));
    }
}

#[test]
fn d5_unsubscribing_one_by_one() {
    for (kind, changed) in [("CDS", ["a:2 b", "a:2 b:2"]), ("EDS", ["a:1.2 b", "a:1.2 b:1.2"])] {
        let [first, second] = changed;
        check_delta(&format!(
            "world a b
             > {kind} +a +b
             << {kind} a b
             > {kind} -a
             world {first}
             quiet
             > {kind} -b
             world {second}
             quiet"
        ));
    }
}
