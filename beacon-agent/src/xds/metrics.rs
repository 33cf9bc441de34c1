//! What the xDS server counts.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{
    clients::Reason,
    kind::{Mode, ResourceType},
    protocol::{Answer, Received},
    selection::Batch,
};

/// The counters. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    streams: Family<ModeLabel, Gauge>,
    refused: Counter,
    requests: Family<TypeLabel, Counter>,
    unknown_types: Counter,
    acks: Family<TypeLabel, Counter>,
    nacks: Family<NackLabel, Counter>,
    quarantined: Gauge,
    stale_nonces: Family<TypeLabel, Counter>,
    responses: Family<TypeLabel, Counter>,
    resources: Family<TypeLabel, Counter>,
    response_bytes: Family<TypeLabel, Counter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabel {
    mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: ResourceType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NackLabel {
    r#type: ResourceType,
    reason: Reason,
}

/// Counts a stream as open as long as it exists.
#[derive(Debug)]
pub(super) struct OpenStream {
    open: Gauge,
    quarantined: Gauge,
    /// How much of `quarantined` is this stream's.
    own: i64,
}

impl Metrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("xds");
        registry.register("streams", "Streams of xDS clients that are open", metrics.streams.clone());
        registry.register(
            "streams_refused",
            "Streams that were ended by the server",
            metrics.refused.clone(),
        );
        registry.register("requests", "Requests", metrics.requests.clone());
        let help = "Requests for types that are not served";
        registry.register("unknown_type_requests", help, metrics.unknown_types.clone());
        registry.register("acks", "Responses that were accepted", metrics.acks.clone());
        registry.register("nacks", "Responses that were rejected", metrics.nacks.clone());
        let help = "Resources, and services' routes, that clients cannot take and are kept from them";
        registry.register("quarantined", help, metrics.quarantined.clone());
        let help = "Requests about a response that is not waiting for an answer";
        registry.register("stale_nonces", help, metrics.stale_nonces.clone());
        registry.register("responses", "Responses", metrics.responses.clone());
        registry.register("resources", "Resources in responses", metrics.resources.clone());
        registry.register(
            "response_bytes",
            "Bytes of resources in responses",
            metrics.response_bytes.clone(),
        );
        metrics
    }

    pub(super) fn opened(&self, mode: Mode) -> OpenStream {
        let gauge = self.streams.get_or_create_owned(&ModeLabel { mode });
        gauge.inc();
        OpenStream { open: gauge, quarantined: self.quarantined.clone(), own: 0 }
    }

    pub(super) fn refused(&self) {
        self.refused.inc();
    }

    pub(super) fn received(&self, received: &Received) {
        let (kind, answer) = match received {
            Received::Known { kind, answer, .. } => (*kind, answer),
            Received::UnknownType(_) => {
                self.unknown_types.inc();
                return;
            }
        };
        let label = TypeLabel { r#type: kind };
        self.requests.get_or_create(&label).inc();
        match answer {
            Some(Answer::Ack { .. }) => self.acks.get_or_create(&label).inc(),
            Some(Answer::Nack { status, .. }) => {
                let reason = Reason::of(&status.message);
                self.nacks.get_or_create(&NackLabel { r#type: kind, reason }).inc()
            }
            Some(Answer::Stale) => self.stale_nonces.get_or_create(&label).inc(),
            None => 0,
        };
    }

    pub(super) fn sent(&self, batch: &Batch) {
        let label = TypeLabel { r#type: batch.kind };
        let bytes: usize = batch.resources.iter().map(|resource| resource.body.len()).sum();
        self.responses.get_or_create(&label).inc();
        self.resources.get_or_create(&label).inc_by(batch.resources.len() as u64);
        self.response_bytes.get_or_create(&label).inc_by(bytes as u64);
    }
}

impl OpenStream {
    /// So much of what is served is kept from this client.
    pub(super) fn quarantined(&mut self, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.quarantined.inc_by(count - self.own);
        self.own = count;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.open.dec();
        self.quarantined.dec_by(self.own);
    }
}

impl EncodeLabelValue for Reason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        match self {
            Self::Content => "content",
            Self::Host => "host",
        }
        .encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use tower_common::resource::Version;
    use tower_proto::envoy::google::rpc::Status;

    use super::*;

    #[test]
    fn names_and_labels_are_stable() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        let mut open = metrics.opened(Mode::Delta);
        open.quarantined(3);
        open.quarantined(2);
        metrics.refused();
        let received = |answer| Received::Known {
            kind: ResourceType::Route,
            answer: Some(answer),
            wildcard: false,
            names: 1,
        };
        let (nonce, version) = ("1".to_owned(), "v".to_owned());
        metrics.received(&received(Answer::Ack { nonce: nonce.clone(), version: version.clone() }));
        metrics.received(&received(Answer::Nack { nonce, version, status: Status::default() }));
        metrics.received(&received(Answer::Stale));
        metrics.received(&Received::UnknownType("x".to_owned()));
        metrics.sent(&Batch {
            kind: ResourceType::Endpoint,
            nonce: 1,
            version: Version::default(),
            resources: Vec::new(),
            removed: Vec::new(),
            refreshed: Default::default(),
        });
        let encode = |registry: &Registry| {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            encode(&registry),
            [
                "xds_streams{mode=\"delta\"} 1",
                "xds_streams_refused_total 1",
                "xds_requests_total{type=\"rds\"} 3",
                "xds_unknown_type_requests_total 1",
                "xds_acks_total{type=\"rds\"} 1",
                "xds_nacks_total{type=\"rds\",reason=\"content\"} 1",
                "xds_quarantined 2",
                "xds_stale_nonces_total{type=\"rds\"} 1",
                "xds_responses_total{type=\"eds\"} 1",
                "xds_resources_total{type=\"eds\"} 0",
                "xds_response_bytes_total{type=\"eds\"} 0",
            ]
        );
        drop(open);
        let lines = encode(&registry);
        assert_eq!(lines[0], "xds_streams{mode=\"delta\"} 0");
        assert!(lines.contains(&"xds_quarantined 0".to_owned()));
    }
}
