//! What the client has of the releases that its host holds.

use std::sync::Arc;

use tower_common::{
    resource::Version,
    view::{EGRESS, Held, Part, PartKind},
};

use super::Session;
use crate::xds::{
    channel::Channel,
    clients::Reason,
    kind::{ResourceType, Scope},
    protocol::Protocol,
    standing::{Changes, Parts, Standing, Trouble},
};

impl<P: Protocol> Session<P> {
    /// What has changed of the client's standings since this was asked last.
    pub(in crate::xds) fn standings(&mut self) -> Changes {
        if !std::mem::take(&mut self.stirred) {
            return Changes::new();
        }
        let mut standings = std::mem::take(&mut self.standings);
        let changes =
            standings.update(&self.offer.composition().held, |service, held| self.stand(service, held));
        self.standings = standings;
        changes
    }

    /// How a service stands, and whether this stream can add nothing to it.
    fn stand(&self, service: &Arc<str>, held: &Arc<Held>) -> (Standing, bool) {
        let all = Parts::first(held.parts.len());
        let (mut asked, mut accepted, mut exempt, mut elsewhere) = (all, all, all, all);
        let mut trouble: Option<Trouble> = None;
        for (index, part) in held.parts.iter().enumerate() {
            let kind = kind_of(part.kind);
            if self.scope == Scope::Aggregated || self.scope == Scope::Single(kind) {
                elsewhere = elsewhere.without(index);
            }
            if !self.is_exempt(service, part) {
                exempt = exempt.without(index);
            }
            let channel = self.channels.get(&kind);
            let names = self.names_of(service, part);
            let covers = |channel: &&Channel| names.iter().any(|name| channel.subscription.covers(name));
            let Some(channel) = channel.filter(covers) else {
                asked = asked.without(index);
                accepted = accepted.without(index);
                continue;
            };
            let version = self.version_of(part);
            if !self.has(channel, part, &names, version) {
                accepted = accepted.without(index);
                let found = self.trouble(channel, part, &names, version);
                // Of what a client cannot take its content says more than its host.
                if found.is_some() && trouble.as_ref().is_none_or(|trouble| trouble.reason == Reason::Host) {
                    trouble = found;
                }
            }
        }
        let is_final = all.are_in(accepted.or(exempt).or(elsewhere));
        (Standing { held: held.clone(), asked, accepted, exempt, trouble }, is_final)
    }

    /// What a client names when it asks for a part.
    fn names_of(&self, service: &str, part: &Part) -> Vec<Arc<str>> {
        match (part.kind, self.offer.targets()) {
            (PartKind::Piece, None) => vec![EGRESS.into()],
            (PartKind::Piece, Some(targets)) => targets.of_service(service).cloned().collect(),
            _ => vec![part.name.clone()],
        }
    }

    /// The version that the client is to have. Of a secret a file may say something else than the release.
    fn version_of(&self, part: &Part) -> Version {
        let served = match part.kind {
            PartKind::Secret => self.offer.layer(ResourceType::Secret).get(&part.name),
            PartKind::Cluster | PartKind::Piece | PartKind::Listener | PartKind::Routes => None,
        };
        served.map_or(part.version, |resource| resource.version)
    }

    fn has(&self, channel: &Channel, part: &Part, names: &[Arc<str>], version: Version) -> bool {
        match (part.kind, self.offer.targets()) {
            (PartKind::Piece, None) => self.offer.pieces().has(&part.name, version),
            (PartKind::Piece, Some(targets)) => names.iter().all(|name| {
                let served = targets.routes().get(name);
                served.is_none_or(|routes| channel.ledger.has(name, routes.version))
            }),
            _ => channel.ledger.has(&part.name, version),
        }
    }

    /// Listeners are there for certain services only, and not for gRPC.
    fn is_exempt(&self, service: &str, part: &Part) -> bool {
        let of_listeners = match part.kind {
            PartKind::Listener | PartKind::Routes => true,
            PartKind::Secret => !part.name.starts_with("callers/"),
            PartKind::Cluster | PartKind::Piece => false,
        };
        of_listeners && !(self.offer.composes_routes() && self.offer.has_listeners_of(service))
    }

    fn trouble(
        &self,
        channel: &Channel,
        part: &Part,
        names: &[Arc<str>],
        version: Version,
    ) -> Option<Trouble> {
        let trouble = |reason, message: &Arc<str>| Trouble {
            reason,
            kind: channel.kind,
            name: part.name.clone(),
            message: message.clone(),
        };
        if part.kind == PartKind::Piece && self.offer.composes_routes() {
            let mut refused = self.offer.refused_pieces();
            let refused = refused.find(|piece| piece.name == part.name && piece.version == version)?;
            return Some(trouble(Reason::Content, &refused.message));
        }
        let layer = self.offer.layer(channel.kind);
        let mut refused = channel.triage.refused_of(layer);
        if let Some(refused) = refused.find(|refused| names.contains(&refused.name)) {
            return Some(trouble(Reason::Content, &refused.message));
        }
        let fault = channel.fault(&part.name, version)?;
        Some(trouble(fault.reason, &fault.message))
    }
}

fn kind_of(part: PartKind) -> ResourceType {
    match part {
        PartKind::Cluster => ResourceType::Cluster,
        PartKind::Piece | PartKind::Routes => ResourceType::Route,
        PartKind::Listener => ResourceType::Listener,
        PartKind::Secret => ResourceType::Secret,
    }
}
