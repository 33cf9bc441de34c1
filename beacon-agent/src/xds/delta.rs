//! Delta: requests add and remove names, responses hold what changed.
//!
//! Sources: xDS protocol, "Incremental xDS", and the comments in
//! `envoy/service/discovery/v3/discovery.proto`.

use std::{collections::BTreeSet, sync::Arc};

use tower_common::view::Layer;
use tower_proto::envoy::{
    envoy::{
        config::core::v3::{ControlPlane, Node},
        service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource},
    },
    google::protobuf::Any,
};

use super::{
    channel::Channel,
    kind::{Mode, ResourceType},
    protocol::{Answer, Limits, Protocol, Refusal, check_names},
    selection::{Batch, Selection},
};

/// Incremental xDS.
#[derive(Debug)]
pub(super) enum Delta {}

impl Protocol for Delta {
    const MODE: Mode = Mode::Delta;
    const NAMES_FIELD: &'static str = "resource_names_subscribe";
    type Request = DeltaDiscoveryRequest;
    type Response = DeltaDiscoveryResponse;

    fn take_node(request: &mut Self::Request) -> Option<Node> {
        request.node.take()
    }

    fn type_url(request: &Self::Request) -> &str {
        &request.type_url
    }

    fn check(request: &Self::Request, limits: &Limits) -> Result<(), Refusal> {
        if !request.resource_locators_subscribe.is_empty() {
            return Err(Refusal::Locators { field: "resource_locators_subscribe" });
        }
        if !request.resource_locators_unsubscribe.is_empty() {
            return Err(Refusal::Locators { field: "resource_locators_unsubscribe" });
        }
        check_names(Self::NAMES_FIELD, &request.resource_names_subscribe, limits)?;
        check_names("initial_resource_versions", request.initial_resource_versions.keys(), limits)
    }

    fn receive(channel: &mut Channel, request: Self::Request, first: bool) -> Option<Answer> {
        // Subscriptions count "even when the nonce is stale": each message says something of its own.
        let answer = if first || request.response_nonce.is_empty() {
            None
        } else {
            Some(channel.settle(&request.response_nonce, request.error_detail).unwrap_or(Answer::Stale))
        };
        let was_wildcard = channel.subscription.wildcard();
        let change =
            channel.subscription.alter(request.resource_names_subscribe, request.resource_names_unsubscribe);
        channel.apply(&change);
        if channel.subscription.wildcard() {
            // Without an answer a client would not know whether the wildcard still covers the name.
            channel.due.extend(change.dropped);
            if was_wildcard && change.wildcard_asked {
                channel.due.extend(channel.ledger.names().cloned());
            }
        }
        if first {
            // What the client has kept from its last stream and is gone is to be reported. Nothing is
            // skipped for its version: after a NACK a client may claim a version that it does not run.
            let names = request.initial_resource_versions.into_keys().map(Arc::<str>::from);
            channel.due.extend(names.filter(|name| channel.subscription.covers(name)));
        }
        answer
    }

    fn tells_removals(_kind: ResourceType) -> bool {
        true
    }

    fn select(
        channel: &Channel,
        layer: &Layer,
        complete: bool,
        news: Option<&BTreeSet<Arc<str>>>,
    ) -> Option<Selection> {
        let mut selection = Selection::default();
        for name in channel.names_to_send(news) {
            let resource = layer.get(name);
            // Whether a name that is asked for exists is not known before everything is loaded.
            if resource.is_some() || complete || !channel.due.contains(name) {
                selection.add(name, resource);
            }
        }
        if channel.must_answer { Some(selection) } else { selection.non_empty() }
    }

    fn response(batch: Batch, identifier: &str) -> Self::Response {
        let type_url = batch.kind.url();
        let resources = batch.resources.into_iter().map(|resource| Resource {
            name: resource.name.to_string(),
            version: resource.version.to_string(),
            resource: Some(Any { type_url: type_url.to_owned(), value: resource.body.to_vec() }),
            ..Default::default()
        });
        DeltaDiscoveryResponse {
            system_version_info: batch.version.to_string(),
            resources: resources.collect(),
            type_url: type_url.to_owned(),
            removed_resources: batch.removed.iter().map(ToString::to_string).collect(),
            nonce: batch.nonce.to_string(),
            control_plane: Some(ControlPlane { identifier: identifier.to_owned() }),
            ..Default::default()
        }
    }
}
