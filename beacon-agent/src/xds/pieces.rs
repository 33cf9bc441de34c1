//! The pieces of the egress routes, as one client has them: offered, sent, accepted, and those that it cannot
//! take.

use std::{collections::VecDeque, sync::Arc};

use tower_common::{
    resource::Version,
    view::{Layer, XdsResource, route},
};

use super::{
    gate::gate,
    triage::{Refused, Split, Suspects, Triage},
};

/// Routes whose pieces are remembered until they are answered. Routes are not sent again before they are,
/// unless the client asks.
const MAX_UNANSWERED: usize = 4;

/// The pieces of one client's egress routes.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The composed routes, once there are any.
    routes: Option<XdsResource>,
    /// The pieces in them.
    offered: Layer,
    /// The pieces in the routes that the client was sent last.
    sent: Layer,
    /// The pieces in the routes that it accepted last.
    good: Layer,
    /// The pieces of routes that were sent and not answered, by the version of the routes.
    unanswered: VecDeque<(Version, Layer)>,
    /// Pieces that the client could not take.
    triage: Triage,
}

impl Pieces {
    /// The composed routes, if there are any yet.
    pub(super) fn routes(&self) -> Option<&XdsResource> {
        self.routes.as_ref()
    }

    /// Composes the routes anew from these pieces. `ready`: whether a cluster can be referred to. Returns
    /// whether nothing has to wait.
    pub(super) fn compose(&mut self, pieces: &Layer, ready: impl Fn(&str) -> bool) -> bool {
        let admitted = self.admit(pieces);
        let (offered, all) = gate(&admitted, true, |name| self.sent.get(name), ready);
        if self.routes.is_none() || offered != self.offered {
            self.routes = Some(route::compose(offered.values()));
            self.offered = offered;
        }
        all
    }

    /// The pieces that the client can take, as far as is known.
    fn admit(&self, pieces: &Layer) -> Layer {
        if self.triage.is_idle() {
            return pieces.clone();
        }
        self.triage.admit(pieces, |name| self.good.get(name).cloned()).0
    }

    /// The routes were sent.
    pub(super) fn sent(&mut self) {
        self.sent = self.offered.clone();
        if let Some(version) = self.routes.as_ref().map(|routes| routes.version) {
            self.unanswered.retain(|(sent, _)| *sent != version);
            self.unanswered.push_back((version, self.offered.clone()));
            if self.unanswered.len() > MAX_UNANSWERED {
                self.unanswered.pop_front();
            }
        }
    }

    /// The client has accepted the routes with this version; `pieces` are those that are served now. Returns
    /// whether that is news.
    pub(super) fn accepted(&mut self, version: Version, pieces: &Layer) -> bool {
        let Some(at) = self.unanswered.iter().position(|(sent, _)| *sent == version) else { return false };
        // It stays known, in case that it is sent again and then rejected.
        self.unanswered.drain(..at);
        self.good = self.unanswered[0].1.clone();
        let good = &self.good;
        self.triage.settle(|name, version| {
            let has = |layer: &Layer| layer.get(name).is_some_and(|piece| piece.version == version);
            has(pieces) && !has(good)
        });
        true
    }

    /// The client has rejected the routes with this version: of the pieces that it has never accepted one is
    /// to blame, if it is `certain` that it is not something else in the same response.
    pub(super) fn rejected(&mut self, version: Version, message: &str, certain: bool) {
        let Some((_, pieces)) = self.unanswered.iter().find(|(sent, _)| *sent == version) else { return };
        let good = &self.good;
        let known = |piece: &&XdsResource| good.get(&piece.name).is_none_or(|g| g.version != piece.version);
        let suspects = Suspects { resources: pieces.values().filter(known).cloned().collect(), certain };
        self.triage.reject(suspects, message, Split::Halves, |name| good.get(name).cloned());
    }

    /// Begins with pieces that the client could not take on its earlier streams.
    pub(super) fn recall(&mut self, pieces: Triage) {
        self.triage = pieces;
    }

    /// What the client's later streams are to begin with.
    pub(super) fn memory(&self) -> Triage {
        self.triage.lasting()
    }

    /// Whether there is nothing that the client cannot take, or may not be able to.
    pub(super) fn is_idle(&self) -> bool {
        self.triage.is_idle()
    }

    /// Of these pieces, those that are kept from this client.
    pub(super) fn refused<'a>(&'a self, pieces: &'a Layer) -> impl Iterator<Item = &'a Refused> {
        self.triage.refused_of(pieces)
    }

    /// Whether the client has accepted this content of a piece, and has it.
    pub(super) fn has(&self, name: &str, version: Version) -> bool {
        let is = |layer: &Layer| layer.get(name).is_some_and(|piece| piece.version == version);
        is(&self.good) && is(&self.sent)
    }

    /// What the client has, or goes back to if it rejects what it was sent.
    pub(super) fn in_use(&self) -> impl Iterator<Item = &XdsResource> {
        let same = Arc::ptr_eq(&self.sent, &self.good);
        self.sent.values().chain((!same).then(|| self.good.values()).into_iter().flatten())
    }

    /// The client does not want them.
    pub(super) fn unwanted(&mut self) {
        self.sent = Layer::default();
        self.good = Layer::default();
    }
}
