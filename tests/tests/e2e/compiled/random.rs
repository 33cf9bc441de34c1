//! Documents that say a bit of everything, as far as a checked document may.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};
use tower_common::document::Document;

/// Where files are that documents name. Envoy's validation looks whether they are there, and not what is in
/// them.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) authority: String,
}

impl Default for Files {
    fn default() -> Self {
        let nothing = || "/dev/null".to_owned();
        Self { certificate: nothing(), key: nothing(), authority: nothing() }
    }
}

/// A document of the service `sNUMBER`, whose ports no other has.
pub(super) fn document(rng: &mut StdRng, number: usize) -> Document {
    let mut port = 10_000 + u16::try_from(number * 9).expect("few documents");
    let mut ports = || {
        port += 1;
        port
    };
    with(rng, number, &Files::default(), &mut ports)
}

/// The same with these files and ports.
pub(super) fn with(
    rng: &mut StdRng,
    number: usize,
    files: &Files,
    ports: &mut dyn FnMut() -> u16,
) -> Document {
    let budget = [0.01, 20.0, 100.0].choose(rng).copied().unwrap_or_default();
    let mut random = Random { rng, budget, files, ports };
    let json = random.document(&format!("s{number}"));
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{error}: {json:#}"))
}

struct Random<'a> {
    rng: &'a mut StdRng,
    /// The retry budget, which is the service's.
    budget: f64,
    files: &'a Files,
    ports: &'a mut dyn FnMut() -> u16,
}

const SUBSETS: [&str; 3] = ["stable", "canary", "x-1"];
const PATHS: [&str; 6] = ["/", "/a", "/rank", "/v1.0/a-b_c", "/a%20b", "/~x"];
const REGEXES: [&str; 5] = ["/v[0-9]+(/.*)?", "/(a|b)/c", "/x{1,20}", ".*", "/[^/]+/y?"];

impl Random<'_> {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of.choose(self.rng).expect("something").clone()
    }

    fn number(&mut self, of: &[u64]) -> Value {
        json!(self.one(of))
    }

    fn port(&mut self) -> u16 {
        (self.ports)()
    }

    fn certificate(&self) -> Value {
        json!({"certificateFile": self.files.certificate, "privateKeyFile": self.files.key})
    }

    /// Each field with this chance.
    #[expect(clippy::type_complexity, reason = "a name for it would say less")]
    fn some(&mut self, percent: u32, fields: &mut [(&str, &mut dyn FnMut(&mut Self) -> Value)]) -> Value {
        let mut object = Map::new();
        for (name, make) in fields {
            if self.chance(percent) {
                let value = make(self);
                object.insert((*name).to_owned(), value);
            }
        }
        Value::Object(object)
    }

    fn document(&mut self, name: &str) -> Value {
        let protocol = self.one(&[
            None,
            None,
            None,
            Some("http"),
            Some("http2"),
            Some("grpc"),
            Some("tcp"),
            Some("tls"),
        ]);
        let is_http = !matches!(protocol, Some("tcp" | "tls"));
        let mut callers = self.callers(protocol, is_http);
        if let Some(protocol) = protocol {
            callers["protocol"] = json!(protocol);
        }
        let mut dependencies = vec![];
        if self.chance(40) {
            let port = self.port();
            dependencies.push(json!({"service": "s0", "listen": port}));
        }
        if self.chance(40) {
            let overrides =
                json!({"timeouts": {"request": "1s", "backendRequest": "80ms"}, "retry": {"attempts": 0}});
            dependencies.push(json!({"service": "s1", "overrides": overrides}));
        }
        let mut spec = json!({"callers": callers, "outbound": {"dependencies": dependencies}});
        if self.chance(70) {
            spec["inbound"] = self.inbound(is_http);
        }
        json!({"apiVersion": "tower.mesh/v1", "kind": "MeshService", "metadata": {"name": name}, "spec": spec})
    }

    fn callers(&mut self, protocol: Option<&str>, is_http: bool) -> Value {
        let http2 = matches!(protocol, Some("http2" | "grpc"));
        let mut subsets = json!({});
        for name in SUBSETS {
            subsets[name] = json!({"release": name});
        }
        let mut callers = self.some(
            50,
            &mut [
                ("loadBalancer", &mut |r| r.balancer()),
                ("locality", &mut |r| {
                    let mode = r.one(&["None", "ZoneAware", "Failover"]);
                    if mode == "Failover" && r.chance(50) {
                        json!({"mode": mode, "failoverThreshold": r.number(&[1, 70, 71, 100])})
                    } else {
                        json!({ "mode": mode })
                    }
                }),
                ("connectTimeout", &mut |r| json!(r.one(&["1ms", "250ms", "1m"]))),
                ("circuitBreaker", &mut |r| {
                    let number = |r: &mut Self| r.number(&[0, 1, 2000, u32::MAX.into()]);
                    r.some(
                        50,
                        &mut [
                            ("maxConnections", &mut |r| number(r)),
                            ("maxPendingRequests", &mut |r| r.number(&[0, 1, 2000])),
                            ("maxRequests", &mut |r| r.number(&[0, 1, 2000])),
                            ("maxRetries", &mut |r| r.number(&[0, 3])),
                        ],
                    )
                }),
                ("outlierDetection", &mut |r| {
                    r.some(
                        50,
                        &mut [
                            ("consecutive5xx", &mut |r| r.number(&[0, 1, 5])),
                            ("consecutiveGatewayErrors", &mut |r| r.number(&[0, 1, 5])),
                            ("consecutiveLocalFailures", &mut |r| r.number(&[0, 1, 5])),
                            ("interval", &mut |r| json!(r.one(&["1ms", "10s"]))),
                            ("baseEjectionTime", &mut |r| json!(r.one(&["1ms", "30s", "10m"]))),
                            ("maxEjectionPercent", &mut |r| r.number(&[0, 10, 100])),
                        ],
                    )
                }),
                ("healthChecks", &mut |r| r.checks(http2)),
                ("panicThresholdPercent", &mut |r| r.number(&[0, 50, 100])),
                ("tls", &mut |r| r.callers_tls()),
                ("accessLog", &mut |r| r.log()),
            ],
        );
        callers["subsets"] = subsets;
        if is_http {
            callers["rateLimits"] = self.limits();
            callers["routes"] = self.routes(true);
        } else if self.chance(50) {
            callers["routes"] = json!([{"name": "all", "backendRefs": self.backends()}]);
        }
        callers
    }

    fn balancer(&mut self) -> Value {
        match self.one(&["RoundRobin", "LeastRequest", "RingHash", "Maglev", "Random"]) {
            "RingHash" => json!({
                "type": "RingHash", "minRingSize": self.number(&[1, 1024]), "maxRingSize": self.number(&[1024, 262_144]),
                "hashPolicy": self.hashes(),
            }),
            "Maglev" => json!({
                "type": "Maglev", "tableSize": self.number(&[2, 251, 65_537, 5_000_011]), "hashPolicy": self.hashes(),
            }),
            "Random" => json!({"type": "Random"}),
            kind => {
                let mut balancer = json!({ "type": kind });
                if self.chance(50) {
                    balancer["slowStart"] =
                        json!({"window": "30s", "minWeightPercent": self.number(&[1, 100])});
                }
                if kind == "LeastRequest" && self.chance(50) {
                    balancer["choiceCount"] = self.number(&[2, 10]);
                }
                balancer
            }
        }
    }

    fn hashes(&mut self) -> Value {
        let hash = self.one(&[
            json!({"header": "x-user"}),
            json!({"cookie": {"name": "c"}}),
            json!({"cookie": {"name": "c", "ttl": "0s", "path": "/"}, "terminal": true}),
            json!({"queryParam": "q"}),
            json!({"sourceIp": true}),
        ]);
        json!([hash])
    }

    fn checks(&mut self, http2: bool) -> Value {
        let mut checks = vec![
            json!({"tcp": {}}),
            json!({"http": {"path": "/health"}}),
            json!({"http": {"path": "/h?x", "host": "h", "expectedStatuses": [200, 599]}}),
        ];
        if http2 {
            checks.push(json!({"grpc": {}}));
            checks.push(json!({"grpc": {"service": "a.B"}}));
        }
        let mut check = self.one(&checks);
        check["interval"] = json!(self.one(&["100ms", "5s"]));
        check["timeout"] = json!(self.one(&["1ms", "1s"]));
        check["healthyThreshold"] = self.number(&[1, 3]);
        check["unhealthyThreshold"] = self.number(&[1, 3]);
        json!([check])
    }

    fn callers_tls(&mut self) -> Value {
        let mode = self.one(&["off", "permissive", "strict"]);
        if mode == "off" {
            return json!({ "mode": mode });
        }
        let mut tls = json!({
            "mode": mode, "caFile": self.files.authority, "identities": ["spiffe://mesh/web", "web.internal"],
            "minVersion": self.one(&["TLSv1_2", "TLSv1_3"]),
        });
        if self.chance(50) {
            tls["certificate"] = self.certificate();
            tls["serverName"] = json!("web.internal");
        }
        tls
    }

    fn log(&mut self) -> Value {
        let mode = self.one(&["off", "errors", "all"]);
        self.one(&[
            json!({ "mode": mode }),
            json!({"mode": mode, "path": "/dev/null"}),
            json!({"mode": mode, "fields": {"a": "%RESPONSE_CODE% %REQ(:PATH)%", "b": "text"}}),
        ])
    }

    fn limits(&mut self) -> Value {
        if self.chance(50) {
            return json!({});
        }
        let requests = self.one(&[1_u32, 500]);
        json!({"local": {
            "requests": requests, "interval": self.one(&["50ms", "1s", "1h"]),
            "burst": requests * self.one(&[1, 4]), "mode": self.one(&["enforce", "shadow"]),
        }})
    }

    fn inbound(&mut self, is_http: bool) -> Value {
        let (first, second) = (self.port(), self.port());
        let mut inbound = json!({
            "ports": [{"name": "app", "port": first, "appPort": 8080}, {
                "name": "Ops-2", "port": second, "appPort": 8081, "address": "127.0.0.1", "appAddress": "::1",
                "protocol": self.one(&["http", "http2", "grpc", "tcp"]),
            }],
            "rateLimits": self.limits(),
            "accessLog": self.log(),
        });
        let mode = self.one(&["off", "permissive", "strict"]);
        inbound["tls"] =
            json!({"mode": mode, "certificate": self.certificate(), "clientCaFile": self.files.authority});
        if is_http {
            inbound["routes"] = self.routes(false);
        }
        if self.chance(60) {
            inbound["allowedCallers"] = json!({"mode": self.one(&["enforce", "shadow"]), "rules": [
                {"name": "a", "identities": if mode == "off" { json!([]) } else { json!(["spiffe://mesh/a", "spiffe://mesh/b/*"]) }},
                {"name": "b", "addresses": ["10.0.0.0/8", "::1", "192.0.2.1"], "methods": ["GET", "PATCH"]},
                {"name": "c", "paths": [self.path(), self.path()]},
            ]});
        }
        inbound
    }

    fn path(&mut self) -> Value {
        match self.one(&["Exact", "PathPrefix", "RegularExpression"]) {
            "RegularExpression" => json!({"type": "RegularExpression", "value": self.one(&REGEXES)}),
            kind => json!({"type": kind, "value": self.one(&PATHS)}),
        }
    }

    fn backends(&mut self) -> Value {
        self.one(&[
            json!([]),
            json!([{"subset": "canary"}]),
            json!([{"subset": "stable", "weight": 1_000_000}, {"subset": "canary", "weight": 0}]),
            json!([{"subset": "stable", "weight": 95}, {"subset": "x-1", "weight": 5}, {}]),
        ])
    }

    fn routes(&mut self, callers: bool) -> Value {
        let count = self.rng.random_range(0..5);
        (0..count).map(|number| self.route(number, callers)).collect()
    }

    fn route(&mut self, number: usize, callers: bool) -> Value {
        let matches: Vec<_> = (0..self.rng.random_range(0..3)).map(|_| self.matched()).collect();
        let regex = matches.iter().any(|matched| matched["path"]["type"] == "RegularExpression");
        let mut route = json!({"name": format!("Route-{number}"), "matches": matches});
        route["rateLimits"] = self.limits();
        let headers = self.one(&[
            json!({"set": [{"name": "x-a", "value": "50% of \"it\""}], "add": [{"name": "X-B", "value": ""}]}),
            json!({"remove": ["x-c", "server"]}),
            json!({}),
        ]);
        route["requestHeaders"] = headers.clone();
        route["responseHeaders"] = headers;
        match self.one(&["backend", "backend", "redirect", "direct"]) {
            "redirect" => route["redirect"] = self.redirect(regex),
            "direct" => {
                route["directResponse"] = json!({"status": self.one(&[200, 599]), "body": "%REQ(X)% 100%"});
            }
            _ => self.backend(&mut route, callers, regex),
        }
        route
    }

    fn backend(&mut self, route: &mut Value, callers: bool, regex: bool) {
        route["backendRefs"] =
            if callers { self.backends() } else { self.one(&[json!([]), json!([{"port": "Ops-2"}])]) };
        if callers && self.chance(30) {
            route["mirror"] = self.one(&[
                json!({}),
                json!({"service": "s0"}),
                json!({"subset": "canary", "percent": 0.01}),
                json!({"percent": 100}),
            ]);
        }
        if callers && self.chance(30) {
            route["hashPolicy"] = self.hashes();
        }
        if self.chance(40) {
            let mut rewrites = vec![
                json!({"path": "/whole\\1"}),
                json!({"regex": {"pattern": "^/(a|b)", "substitution": "/\\1\\0"}}),
                json!({"host": "other.example.com"}),
            ];
            if !regex {
                rewrites.extend([json!({"prefix": "/"}), json!({"prefix": "/b/", "host": "h"})]);
            }
            route["rewrite"] = self.one(&rewrites);
        }
        if self.chance(50) {
            route["timeouts"] = self.some(
                50,
                &mut [
                    ("request", &mut |r| json!(r.one(&["0s", "250ms", "1h"]))),
                    ("backendRequest", &mut |r| json!(r.one(&["0s", "1ms", "250ms"]))),
                    ("idle", &mut |r| json!(r.one(&["0s", "1ms", "5m"]))),
                ],
            );
        }
        if self.chance(50) {
            let mut retry = json!({"attempts": self.number(&[0, 1, 10])});
            let more = self.some(
                50,
                &mut [
                    ("retryOn", &mut |r| {
                        r.one(&[
                            json!(["5xx"]),
                            json!(["connect-failure", "503", "504"]),
                            json!(["cancelled", "unavailable"]),
                        ])
                    }),
                    ("budgetPercent", &mut |r| json!(r.budget)),
                    ("backoff", &mut |r| {
                        r.one(&[json!({"base": "1ms"}), json!({"base": "1s", "max": "1s"})])
                    }),
                ],
            );
            for (name, value) in more.as_object().into_iter().flatten() {
                retry[name] = value.clone();
            }
            route["retry"] = retry;
        }
    }

    fn redirect(&mut self, regex: bool) -> Value {
        let mut redirects = vec![
            json!({"scheme": "https"}),
            json!({"host": "h.example.com", "port": 65_535, "path": "/x", "status": 301}),
            json!({"scheme": "http", "status": 308}),
        ];
        if !regex {
            redirects.extend([json!({"prefix": "/"}), json!({"prefix": "/b"})]);
        }
        self.one(&redirects)
    }

    fn matched(&mut self) -> Value {
        let value =
            |r: &mut Self, name: &str| match r.one(&["Exact", "Prefix", "RegularExpression", "Present"]) {
                "Present" => json!({"name": name, "type": "Present"}),
                "RegularExpression" => {
                    json!({"name": name, "type": "RegularExpression", "value": r.one(&REGEXES)})
                }
                kind => json!({"name": name, "type": kind, "value": r.one(&["a", "50%", "a b"])}),
            };
        self.some(
            60,
            &mut [
                ("path", &mut |r| r.path()),
                ("method", &mut |r| json!(r.one(&["GET", "TRACE"]))),
                ("headers", &mut |r| json!([value(r, "X-Name")])),
                ("queryParams", &mut |r| json!([value(r, "q")])),
            ],
        )
    }
}
