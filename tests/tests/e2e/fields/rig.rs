//! What a document leads to, in an Envoy.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use anyhow::{Context, Result, anyhow};
use prost::Message;
use serde_json::{Value, json};
use tower_common::document::{Document, Effective};
use tower_proto::v1::{
    Bundle, ClusterPart, Kind, ListenerPart, SecretPart, Side, VirtualHostPart, cluster_part::Failover,
};
use tower_server::compile::{compile, messages::to_json};
use tower_tests::{Ask, Envoy, Reply, ports};

use crate::support::SOON;

/// Documents and instances, and then an Envoy of one who calls the services, and runs them.
#[derive(Debug, Default)]
pub(super) struct Rig {
    bundles: Vec<(String, Bundle)>,
    instances: BTreeMap<String, Vec<Instance>>,
}

/// An endpoint of a service.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    address: SocketAddr,
    labels: BTreeMap<String, String>,
    zone: String,
    weight: u32,
}

/// An Envoy with the services.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) envoy: Envoy,
}

impl Instance {
    pub(super) fn at(address: SocketAddr) -> Self {
        Self { address, labels: BTreeMap::new(), zone: String::new(), weight: 1 }
    }

    pub(super) fn label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn zone(self, zone: &str) -> Self {
        Self { zone: zone.to_owned(), ..self }
    }
}

impl Rig {
    /// A service with this `spec`, in YAML, and its instances.
    pub(super) fn service(mut self, name: &str, spec: &str, instances: &[Instance]) -> Result<Self> {
        let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
        let text = format!(
            "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {{name: {name}}}\nspec:\n{spec}"
        );
        let document: Document = serde_saphyr::from_str(&text).with_context(|| text.clone())?;
        let effective = Effective { document, ..Effective::default() };
        let bundle = compile(&effective, name).map_err(|findings| anyhow!("{findings:?}"))?;
        self.bundles.push((name.to_owned(), bundle));
        self.instances.insert(name.to_owned(), instances.to_vec());
        Ok(self)
    }

    /// Starts the Envoy.
    pub(super) async fn start(self) -> Result<Running> {
        let port = ports::free_port();
        let bootstrap = self.bootstrap(port)?;
        let envoy = Envoy::start_with_workers("fields", &bootstrap.to_string(), Some(port), 1).await?;
        envoy.wait_ready(SOON).await?;
        Ok(Running { envoy })
    }

    fn bootstrap(&self, port: u16) -> Result<Value> {
        let (mut clusters, mut hosts, mut listeners, mut secrets) = (vec![], vec![], vec![], vec![]);
        let mut logs = BTreeSet::new();
        let mut routes = BTreeMap::new();
        for (service, bundle) in &self.bundles {
            for part in &bundle.parts {
                let body = part.body.clone();
                match part.kind() {
                    Kind::Cluster => clusters.push(self.cluster(&ClusterPart::decode(body)?)?),
                    Kind::VirtualHost => {
                        let part = VirtualHostPart::decode(body)?;
                        let mut host = to_json("envoy.config.route.v3.VirtualHost", &part.virtual_host)?;
                        if part.side() == Side::Callers {
                            host["domains"] = json!([service, format!("{service}.mesh")]);
                            hosts.push(host);
                            logs.insert(part.access_log.clone());
                        } else {
                            routes.insert(part.route_config.clone(), host);
                        }
                    }
                    Kind::Listener => {
                        let part = ListenerPart::decode(body)?;
                        listeners.push(to_json("envoy.config.listener.v3.Listener", &part.listener)?);
                    }
                    Kind::SecretReference => {
                        let part = SecretPart::decode(body)?;
                        let name = "envoy.extensions.transport_sockets.tls.v3.Secret";
                        secrets.push(to_json(name, &part.secret)?);
                    }
                    _ => {}
                }
            }
        }
        listeners.iter_mut().for_each(|listener| inline(listener, &routes));
        logs.retain(|log| !log.is_empty());
        let logs = logs.iter().map(|log| to_json("envoy.config.accesslog.v3.AccessLog", log));
        listeners.push(egress(port, &hosts, &logs.collect::<Result<Vec<_>, _>>()?));
        Ok(json!({
            "node": {"id": "fields", "cluster": "fields", "locality": {"zone": "a"}},
            "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
            "static_resources": {"clusters": clusters, "listeners": listeners, "secrets": secrets},
        }))
    }

    fn cluster(&self, part: &ClusterPart) -> Result<Value> {
        let mut cluster = to_json("envoy.config.cluster.v3.Cluster", &part.cluster)?;
        if part.endpoints_of.is_empty() {
            return Ok(cluster);
        }
        let instances = self.instances.get(&part.endpoints_of).map(Vec::as_slice).unwrap_or_default();
        let fits = |instance: &&Instance| {
            part.labels.iter().all(|(name, value)| instance.labels.get(name) == Some(value))
        };
        let locality = |instance: &Instance| {
            let tls = instance
                .labels
                .get("tower.inbound.tls")
                .map_or(json!({}), |tls| json!({"envoy.transport_socket_match": {"tower.inbound.tls": tls}}));
            let (ip, port) = (instance.address.ip().to_string(), instance.address.port());
            let near = part.failover() != Failover::Zone || instance.zone == "a";
            json!({
                "locality": {"zone": instance.zone},
                "load_balancing_weight": instance.weight,
                "priority": if near { 0 } else { 1 },
                "lb_endpoints": [{
                    "endpoint": {"address": {"socket_address": {"address": ip, "port_value": port}}},
                    "metadata": {"filter_metadata": tls},
                }],
            })
        };
        cluster["type"] = json!("STATIC");
        cluster["load_assignment"] = json!({
            "cluster_name": cluster["name"],
            "endpoints": instances.iter().filter(fits).map(locality).collect::<Vec<_>>(),
        });
        Ok(cluster)
    }
}

impl Running {
    /// Asks through the egress listener.
    pub(super) async fn ask(&self, ask: &Ask) -> Result<Reply> {
        ask.send(self.envoy.egress()).await
    }
}

/// Puts routes where a listener asks for them.
fn inline(value: &mut Value, routes: &BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            if let Some(rds) = fields.remove("rds") {
                let name = rds["route_config_name"].as_str().unwrap_or_default();
                let hosts: Vec<_> = routes.get(name).into_iter().collect();
                fields.insert("route_config".to_owned(), json!({"name": name, "virtual_hosts": hosts}));
            }
            fields.values_mut().for_each(|value| inline(value, routes));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| inline(value, routes)),
        _ => {}
    }
}

fn egress(port: u16, hosts: &[Value], logs: &[Value]) -> Value {
    let extension = "type.googleapis.com/envoy.extensions.filters";
    json!({
        "name": "egress",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": format!("{extension}.network.http_connection_manager.v3.HttpConnectionManager"),
                "stat_prefix": "egress",
                "stream_idle_timeout": "0s",
                "access_log": logs,
                "server_header_transformation": "PASS_THROUGH",
                "route_config": {"name": "egress", "ignore_port_in_host_matching": true, "virtual_hosts": hosts},
                "http_filters": [
                    {"name": "envoy.filters.http.local_ratelimit", "typed_config": {
                        "@type": format!("{extension}.http.local_ratelimit.v3.LocalRateLimit"),
                        "stat_prefix": "egress",
                    }},
                    {"name": "envoy.filters.http.router", "typed_config": {
                        "@type": format!("{extension}.http.router.v3.Router"),
                    }},
                ],
            },
        }]}],
    })
}
