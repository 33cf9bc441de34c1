//! What follows a NACK: it does not tell what was applied.

use crate::xds::{
    delta::Delta,
    kind::ResourceType,
    protocol::{Answer, Received},
    sotw::Sotw,
    testing::{
        script::{Conversation, check_delta, check_sotw},
        wire::{Say, Wire},
    },
};

#[test]
fn after_a_rejection_the_next_response_names_all_that_may_be_missing() {
    // b is bad; a, c and the removal of x may have been applied or not. All of it is undone, except for
    // what is on trial.
    check_delta(
        "world a b x
         > CDS
         << CDS a b x
         world a:2 b:2 c
         < CDS a:2 b:2 c -x
         nack CDS
         < CDS a:2 b -x        # c was never there, and waits
         world a b x           # and back, in the middle of it
         ack CDS
         << CDS a x -c
         quiet",
    );
    // A further change repairs, too.
    check_delta(
        "world a b x
         > CDS
         << CDS a b x
         world a:2 b:2 c
         < CDS a:2 b:2 c -x
         world a:2 b:3 c
         nack CDS
         << CDS a:2 b:3 -x
         << CDS c
         quiet",
    );
    // Each by itself, where a bad one may have cost a good one its update.
    check_sotw(
        "world a b
         > EDS +a +b
         << EDS a b
         world a:1.2 b:1.2
         < EDS a:2 b:2
         nack EDS
         << EDS a:2
         < EDS b:2
         nack EDS
         << EDS b
         quiet",
    );
}

#[test]
fn going_back_to_the_accepted_content_is_a_change() {
    check_sotw(
        "world a
         > CDS
         << CDS a
         world a:2
         < CDS a:2
         nack CDS
         world a
         << CDS a
         quiet",
    );
}

#[test]
fn a_name_asked_for_after_a_rejection_is_sent_without_what_was_rejected() {
    check_delta(
        "world a b
         > EDS +a
         < EDS a
         nack EDS
         > EDS +b
         << EDS b
         quiet",
    );
    check_sotw(
        "world a b
         > EDS +a
         < EDS a
         > EDS +b nonce:1 reject    # it may carry the very version that it rejects
         << EDS b
         quiet",
    );
}

#[test]
fn content_that_changed_before_the_rejection_goes_out_at_once() {
    check_sotw(
        "world a
         > EDS +a
         < EDS a
         world a:1.2
         quiet
         nack EDS
         << EDS a:2
         quiet",
    );
}

#[test]
fn nothing_is_skipped_for_what_a_client_claims_to_have() {
    check_delta(
        "world a b
         > CDS initial:a initial:b
         << CDS a b
         > LDS initial:egress
         << LDS egress
         quiet",
    );
}

#[test]
fn an_older_response_can_be_rejected_while_a_newer_one_waits() {
    check_delta(
        "world a b
         > EDS +a
         < EDS a
         > EDS +b
         < EDS b
         nack EDS 1
         ack EDS 2
         quiet
         world a b:1.2
         << EDS b:2
         > EDS +a
         << EDS -a             # what it asks for is answered, and not by what it rejected
         world a:1.2 b:1.2
         << EDS a:2
         quiet",
    );
}

fn answers_are_told<P: Wire>() {
    let mut conversation = Conversation::<P>::new();
    conversation.run("world a\n> EDS +a\n< EDS a");
    let version = conversation.memory[&ResourceType::Endpoint].version.clone();
    let answer = |received: Result<Received, String>| match received.unwrap() {
        Received::Known { answer, .. } => answer,
        Received::UnknownType(_) => None,
    };
    let Some(Answer::Nack { nonce, version: rejected, status }) =
        answer(conversation.answer(ResourceType::Endpoint, None, true))
    else {
        panic!("no NACK")
    };
    assert_eq!((nonce.as_str(), &rejected, status.message.as_str()), ("1", &version, "rejected by the test"));
    conversation.run("world a:1.2\n< EDS a:2");
    let version = conversation.memory[&ResourceType::Endpoint].version.clone();
    let accepted = answer(conversation.answer(ResourceType::Endpoint, None, false));
    assert_eq!(accepted, Some(Answer::Ack { nonce: "2".to_owned(), version }));
    let say = Say { nonce: Some("77".to_owned()), ..Say::default() };
    assert_eq!(answer(conversation.say(ResourceType::Endpoint, say)), Some(Answer::Stale));
}

#[test]
fn answers_are_told_to_the_operator() {
    answers_are_told::<Sotw>();
    answers_are_told::<Delta>();
}
