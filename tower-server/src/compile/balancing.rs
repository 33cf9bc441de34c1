//! Which endpoint is chosen: the policy, what is near, and how new endpoints begin.

use prost::{Message, Name};
use tower_common::document::{
    MAX_RING,
    model::{Callers, LoadBalancer, LoadBalancerType, Locality, LocalityMode, SlowStart},
};
use tower_proto::{
    envoy::envoy::{
        config::{
            cluster::v3::{
                Cluster, LoadBalancingPolicy,
                cluster::{LbConfig, LbPolicy, RingHashLbConfig},
                load_balancing_policy::Policy,
            },
            core::v3::TypedExtensionConfig,
        },
        extensions::load_balancing_policies::{
            common::v3::{
                LocalityLbConfig, SlowStartConfig,
                locality_lb_config::{LocalityConfigSpecifier, ZoneAwareLbConfig},
            },
            least_request::v3::LeastRequest,
            maglev::v3::Maglev,
            random::v3::Random,
            ring_hash::v3::RingHash,
            round_robin::v3::RoundRobin,
        },
        r#type::v3::Percent,
    },
    v1::cluster_part::Failover,
};

use super::{
    convert::{duration, large, number, percent},
    messages::any,
};

/// How endpoints are chosen. `None` is one after the other, all alike, which needs no words.
pub(super) fn policy(callers: &Callers) -> Option<LoadBalancingPolicy> {
    let zone_aware = match callers.locality.mode.unwrap_or_default() {
        LocalityMode::ZoneAware => Some(zone_aware()),
        LocalityMode::None | LocalityMode::Failover => None,
    };
    let Some(of) = &callers.load_balancer else {
        return zone_aware.map(|near| {
            typed("round_robin", &RoundRobin { locality_lb_config: Some(near), ..Default::default() })
        });
    };
    let slow_start = of.slow_start.as_ref().map(slow_start);
    Some(match of.kind {
        LoadBalancerType::RoundRobin => typed(
            "round_robin",
            &RoundRobin { slow_start_config: slow_start, locality_lb_config: zone_aware },
        ),
        LoadBalancerType::LeastRequest => typed(
            "least_request",
            &LeastRequest {
                choice_count: of.choice_count.and_then(number),
                slow_start_config: slow_start,
                locality_lb_config: zone_aware,
                ..Default::default()
            },
        ),
        LoadBalancerType::Random => typed("random", &Random { locality_lb_config: zone_aware }),
        LoadBalancerType::RingHash => typed(
            "ring_hash",
            &RingHash {
                minimum_ring_size: of.min_ring_size.and_then(large),
                maximum_ring_size: large(of.max_ring_size.unwrap_or(MAX_RING)),
                ..Default::default()
            },
        ),
        LoadBalancerType::Maglev => {
            typed("maglev", &Maglev { table_size: of.table_size.and_then(large), ..Default::default() })
        }
    })
}

/// The policy of a cluster for gRPC without a proxy, which knows the older words for two of them.
pub(super) fn for_grpc(of: Option<&LoadBalancer>, cluster: &mut Cluster) {
    let Some(of) = of else { return };
    match of.kind {
        LoadBalancerType::RingHash | LoadBalancerType::Maglev => {
            cluster.lb_policy = LbPolicy::RingHash.into();
            cluster.lb_config = Some(LbConfig::RingHashLbConfig(RingHashLbConfig {
                minimum_ring_size: of.min_ring_size.and_then(large),
                maximum_ring_size: of.max_ring_size.and_then(large),
                ..Default::default()
            }));
        }
        LoadBalancerType::RoundRobin | LoadBalancerType::LeastRequest | LoadBalancerType::Random => {}
    }
}

/// How endpoints are ranked, and how many percent of its healthy part a rank can bear; 0 is Envoy's default.
pub(super) fn failover(locality: &Locality) -> (Failover, u32) {
    match locality.mode.unwrap_or_default() {
        LocalityMode::None | LocalityMode::ZoneAware => (Failover::Unspecified, 0),
        LocalityMode::Failover => {
            // Rounded up, so that a rank that is just at the threshold still bears all.
            let bears =
                locality.failover_threshold.map_or(0, |threshold| 10_000_u32.div_ceil(threshold.max(1)));
            (Failover::Zone, bears)
        }
    }
}

fn zone_aware() -> LocalityLbConfig {
    let zone_aware = ZoneAwareLbConfig {
        routing_enabled: Some(Percent { value: 100.0 }),
        // Envoy's default is 6, which would have a small service behave otherwise than a large one.
        min_cluster_size: large(1),
        ..Default::default()
    };
    LocalityLbConfig {
        locality_config_specifier: Some(LocalityConfigSpecifier::ZoneAwareLbConfig(zone_aware)),
    }
}

fn slow_start(of: &SlowStart) -> SlowStartConfig {
    SlowStartConfig {
        slow_start_window: Some(duration(of.window)),
        min_weight_percent: of.min_weight_percent.map(percent),
        ..Default::default()
    }
}

fn typed<M: Message + Name>(name: &str, policy: &M) -> LoadBalancingPolicy {
    let config = TypedExtensionConfig {
        name: format!("envoy.load_balancing_policies.{name}"),
        typed_config: Some(any(policy)),
    };
    LoadBalancingPolicy { policies: vec![Policy { typed_extension_config: Some(config) }] }
}
