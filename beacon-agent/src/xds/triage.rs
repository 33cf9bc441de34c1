//! Finds out, of what a client has rejected together, what it is that it cannot take, and keeps that from
//! it.
//!
//! A NACK condemns a whole response. The suspects in it, what the client had never accepted before, are
//! set back to what it accepted last, and tried again in ever smaller groups: a group that is accepted is
//! cleared, a single one that is rejected is *refused*, by its content hash. Refused bytes are not sent to
//! this client again; its last accepted content stays in their place. Others are not affected: one faulty
//! client must not withhold content from its neighbours.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use tower_common::{
    resource::Version,
    view::{Layer, XdsResource},
};

use super::blame::accuses;

/// Contents that are remembered as refused, for one client and type. The oldest is forgotten beyond: it
/// would be sent, rejected, and found again.
const MAX_REFUSED: usize = 256;

/// What one client rejected of one type.
#[derive(Debug, Clone, Default)]
pub(super) struct Triage {
    /// Groups that wait for their trial. The last one is on trial.
    groups: Vec<Vec<Piece>>,
    refused: VecDeque<Refused>,
}

/// A name, and what it stood for.
type Piece = (Arc<str>, Version);

/// Content that a client cannot take.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refused {
    pub(super) name: Arc<str>,
    pub(super) version: Version,
    /// What the client said.
    pub(super) message: Arc<str>,
    /// What it accepted last, and has in place of it.
    instead: Option<XdsResource>,
}

/// What may be to blame for a rejection.
#[derive(Debug)]
pub(super) struct Suspects {
    pub(super) resources: Vec<XdsResource>,
    /// One of them is. Otherwise it may be something that has changed since, and a suspect that stands
    /// alone is only tried alone.
    pub(super) certain: bool,
}

/// How suspects are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// In halves: what is tried together is accepted or rejected in few steps.
    Halves,
    /// One by one: a rejected response may have cost good neighbours their update (envoy's EDS and RDS
    /// stop at the first bad resource), and each by itself costs none.
    Single,
}

/// What is to be made of a resource.
#[derive(Debug, PartialEq)]
enum Verdict<'a> {
    Free,
    /// Not now: it waits for its trial.
    Waiting,
    Refused(&'a Refused),
}

impl Triage {
    /// Whether everything is free.
    pub(super) fn is_idle(&self) -> bool {
        self.groups.is_empty() && self.refused.is_empty()
    }

    /// The names whose trial it is.
    pub(super) fn on_trial(&self) -> impl Iterator<Item = &Arc<str>> {
        self.groups.last().into_iter().flatten().map(|(name, _)| name)
    }

    /// Whether a trial is going on.
    pub(super) fn is_trying(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Whether a name has to wait for its trial, or is on it.
    pub(super) fn concerns(&self, name: &str) -> bool {
        self.groups.iter().flatten().any(|(suspect, _)| &**suspect == name)
    }

    /// Takes a rejection. `good` is what the client accepted last of a name. Returns what is refused now.
    pub(super) fn reject(
        &mut self,
        suspects: Suspects,
        message: &str,
        split: Split,
        good: impl Fn(&str) -> Option<XdsResource>,
    ) -> Option<Arc<str>> {
        let Suspects { resources: suspects, certain } = suspects;
        self.drop_pieces(|(name, _)| !suspects.iter().any(|suspect| suspect.name == *name));
        let mut pieces: Vec<Piece> =
            suspects.into_iter().map(|suspect| (suspect.name, suspect.version)).collect();
        if pieces.len() < 2 {
            let (name, version) = pieces.pop()?;
            if !certain {
                self.groups.push(vec![(name, version)]);
                return None;
            }
            self.refuse(Refused {
                instead: good(&name),
                version,
                message: message.into(),
                name: name.clone(),
            });
            return Some(name);
        }
        let named = |(name, _): &Piece| accuses(message, name);
        match split {
            Split::Single => self.groups.extend(pieces.into_iter().rev().map(|piece| vec![piece])),
            Split::Halves => {
                // Whom the client names goes last; if it is right, one more step finds it.
                let (accused, others): (Vec<Piece>, Vec<Piece>) = pieces.into_iter().partition(named);
                let (accused, others) = if accused.is_empty() || others.is_empty() {
                    let mut all = [accused, others].concat();
                    let half = all.split_off(all.len() / 2);
                    (half, all)
                } else {
                    (accused, others)
                };
                self.groups.extend([accused, others]);
            }
        }
        None
    }

    /// Ends the trial of a name without a verdict: it is not its content that is to blame.
    pub(super) fn acquit(&mut self, name: &str) {
        self.drop_pieces(|(suspect, _)| &**suspect != name);
    }

    /// Drops what needs no trial any more: it was accepted, changed, or is not wanted. `open` tells
    /// whether a name with this content is still to be tried. Returns whether another group is on trial.
    pub(super) fn settle(&mut self, open: impl Fn(&str, Version) -> bool) -> bool {
        let before = self.groups.len();
        self.drop_pieces(|(name, version)| open(name, *version));
        self.groups.len() != before
    }

    /// What the client may have of a layer, and the names that are not to be spoken of, whether it has
    /// them or not. `good` is what it accepted last.
    pub(super) fn admit(
        &self,
        layer: &Layer,
        good: impl Fn(&str) -> Option<XdsResource>,
    ) -> (Layer, BTreeSet<Arc<str>>) {
        let mut admitted = (**layer).clone();
        let mut muted = BTreeSet::new();
        for (name, resource) in layer.iter() {
            let instead = match self.verdict(name, resource.version) {
                Verdict::Free => continue,
                Verdict::Waiting => good(name),
                Verdict::Refused(refused) => good(name).or_else(|| refused.instead.clone()),
            };
            match instead {
                Some(instead) => admitted.insert(name.clone(), instead),
                None => {
                    muted.insert(name.clone());
                    admitted.remove(name)
                }
            };
        }
        (Arc::new(admitted), muted)
    }

    /// What of a layer is refused, with the reason.
    pub(super) fn refused_of<'a>(&'a self, layer: &'a Layer) -> impl Iterator<Item = &'a Refused> {
        self.refused.iter().filter(|refused| {
            layer.get(&refused.name).is_some_and(|resource| resource.version == refused.version)
        })
    }

    /// What is to be remembered of this client beyond the stream.
    pub(super) fn lasting(&self) -> Self {
        Self { groups: Vec::new(), refused: self.refused.clone() }
    }

    fn verdict(&self, name: &str, version: Version) -> Verdict<'_> {
        let is = |piece: &Piece| &*piece.0 == name && piece.1 == version;
        if let Some(refused) = self.refused.iter().find(|r| &*r.name == name && r.version == version) {
            return Verdict::Refused(refused);
        }
        let waiting = self.groups.iter().rev().skip(1).flatten().any(is);
        if waiting { Verdict::Waiting } else { Verdict::Free }
    }

    fn refuse(&mut self, refused: Refused) {
        self.refused.retain(|held| (&held.name, held.version) != (&refused.name, refused.version));
        self.refused.push_back(refused);
        if self.refused.len() > MAX_REFUSED {
            self.refused.pop_front();
        }
    }

    fn drop_pieces(&mut self, keep: impl Fn(&Piece) -> bool) {
        for group in &mut self.groups {
            group.retain(&keep);
        }
        self.groups.retain(|group| !group.is_empty());
    }
}

#[cfg(test)]
mod tests {
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
        let layer: Layer =
            Arc::new(names.iter().map(|name| (name.as_str().into(), resource(name))).collect());
        let mut triage = Triage::default();
        let mut good: BTreeSet<Arc<str>> = BTreeSet::new();
        for responses in 1.. {
            let (admitted, _) = triage.admit(&layer, |name| good.contains(name).then(|| resource(name)));
            let sent: Vec<&XdsResource> = match split {
                // One resource is a response by itself.
                Split::Single if triage.is_trying() => {
                    triage.on_trial().map(|name| &admitted[name]).collect()
                }
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
}
