//! Who is to blame is found, and nobody else suffers.

use proptest::prelude::*;

use super::*;

fn resource(name: &str) -> XdsResource {
    XdsResource::from_body(name.into(), name.to_owned().into())
}

fn certainly(resources: Vec<XdsResource>) -> Suspects {
    Suspects { resources, certain: true }
}

#[test]
fn who_may_be_innocent_is_tried_alone_before_it_is_refused() {
    let mut triage = Triage::default();
    let suspects = Suspects { resources: vec![resource("a")], certain: false };
    assert_eq!(triage.reject(suspects, "no", Split::Halves, |_| None), None);
    assert_eq!(triage.on_trial().map(|name| &**name).collect::<Vec<_>>(), ["a"]);
    let refused = triage.reject(certainly(vec![resource("a")]), "no", Split::Halves, |_| None);
    assert_eq!(refused.as_deref(), Some("a"));
}

/// Sends what is admitted to a client that rejects whatever holds one of `bad`. Returns what it has in
/// the end, and how many responses that took.
fn isolate(names: &[String], bad: &[&str], split: Split, message: &str) -> (Vec<String>, usize) {
    let layer: Layer = Arc::new(names.iter().map(|name| (name.as_str().into(), resource(name))).collect());
    let mut triage = Triage::default();
    let mut good: BTreeSet<Arc<str>> = BTreeSet::new();
    for responses in 1.. {
        let (admitted, _) = triage.admit(&layer, |name| good.contains(name).then(|| resource(name)));
        let sent: Vec<&XdsResource> = match split {
            // One resource is a response by itself.
            Split::Single if triage.is_trying() => triage.on_trial().map(|name| &admitted[name]).collect(),
            Split::Single | Split::Halves => admitted.values().collect(),
        };
        if sent.iter().any(|resource| bad.contains(&&*resource.name)) {
            let suspects = sent.into_iter().filter(|r| !good.contains(&r.name)).cloned().collect();
            triage.reject(certainly(suspects), message, split, |_| None);
        } else {
            good.extend(sent.iter().map(|resource| resource.name.clone()));
            triage.settle(|name, _| !good.contains(name));
            if !triage.is_trying() {
                return (good.iter().map(ToString::to_string).collect(), responses);
            }
        }
        if !triage.is_trying() && good.len() + bad.len() == names.len() {
            return (good.iter().map(ToString::to_string).collect(), responses);
        }
        assert!(responses < 10 * names.len() + 10, "it does not end");
    }
    unreachable!()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number:03}")).collect()
}

#[test]
fn one_of_many_is_found_in_few_steps() {
    let (good, steps) = isolate(&numbered(100), &["s042"], Split::Halves, "no");
    assert_eq!(good.len(), 99);
    assert!(steps <= 16, "{steps}");
}

#[test]
fn who_is_named_is_found_at_once_and_a_false_accusation_costs_little() {
    let message = "Error adding/updating cluster(s) s042: bad regex";
    let (_, steps) = isolate(&numbered(100), &["s042"], Split::Halves, message);
    assert_eq!(steps, 3, "all of them, all but one, and that one");
    let (good, steps) = isolate(&numbered(100), &["s007"], Split::Halves, message);
    assert!(good.len() == 99 && steps <= 18, "{steps}");
}

#[test]
fn refused_bytes_are_replaced_by_what_was_accepted_before() {
    let mut triage = Triage::default();
    let bad = resource("a");
    let old = XdsResource::from_body("a".into(), "old".to_owned().into());
    triage.reject(certainly(vec![bad.clone()]), "no", Split::Halves, |_| Some(old.clone()));
    let layer: Layer = Arc::new([("a".into(), bad)].into());
    assert_eq!(triage.admit(&layer, |_| None).0["a"], old);
    // Also on a client's next stream, of which nothing is known yet.
    assert_eq!(triage.lasting().admit(&layer, |_| None).0["a"], old);
    let better: Layer = Arc::new([("a".into(), resource("better"))].into());
    assert_eq!(triage.admit(&better, |_| None).0, better);
    assert_eq!((triage.refused_of(&layer).count(), triage.refused_of(&better).count()), (1, 0));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut triage = Triage::default();
    for name in numbered(2 * MAX_REFUSED) {
        triage.reject(certainly(vec![resource(&name)]), "no", Split::Halves, |_| None);
    }
    assert_eq!(triage.refused.len(), MAX_REFUSED);
}

proptest! {
    #[test]
    fn whoever_is_bad_all_others_get_through(
        count in 1..40_usize,
        bad in prop::collection::btree_set(0..40_usize, 0..4),
        single in any::<bool>(),
    ) {
        let names = numbered(count);
        let bad: Vec<&str> = bad.iter().filter_map(|index| names.get(*index)).map(String::as_str).collect();
        let split = if single { Split::Single } else { Split::Halves };
        let (good, _) = isolate(&names, &bad, split, "no");
        let expected: Vec<&String> = names.iter().filter(|name| !bad.contains(&name.as_str())).collect();
        prop_assert_eq!(good.iter().collect::<Vec<_>>(), expected);
    }
}
