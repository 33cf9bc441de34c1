//! How many requests, or connections, are taken by each Envoy for itself.
//!
//! A virtual host has one configuration of the filter, with a bucket for each limit of the document. Routes
//! say by their metadata which one is theirs, so that those made of one route of the document share one.

use tower_common::document::model::{LocalRateLimit, Mode, RateLimits, Route};
use tower_proto::envoy::{
    envoy::{
        config::{
            core::v3::RuntimeFractionalPercent,
            listener::v3::{Filter, filter::ConfigType},
            route::v3::{
                RateLimit,
                rate_limit::{
                    Action,
                    action::{ActionSpecifier, MetaData, meta_data::Source},
                },
            },
        },
        extensions::{
            common::ratelimit::v3::{LocalRateLimitDescriptor, rate_limit_descriptor::Entry},
            filters::{http::local_ratelimit::v3 as http, network::local_ratelimit::v3 as network},
        },
        r#type::{
            metadata::v3::{
                MetadataKey,
                metadata_key::{PathSegment, path_segment::Segment},
            },
            v3::{FractionalPercent, TokenBucket},
        },
    },
    google::protobuf::{Any, BoolValue},
};

use super::{
    convert::{duration, millis, number},
    messages::any,
    metadata::{LIMIT, NAMESPACE},
};

/// What a route's metadata say that has no limit of its own, where the virtual host has one. No route is
/// called so.
const OF_THE_HOST: &str = "*";

/// Which limit a route's metadata say is its own.
pub(super) fn of<'a>(route: &'a Route, host: &RateLimits) -> Option<&'a str> {
    let own = route.rate_limits.local.is_some().then_some(route.name.as_str());
    own.or_else(|| host.local.is_some().then_some(OF_THE_HOST))
}

/// What a virtual host configures of the filter; nothing if there are no limits.
pub(super) fn http(stat_prefix: &str, host: &RateLimits, routes: &[Route]) -> Option<(String, Any)> {
    let of_routes =
        routes.iter().filter_map(|route| Some((route.name.as_str(), route.rate_limits.local.as_ref()?)));
    let of_host = host.local.as_ref().map(|limit| (OF_THE_HOST, limit));
    let descriptors: Vec<_> = of_host.into_iter().chain(of_routes).map(descriptor).collect();
    let all = RuntimeFractionalPercent {
        default_value: Some(FractionalPercent { numerator: 100, ..Default::default() }),
        ..Default::default()
    };
    let limit = http::LocalRateLimit {
        stat_prefix: stat_prefix.to_owned(),
        // Envoy wants one for requests that no limit is for.
        token_bucket: Some(TokenBucket {
            max_tokens: u32::MAX,
            tokens_per_fill: number(u32::MAX),
            fill_interval: Some(millis(1000)),
        }),
        always_consume_default_token_bucket: Some(BoolValue { value: false }),
        filter_enabled: Some(all.clone()),
        filter_enforced: Some(all),
        rate_limits: vec![RateLimit { actions: vec![by_metadata()], ..Default::default() }],
        // What gRPC itself says of too many calls.
        rate_limited_as_resource_exhausted: true,
        ..Default::default()
    };
    (!descriptors.is_empty()).then(|| {
        ("envoy.filters.http.local_ratelimit".to_owned(), any(&http::LocalRateLimit { descriptors, ..limit }))
    })
}

/// The filter in front of bytes; it limits connections. There is no shadow of it: Envoy has none.
pub(super) fn tcp(stat_prefix: &str, of: &RateLimits) -> Option<Filter> {
    let limit = of.local.as_ref().filter(|limit| match limit.mode {
        Mode::Enforce => true,
        Mode::Shadow => false,
    })?;
    let limit = network::LocalRateLimit {
        stat_prefix: stat_prefix.to_owned(),
        token_bucket: Some(bucket(limit)),
        ..Default::default()
    };
    Some(Filter {
        name: "envoy.filters.network.local_ratelimit".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&limit))),
    })
}

fn descriptor((name, of): (&str, &LocalRateLimit)) -> LocalRateLimitDescriptor {
    LocalRateLimitDescriptor {
        entries: vec![Entry { key: LIMIT.to_owned(), value: name.to_owned() }],
        token_bucket: Some(bucket(of)),
        shadow_mode: match of.mode {
            Mode::Enforce => false,
            Mode::Shadow => true,
        },
    }
}

fn bucket(of: &LocalRateLimit) -> TokenBucket {
    TokenBucket {
        max_tokens: of.burst.unwrap_or(of.requests).max(of.requests),
        tokens_per_fill: number(of.requests),
        fill_interval: Some(duration(of.interval)),
    }
}

fn by_metadata() -> Action {
    let segment = PathSegment { segment: Some(Segment::Key(LIMIT.to_owned())) };
    let metadata = MetaData {
        descriptor_key: LIMIT.to_owned(),
        metadata_key: Some(MetadataKey { key: NAMESPACE.to_owned(), path: vec![segment] }),
        source: Source::RouteEntry.into(),
        ..Default::default()
    };
    Action { action_specifier: Some(ActionSpecifier::Metadata(metadata)) }
}
