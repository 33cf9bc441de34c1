//! Whatever happens, and whenever it is published, a source ends where a fresh reading would.

use proptest::prelude::*;

use super::*;
use crate::sources::format::{Factor, Select, WeightRule};

/// One znode, as it may be at some time: absent, malformed, or with an address.
#[derive(Debug, Clone, Copy)]
struct Step {
    member: u8,
    contents: u8,
    publish: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0..5_u8, 0..5_u8, any::<bool>()).prop_map(|(member, contents, publish)| Step {
        member,
        contents,
        publish,
    })
}

/// The last ones are vectors, which weigh one of the members.
fn member(member: u8, contents: u8, rank: u64, index: u64) -> Entry {
    let path = format!("/d/web/{member}");
    if member < 3 {
        return entry(&path, rank, index, &[&format!("10.0.0.{contents}:80")]);
    }
    let select = Select::Member((contents % 3).to_string().into());
    let rule = WeightRule { select, factor: Factor::Times(f64::from(member)) };
    Entry { weights: vec![rule], ..entry(&path, rank, index, &[]) }
}

proptest! {
    /// Whatever happens, and whenever it is published, the store ends as one that reads the end afresh.
    #[test]
    fn changes_lead_to_what_a_fresh_reading_finds(steps in prop::collection::vec(step(), 0..60)) {
        let mut fixture = Fixture::new();
        fixture.load(load(1, vec![place("/d/web", 1, 1)], vec![], vec![]));
        // By member: when it was made, when it was written, and its last good contents.
        let mut znodes: BTreeMap<u8, (u64, u64, u8)> = BTreeMap::new();
        let mut malformed = BTreeSet::new();
        for (index, step) in (2_u64..).zip(&steps) {
            let path = format!("/d/web/{}", step.member);
            let change = match step.contents {
                0 => {
                    znodes.remove(&step.member);
                    malformed.remove(&path);
                    gone(&path, index)
                }
                1 => {
                    malformed.insert(path.clone());
                    Change::Kept(problem(&path, "malformed"))
                }
                contents => {
                    malformed.remove(&path);
                    let (made, ..) = *znodes.entry(step.member).or_insert((index, 0, 0));
                    znodes.insert(step.member, (made, index, contents));
                    Change::Entry(member(step.member, contents, made, index))
                }
            };
            fixture.model.handle(Input::Changed { changes: vec![change], index, events: 1 }, fixture.now);
            if step.publish && let Some(transaction) = fixture.take() {
                fixture.store.apply(transaction);
            }
        }
        if let Some(transaction) = fixture.take() {
            fixture.store.apply(transaction);
        }
        let problems = fixture.model.problems().map(|problem| problem.path.to_string()).collect::<BTreeSet<_>>();
        prop_assert_eq!(&problems, &malformed);

        let mut fresh = Fixture::new();
        let entries = znodes.iter().map(|(name, (made, written, contents))| member(*name, *contents, *made, *written));
        let all = || load(100, vec![place("/d/web", 1, 99)], entries.clone().collect(), vec![]);
        fresh.load(all());
        prop_assert_eq!(fixture.store.digest(), fresh.store.digest());
        // And a complete reading finds nothing to change.
        fixture.model.handle(Input::Loaded(all()), fixture.now);
        let audit = fixture.model.take_transaction(fixture.now, false);
        let differs = audit.is_some_and(|audit| !audit.upserts.is_empty() || !audit.removals.is_empty());
        prop_assert!(!differs);
    }
}
