//! One stream, as a state machine: requests and compositions in, responses out.
//!
//! Knows neither sockets nor clocks. A response is made when there is room for it, from what is true at
//! that moment; so a client that reads slowly costs nothing, and gets the newest state when it reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    marker::PhantomData,
    sync::Arc,
    time::Instant,
};

use tower_common::view::{Composition, EGRESS, NodeView, XdsResource};

use super::{
    channel::{Channel, Moment, Verdict},
    clients::{Quarantined, Reason},
    dump::Sent,
    gate::references,
    kind::{Mode, ResourceType, Scope},
    ledger::Nonce,
    memory::Memory,
    offer::Offer,
    protocol::{Limits, Protocol, Received, Refusal},
    selection::Batch,
    sources::Sources,
    standing::Standings,
    triage::Triage,
};

/// One stream: of all types, or of one.
#[derive(Debug)]
pub(super) struct Session<P> {
    scope: Scope,
    offer: Offer,
    channels: BTreeMap<ResourceType, Channel>,
    /// Where this client asks for what a resource refers to.
    sources: Sources,
    limits: Limits,
    standings: Standings,
    /// Something has happened since the standings were asked for.
    stirred: bool,
    /// What types that are not asked for yet begin with.
    remembered: BTreeMap<ResourceType, Triage>,
    /// Something was complete once. What is loading since then does not stop the rest.
    serving: bool,
    nonce: Nonce,
    protocol: PhantomData<P>,
}

impl<P: Protocol> Session<P> {
    /// A new stream of a client with this view.
    pub(super) fn new(scope: Scope, node: &NodeView, limits: Limits, composition: &Composition) -> Self {
        Self {
            scope,
            offer: Offer::new(node, composition),
            channels: BTreeMap::new(),
            sources: Sources::new(node.source),
            limits,
            standings: Standings::default(),
            stirred: true,
            remembered: BTreeMap::new(),
            serving: composition.complete,
            nonce: 0,
            protocol: PhantomData,
        }
    }

    /// Begins with what the client could not take on its earlier streams.
    pub(super) fn recall(&mut self, memory: Memory) {
        self.offer.recall(memory.pieces);
        self.remembered = memory.resources;
    }

    /// What the client's later streams are to begin with.
    pub(super) fn memory(&self) -> Memory {
        let channels = self.channels.iter().filter(|(_, channel)| !channel.triage.is_idle());
        Memory {
            resources: channels.map(|(kind, channel)| (*kind, channel.triage.lasting())).collect(),
            pieces: if self.has_routes() { self.offer.pieces().memory() } else { Triage::default() },
        }
    }

    /// Takes a request in.
    ///
    /// # Errors
    /// If the stream is to be ended for it.
    pub(super) fn handle(&mut self, request: P::Request) -> Result<Received, Refusal> {
        let url = P::type_url(&request);
        let kind = match self.scope {
            Scope::Aggregated if url.is_empty() => return Err(Refusal::NoTypeUrl),
            Scope::Aggregated => match ResourceType::from_url(url) {
                Some(kind) => kind,
                None => return Ok(Received::UnknownType(url.to_owned())),
            },
            Scope::Single(kind) if url.is_empty() || url == kind.url() => kind,
            Scope::Single(kind) => {
                let asked = url.chars().take(256).collect();
                return Err(Refusal::OtherType { served: kind, asked });
            }
        };
        P::check(&request, &self.limits)?;
        // Endpoints are no part of a release.
        self.stirred |= kind != ResourceType::Endpoint;
        let first = !self.channels.contains_key(&kind);
        let channel = self.channels.entry(kind).or_insert_with(|| {
            let triage = self.remembered.remove(&kind).unwrap_or_default();
            Channel::new(kind, triage)
        });
        let answer = P::receive(channel, request, first);
        channel.stirred = true;
        let verdict = channel.verdict.take();
        let good_routes = channel.ledger.good(EGRESS).map(|routes| routes.version);
        match verdict {
            Some(Verdict::Accepted) => {
                channel.accepted();
                if let (ResourceType::Route, Some(version)) = (kind, good_routes) {
                    self.offer.routes_accepted(version);
                }
            }
            Some(Verdict::Rejected { mut suspects, message }) => {
                if kind == ResourceType::Route && self.offer.composes_routes() {
                    // They are made of pieces, of which one is to blame, or else another configuration.
                    let composed =
                        suspects.resources.extract_if(.., |suspect| &*suspect.name == EGRESS).last();
                    if let (Some(routes), Reason::Content) = (composed, Reason::of(&message)) {
                        let certain = suspects.certain && suspects.resources.is_empty();
                        suspects.certain = false;
                        self.offer.routes_rejected(routes.version, &message, certain);
                        if !certain {
                            channel.due.insert(routes.name);
                        }
                    }
                }
                channel.rejected(suspects, &message, P::MODE == Mode::Sotw && kind.is_whole());
            }
            None => {}
        }
        if kind != ResourceType::Endpoint && channel.take_resubscribed() {
            self.standings.reopen();
        }
        let names = channel.subscription.names().len();
        if names > self.limits.names {
            let limit = self.limits.names;
            return Err(Refusal::ManyNames { field: P::NAMES_FIELD, kind, count: names, limit });
        }
        let wildcard = channel.subscription.wildcard();
        if kind == ResourceType::Route && !channel.subscription.covers(EGRESS) {
            self.offer.routes_unwanted();
        }
        if matches!(kind, ResourceType::Route | ResourceType::Listener) {
            self.offer.release(|| referred(&self.channels));
        }
        Ok(Received::Known { kind, answer, wildcard, names })
    }

    /// Takes a composition in.
    pub(super) fn update(&mut self, composition: &Composition) {
        self.stirred = true;
        self.offer.update(composition, || referred(&self.channels));
        self.serving |= composition.complete;
    }

    /// The next response, if one is to be sent at this moment. To be called again until there is none.
    pub(super) fn next_batch(&mut self, now: Instant) -> Option<Batch> {
        if !self.serving {
            return None;
        }
        let moment = Moment { now, complete: self.offer.is_complete() };
        let nonce = self.nonce + 1;
        let mut batch = ResourceType::ALL.into_iter().find_map(|kind| {
            match kind {
                ResourceType::Route => self.compose_routes(),
                ResourceType::Listener => self.gate_listeners(),
                ResourceType::Secret
                | ResourceType::Runtime
                | ResourceType::Cluster
                | ResourceType::Endpoint
                | ResourceType::Extension
                | ResourceType::ScopedRoute => {}
            }
            let channel = self.channels.get_mut(&kind)?;
            self.offer.resolve(kind, channel.subscription.names());
            channel.collect::<P>(self.offer.layer(kind), moment, nonce)
        })?;
        self.nonce = nonce;
        match batch.kind {
            // A cluster that was added or modified "becomes warm when a ClusterLoadAssignment is
            // supplied": it needs one again, changed or not.
            ResourceType::Cluster => {
                self.sources.fill(&mut batch, self.offer.layer(ResourceType::Endpoint));
                if let Some(endpoints) = self.channels.get_mut(&ResourceType::Endpoint) {
                    endpoints.push(&batch.refreshed);
                }
            }
            ResourceType::Route => {
                let ours = batch.resources.iter().any(|resource| &*resource.name == EGRESS);
                if ours {
                    self.offer.routes_sent();
                }
            }
            ResourceType::Listener => self.sources.fill(&mut batch, self.offer.layer(ResourceType::Endpoint)),
            ResourceType::Secret
            | ResourceType::Runtime
            | ResourceType::Endpoint
            | ResourceType::Extension
            | ResourceType::ScopedRoute => {}
        }
        Some(batch)
    }

    /// When to ask for the next response again, even if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.channels.values().filter_map(Channel::deadline).min()
    }

    /// What the client was sent last.
    pub(super) fn contents(&self) -> Vec<Sent> {
        let of = |(kind, channel): (&ResourceType, &Channel)| {
            let sent = |(resource, accepted): (&XdsResource, bool)| Sent {
                kind: *kind,
                resource: resource.clone(),
                accepted,
            };
            channel.ledger.contents().map(sent).collect::<Vec<_>>()
        };
        self.channels.iter().flat_map(of).collect()
    }

    /// What this client cannot take of what is served now.
    pub(super) fn quarantined(&self) -> Vec<Quarantined> {
        let channels = self.channels.values().filter(|channel| !channel.triage.is_idle());
        let resources = channels.flat_map(|channel| {
            let layer = self.offer.layer(channel.kind);
            channel.triage.refused_of(layer).map(|refused| Quarantined::new(channel.kind, refused))
        });
        let pieces = self.has_routes().then(|| self.offer.refused_pieces()).into_iter().flatten();
        let pieces = pieces.map(|piece| Quarantined::new(ResourceType::Route, piece));
        resources.chain(pieces).collect()
    }

    /// What is known of routes is for the stream that has them to say.
    fn has_routes(&self) -> bool {
        self.channels.contains_key(&ResourceType::Route)
    }

    #[cfg(test)]
    fn is_wildcard(&self, kind: ResourceType) -> bool {
        self.channels.get(&kind).is_some_and(|channel| channel.subscription.wildcard())
    }

    fn compose_routes(&mut self) {
        let Some(routes) = self.channels.get(&ResourceType::Route).filter(|_| self.offer.composes_routes())
        else {
            return;
        };
        if routes.subscription.covers(EGRESS) {
            self.offer.compose_routes(|name| is_accepted(&self.channels, name));
        }
        self.offer.gate_routes(|name| routes.ledger.told(name), |name| is_accepted(&self.channels, name));
    }

    fn gate_listeners(&mut self) {
        let Some(listeners) = self.channels.get(&ResourceType::Listener) else { return };
        self.offer
            .gate_listeners(|name| listeners.ledger.told(name), |name| is_accepted(&self.channels, name));
    }
}

/// Whether a client has accepted a cluster, or is not to be kept waiting for it: one that names its clusters
/// does so after it got the routes, and would wait for ever.
fn is_accepted(channels: &BTreeMap<ResourceType, Channel>, cluster: &str) -> bool {
    let clusters = channels.get(&ResourceType::Cluster).filter(|channel| channel.subscription.wildcard());
    clusters.is_none_or(|channel| channel.ledger.accepted(cluster))
}

/// The clusters that a client's listeners and their route configurations refer to.
fn referred(channels: &BTreeMap<ResourceType, Channel>) -> BTreeSet<Arc<str>> {
    let kinds = [ResourceType::Listener, ResourceType::Route];
    let channels = kinds.iter().filter_map(|kind| channels.get(kind));
    // What says nothing of what it refers to was composed here, and its pieces are known.
    references(channels.flat_map(|channel| channel.ledger.in_use()).filter(|held| held.refers.is_some()))
}

mod releases;
#[cfg(test)]
mod tests;
