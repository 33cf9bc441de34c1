//! The fields of a service document. A field that is absent is `None` or empty, so that a part says only what
//! its owner wrote; what then applies is in the field's comment.
//!
//! Percentages are of 100, times have units (`250ms`, `1s`, `1m30s`, `1h`). Field paths are as in
//! `spec.callers.routes[0].timeouts.request`.
//!
//! Not here yet, and where they will stand:
//!
//! | What | Where |
//! |---|---|
//! | CORS | [`Route`], beside `responseHeaders`: Envoy's cors filter by `typed_per_filter_config` |
//! | fault injection | [`Route`], beside `mirror`: the fault filter, likewise |
//! | global rate limits | [`RateLimits`], beside `local`: the ratelimit filter with a domain and descriptors |
//! | tracing | [`Inbound`] and [`Callers`], beside `accessLog`: the HTTP connection manager's `tracing` |

mod callers;
mod filters;
mod inbound;
mod metadata;
mod outbound;
mod patches;
mod policies;
mod routes;
mod scalars;
mod spec;
mod tls;

pub use self::{
    callers::{Callers, Locality, LocalityMode, Protocol},
    filters::{DirectResponse, Header, HeaderChanges, Redirect, RegexRewrite, Rewrite, Scheme},
    inbound::{AllowedCallers, CallerRule, Inbound, Port},
    metadata::{API_VERSION, ApiVersion, Document, Kind, Metadata, Owner},
    outbound::{Dependency, Outbound, Overrides, RetryOverride, TimeoutOverrides},
    patches::{Patch, PatchKind, PatchTarget},
    policies::{
        AccessLog, AccessLogMode, CircuitBreaker, GrpcCheck, HashCookie, HashPolicy, HealthCheck, HttpCheck,
        LoadBalancer, LoadBalancerType, LocalRateLimit, Mode, OutlierDetection, RateLimits, SlowStart,
        TcpCheck,
    },
    routes::{
        BackendRef, Backoff, HeaderMatch, MatchType, Method, Mirror, PathMatch, PathType, QueryMatch, Retry,
        Route, RouteMatch, Timeouts,
    },
    scalars::{Duration, Percent},
    spec::{Spec, Tier},
    tls::{CallersTls, CertificateFiles, InboundTls, TlsMode, TlsVersion},
};

/// Whether a value need not be written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
