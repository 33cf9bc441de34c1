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
    pub(super) instead: Option<XdsResource>,
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

    /// All that is refused, the oldest first.
    pub(super) fn refused(&self) -> impl Iterator<Item = &Refused> {
        self.refused.iter()
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

    /// Keeps this content from the client from now on.
    pub(super) fn refuse(&mut self, refused: Refused) {
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
mod tests;
