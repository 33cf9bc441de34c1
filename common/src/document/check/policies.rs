//! How endpoints are chosen, watched and spared; limits.

use super::{
    super::{
        Document,
        model::{
            Duration, HashPolicy, HealthCheck, LoadBalancer, LoadBalancerType, OutlierDetection, RateLimits,
        },
        places::child,
        rules,
    },
    Check,
    routes::Side,
};

/// The largest table of maglev, and the largest ring (Envoy's API).
const MAX_TABLE: u64 = 5_000_011;
/// Entries of a ring at most. Each Envoy builds it anew with every change of the endpoints: of 8 million, as Envoy
/// allows, in seconds.
pub const MAX_RING: u64 = 262_144;

/// Times beyond a year are mistakes.
const MAX_TIME: u64 = 365 * 24 * 3_600_000;

impl Check<'_> {
    pub(super) fn callers(&mut self, document: &Document) {
        let callers = &document.spec.callers;
        self.routes(document, Side::Callers);
        self.requests_only(document);
        if let Some(balancer) = &callers.load_balancer {
            self.balancer(balancer);
        }
        let field = "spec.callers";
        self.within(
            callers.locality.failover_threshold,
            1,
            100,
            rules::BAD_PERCENT,
            &format!("{field}.locality.failoverThreshold"),
        );
        self.within(
            callers.panic_threshold_percent,
            0,
            100,
            rules::BAD_PERCENT,
            &format!("{field}.panicThresholdPercent"),
        );
        self.time(&format!("{field}.connectTimeout"), callers.connect_timeout, 1);
        if let Some(outliers) = &callers.outlier_detection {
            self.outliers(outliers);
        }
        let checks = callers.health_checks.as_deref().unwrap_or_default();
        let one = checks.len() <= 1;
        let list = format!("{field}.healthChecks");
        self.ensure(one, rules::BAD_HEALTH, &list, "there is one check at most", "keep one");
        for (index, check) in checks.iter().enumerate() {
            self.health(&format!("{list}[{index}]"), check);
        }
        self.rate_limits(&format!("{field}.rateLimits"), &callers.rate_limits);
        self.log_fields(&format!("{field}.accessLog"), &callers.access_log);
        self.callers_tls(document);
        if document.spec.callers.routes.iter().any(|route| route.timeouts.request.is_none()) {
            let message = "requests may take as long as they want";
            self.find(
                rules::NO_TIMEOUT,
                "spec.callers.routes",
                message,
                "set timeouts.request, 0s for streams",
            );
        }
        if callers.rate_limits.local.is_some()
            || callers.routes.iter().any(|route| route.rate_limits.local.is_some())
        {
            let next = "limit on the inbound side as well";
            self.find(rules::GRPC_IGNORES, field, "gRPC without a proxy does not heed rate limits", next);
        }
    }

    /// A time of at least so many milliseconds.
    fn time(&mut self, field: &str, time: Option<Duration>, least: u64) {
        self.within(time.map(Duration::as_millis), least, MAX_TIME, rules::BAD_TIME, field);
    }

    fn balancer(&mut self, balancer: &LoadBalancer) {
        use LoadBalancerType::{LeastRequest, Maglev, RingHash, RoundRobin};
        let field = "spec.callers.loadBalancer";
        let at = |name: &str| child(field, name);
        self.within(balancer.choice_count, 2, 100, rules::BAD_BALANCER, &at("choiceCount"));
        self.within(balancer.min_ring_size, 1, MAX_RING, rules::BAD_BALANCER, &at("minRingSize"));
        self.within(balancer.max_ring_size, 1, MAX_RING, rules::BAD_BALANCER, &at("maxRingSize"));
        let (least, most) =
            (balancer.min_ring_size.unwrap_or(1024), balancer.max_ring_size.unwrap_or(MAX_RING));
        let message = "the smallest ring is larger than the largest";
        self.ensure(least <= most, rules::BAD_BALANCER, &at("minRingSize"), message, "swap them");
        if let Some(size) = balancer.table_size {
            let valid = (2..=MAX_TABLE).contains(&size) && is_prime(size);
            let next = format!("write a prime up to {MAX_TABLE}, such as 65537");
            self.ensure(valid, rules::BAD_BALANCER, &at("tableSize"), "it is no such prime", &next);
        }
        self.hashes(&at("hashPolicy"), &balancer.hash_policy);
        if let Some(slow) = &balancer.slow_start {
            self.time(&at("slowStart.window"), Some(slow.window), 1);
            let least = at("slowStart.minWeightPercent");
            self.within(slow.min_weight_percent, 1, 100, rules::BAD_PERCENT, &least);
        }
        for (name, given, types) in [
            ("choiceCount", balancer.choice_count.is_some(), &[LeastRequest][..]),
            ("minRingSize", balancer.min_ring_size.is_some(), &[RingHash]),
            ("maxRingSize", balancer.max_ring_size.is_some(), &[RingHash]),
            ("tableSize", balancer.table_size.is_some(), &[Maglev]),
            ("hashPolicy", !balancer.hash_policy.is_empty(), &[RingHash, Maglev]),
            ("slowStart", balancer.slow_start.is_some(), &[RoundRobin, LeastRequest]),
        ] {
            let used = !given || types.contains(&balancer.kind);
            let message = format!("{:?} does not heed it", balancer.kind);
            self.ensure(used, rules::UNUSED_BALANCER_FIELD, &at(name), &message, "leave it out");
        }
    }

    pub(super) fn hashes(&mut self, field: &str, policies: &[HashPolicy]) {
        for (index, policy) in policies.iter().enumerate() {
            let field = format!("{field}[{index}]");
            let given = [
                policy.header.is_some(),
                policy.cookie.is_some(),
                policy.query_param.is_some(),
                policy.source_ip,
            ];
            let one = given.iter().filter(|given| **given).count() == 1;
            let next = "keep one of header, cookie, queryParam, sourceIp";
            self.ensure(one, rules::BAD_BALANCER, &field, "a hash is of exactly one thing", next);
            if let Some(header) = &policy.header {
                self.header_name(&format!("{field}.header"), header, true);
            }
            if let Some(cookie) = &policy.cookie {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
                let valid = !cookie.name.is_empty()
                    && cookie.name.bytes().all(plain)
                    && cookie.path.as_deref().is_none_or(|path| {
                        super::paths::printable(path) && !path.contains([';', ',', '"', ' '])
                    });
                self.ensure(valid, rules::BAD_NAME, &format!("{field}.cookie"), "it is no cookie", "name it");
                self.time(&format!("{field}.cookie.ttl"), cookie.ttl, 0);
            }
            let named = policy.query_param.as_deref() != Some("");
            self.ensure(named, rules::BAD_NAME, &format!("{field}.queryParam"), "it has no name", "name it");
        }
    }

    fn outliers(&mut self, outliers: &OutlierDetection) {
        let field = "spec.callers.outlierDetection";
        self.time(&format!("{field}.interval"), outliers.interval, 1);
        self.time(&format!("{field}.baseEjectionTime"), outliers.base_ejection_time, 1);
        self.time(&format!("{field}.maxEjectionTime"), outliers.max_ejection_time, 1);
        let base = outliers.base_ejection_time.map_or(30_000, Duration::as_millis);
        let valid = outliers.max_ejection_time.is_none_or(|max| max.as_millis() >= base);
        let message = "the longest time is shorter than the first";
        let at = format!("{field}.maxEjectionTime");
        self.ensure(valid, rules::BAD_OUTLIER, &at, message, "write at least baseEjectionTime");
        let at = format!("{field}.maxEjectionPercent");
        self.within(outliers.max_ejection_percent, 0, 100, rules::BAD_PERCENT, &at);
    }

    fn health(&mut self, field: &str, check: &HealthCheck) {
        let kinds = [check.http.is_some(), check.tcp.is_some(), check.grpc.is_some()];
        let one = kinds.iter().filter(|given| **given).count() == 1;
        let message = "a check asks in exactly one way";
        self.ensure(one, rules::BAD_HEALTH, field, message, "keep one of http, tcp, grpc");
        self.time(&format!("{field}.interval"), check.interval, 100);
        self.time(&format!("{field}.timeout"), check.timeout, 1);
        self.within(
            check.healthy_threshold,
            1,
            1000,
            rules::BAD_HEALTH,
            &format!("{field}.healthyThreshold"),
        );
        let at = format!("{field}.unhealthyThreshold");
        self.within(check.unhealthy_threshold, 1, 1000, rules::BAD_HEALTH, &at);
        if let Some(http) = &check.http {
            let valid = http.path.starts_with('/') && super::paths::printable(&http.path);
            let at = format!("{field}.http.path");
            self.ensure(valid, rules::BAD_PATH, &at, "it is no path", "write a path that begins with /");
            if let Some(host) = &http.host {
                self.host(&format!("{field}.http.host"), host);
            }
            for (index, status) in http.expected_statuses.iter().enumerate() {
                let at = format!("{field}.http.expectedStatuses[{index}]");
                self.within(Some(*status), 100, 599, rules::BAD_HEALTH, &at);
            }
        }
        if let Some(service) = check.grpc.as_ref().and_then(|grpc| grpc.service.as_deref()) {
            let valid = super::paths::printable(service);
            let at = format!("{field}.grpc.service");
            self.ensure(valid, rules::BAD_NAME, &at, "it is no gRPC service", "write its full name");
        }
    }

    pub(super) fn rate_limits(&mut self, field: &str, limits: &RateLimits) {
        let Some(local) = &limits.local else { return };
        let field = format!("{field}.local");
        let at = format!("{field}.requests");
        self.within(Some(local.requests), 1, u32::MAX, rules::BAD_LIMIT, &at);
        self.time(&format!("{field}.interval"), Some(local.interval), 50);
        let valid = local.burst.is_none_or(|burst| burst >= local.requests);
        let message = "the bucket is smaller than what an interval adds";
        self.ensure(valid, rules::BAD_LIMIT, &format!("{field}.burst"), message, "write at least requests");
    }
}

fn is_prime(number: u64) -> bool {
    number >= 2
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}
