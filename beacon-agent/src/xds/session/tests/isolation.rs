//! One bad resource costs only itself, and only at the client that cannot take it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use crate::xds::{
    delta::Delta,
    kind::{Mode, ResourceType},
    sotw::Sotw,
    testing::{
        script::{Conversation, check, check_delta, check_sotw},
        wire::{Say, Wire},
    },
};

#[test]
fn a_bad_cluster_keeps_its_last_accepted_content_and_others_get_through() {
    check_sotw(
        "world a b
         > CDS
         << CDS a b
         world a:2 b:2 c
         < CDS a:2 b:2 c
         nack CDS
         << CDS a:2 b          # half of them
         < CDS a:2 b:2 c
         nack CDS
         < CDS a:2 b:2         # a quarter
         nack CDS              # it is b
         << CDS a:2 b c
         quiet
         world a:2 b:2 c d     # what was refused does not come again with something else
         << CDS a:2 b c d
         world a:2 b:3 c d
         << CDS a:2 b:3 c d
         quiet",
    );
}

#[test]
fn a_bad_virtual_host_costs_only_its_own_service() {
    check(
        "world a b c
         > LDS
         << LDS egress
         > RDS +egress
         << RDS egress(a,b,c)
         world a:1.1.2 b:1.1.2 c:1.1.2
         < RDS egress(a:2,b:2,c:2)
         nack RDS
         << RDS egress(a:2,b,c)
         < RDS egress(a:2,b:2,c:2)
         nack RDS
         < RDS egress(a:2,b:2,c)
         nack RDS
         << RDS egress(a:2,b,c:2)
         quiet
         world a:1.1.2 b:1.1.3 c:1.1.2
         << RDS egress(a:2,b:3,c:2)
         world a:1.1.2 b:1.1.2 c:1.1.2
         quiet                 # back to what was refused: it keeps what it accepted since",
    );
}

#[test]
fn a_single_change_that_is_rejected_is_undone() {
    check(
        "world a b
         > RDS +egress
         << RDS egress(a,b)
         world a b:1.1.2
         < RDS egress(a,b:2)
         nack RDS
         << RDS egress(a,b)
         quiet",
    );
}

#[test]
fn a_fresh_client_gets_all_but_what_it_rejects() {
    check_delta(
        "world a b c
         > CDS
         < CDS a b c
         nack CDS
         << CDS a
         < CDS b c
         nack CDS
         < CDS b
         nack CDS
         << CDS c
         quiet",
    );
    check(
        "world a b
         > RDS +egress
         < RDS egress(a,b)
         nack RDS
         < RDS egress(a)
         nack RDS
         << RDS egress(b)
         quiet",
    );
}

#[test]
fn in_state_of_the_world_nothing_is_left_out_that_a_client_may_have() {
    check_sotw(
        "world a b c
         > CDS
         < CDS a b c
         nack CDS
         quiet
         world a b c:2
         << CDS a b c:2
         quiet",
    );
    let mut conversation = Conversation::<Sotw>::new();
    conversation.run("world a b c\n> CDS\n< CDS a b c");
    // Unless it says what is wrong.
    let message = "Error adding/updating cluster(s) b: no".to_owned();
    let say = Say { reject: true, message, ..Say::default() };
    conversation.say(ResourceType::Cluster, say).unwrap();
    conversation.run("<< CDS a c\n< CDS a b c\nnack CDS\nquiet");
}

#[test]
fn what_the_host_cannot_take_is_sent_again_ever_later() {
    check(
        "world a
         > LDS
         < LDS egress
         taken LDS
         quiet
         wait 1000
         < LDS egress
         taken LDS
         quiet
         wait 1999
         quiet
         wait 1
         < LDS egress
         ack LDS
         wait 60000
         quiet",
    );
}

#[test]
fn what_a_client_asks_for_does_not_wait_for_trials() {
    check(
        "world a b c
         > EDS +a +b
         < EDS a b
         nack EDS
         < EDS a
         > EDS +c nonce:
         < EDS c
         ack EDS
         << EDS b
         quiet",
    );
}

#[test]
fn a_client_that_comes_back_is_not_sent_what_it_rejected() {
    check_delta(
        "world a b
         > CDS
         << CDS a b
         > RDS +egress
         << RDS egress(a,b)
         world a:2.1.2 b
         < CDS a:2
         < RDS egress(a:2,b)
         nack CDS
         << CDS a
         nack RDS 4
         << RDS egress(a,b)
         quiet
         reconnect
         > CDS
         << CDS a b
         > RDS +egress
         << RDS egress(a,b)
         quiet
         world a:3.1.3 b
         << CDS a:3
         << RDS egress(a:3,b)",
    );
}

/// This revision cannot be taken, of anything.
const BAD: u32 = 9;

/// A client that rejects what is bad, and applies of it what it can: single clusters, all endpoints that
/// come before the bad ones, and no routes at all.
struct Client<P> {
    conversation: Conversation<P>,
    has: BTreeMap<ResourceType, BTreeMap<String, String>>,
    /// What was accepted last, by service.
    good: BTreeMap<(ResourceType, String), String>,
    rejections: usize,
    /// Answers that it has not sent yet, and how many these may be.
    answers: VecDeque<(ResourceType, String, bool)>,
    lag: usize,
}

impl<P: Wire> Client<P> {
    fn new(lag: usize) -> Self {
        let mut conversation = Conversation::new();
        conversation.run("world a b c d e f");
        conversation.run("> CDS\n> EDS +a +b +c +d +e +f\n> LDS\n> RDS +egress");
        let (has, good) = Default::default();
        Self { conversation, has, good, rejections: 0, answers: VecDeque::new(), lag }
    }

    /// Takes the next response, and answers it. Returns whether there was one.
    fn take(&mut self) -> bool {
        let Some(read) = self.conversation.read() else { return self.answer() };
        let pieces = |content: &str| -> Vec<(String, String)> {
            let pieces = content.trim_matches(['(', ')']).split(',').filter(|piece| !piece.is_empty());
            let split = pieces.map(|piece| piece.split_once(':').unwrap_or((piece, "1")));
            split.map(|(name, revision)| (name.to_owned(), revision.to_owned())).collect()
        };
        let content: Vec<(String, String)> = match read.kind {
            ResourceType::Route => pieces(&read.resources[0].1),
            _ => read.resources.clone(),
        };
        let is_bad = |content: &(String, String)| content.1 == BAD.to_string();
        let bad = content.iter().any(is_bad);
        let has = self.has.entry(read.kind).or_default();
        if read.kind == ResourceType::Route && !bad {
            has.clear();
        }
        let whole = P::MODE == Mode::Sotw && read.kind.is_whole();
        if whole {
            let names: BTreeSet<&String> = content.iter().map(|(name, _)| name).collect();
            has.retain(|name, _| names.contains(name));
        }
        for (name, revision) in &content {
            let stop = bad && read.kind != ResourceType::Cluster;
            if stop && (read.kind == ResourceType::Route || *revision == BAD.to_string()) {
                break;
            }
            if *revision != BAD.to_string() {
                has.insert(name.clone(), revision.clone());
            }
        }
        for name in &read.removed {
            has.remove(name);
        }
        if bad {
            self.rejections += 1;
        } else {
            let good = content.into_iter().map(|(name, revision)| ((read.kind, name), revision));
            self.good.extend(good);
        }
        self.answers.push_back((read.kind, read.nonce, bad));
        self.answers.len() <= self.lag || self.answer()
    }

    /// Answers the oldest response that it has not answered. Returns whether there was one.
    fn answer(&mut self) -> bool {
        let Some((kind, nonce, reject)) = self.answers.pop_front() else { return false };
        self.conversation.answer(kind, Some(&nonce), reject).unwrap();
        true
    }

    fn settle(&mut self) {
        for _ in 0..1000 {
            self.conversation.now += std::time::Duration::from_secs(1);
            if !self.take() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Everything good has arrived, and in place of what is bad there is what was accepted before.
    fn check(&self) {
        let kinds = [ResourceType::Cluster, ResourceType::Endpoint, ResourceType::Route];
        for (index, kind) in kinds.into_iter().enumerate() {
            for (name, revisions) in &self.conversation.world.services {
                let has = self.has.get(&kind).and_then(|has| has.get(name));
                let wanted = match revisions[index] {
                    BAD => self.good.get(&(kind, name.clone())).cloned(),
                    good => Some(good.to_string()),
                };
                assert_eq!(has, wanted.as_ref(), "{kind:?} {name}");
            }
        }
    }
}

fn run<P: Wire>(steps: Vec<Vec<(usize, usize, u32)>>, lag: usize) {
    let mut client = Client::<P>::new(lag);
    client.settle();
    for step in steps {
        let changes = step.len();
        for (service, kind, revision) in step {
            let name = ["a", "b", "c", "d", "e", "f"][service];
            let services = &mut client.conversation.world.services;
            services.get_mut(name).unwrap()[kind] = revision;
        }
        client.conversation.update();
        let before = client.rejections;
        client.settle();
        client.check();
        assert!(client.rejections - before <= 4 * changes, "too many rejections for {changes} changes");
        // It stays like that.
        let rejections = client.rejections;
        client.settle();
        assert_eq!(client.rejections, rejections);
    }
}

fn steps() -> impl Strategy<Value = Vec<Vec<(usize, usize, u32)>>> {
    // Each revision comes once, so that none is one that was rejected before; except for the bad one.
    let change = (0_usize..6, 0_usize..3, prop::bool::weighted(0.3));
    prop::collection::vec(prop::collection::vec(change, 1..6), 1..6).prop_map(|steps| {
        let mut revision = 10;
        let mut number = |bad| {
            revision += 1;
            if bad { BAD } else { revision }
        };
        let steps = steps.into_iter();
        steps.map(|step| step.into_iter().map(|(s, k, bad)| (s, k, number(bad))).collect()).collect()
    })
}

proptest! {
    #[test]
    fn state_of_the_world_isolates_what_is_bad(steps in steps(), lag in 0..4_usize) {
        run::<Sotw>(steps, lag);
    }

    #[test]
    fn delta_isolates_what_is_bad(steps in steps(), lag in 0..4_usize) {
        run::<Delta>(steps, lag);
    }
}
