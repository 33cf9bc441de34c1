//! What can be set, by flag, environment or file.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::BoolishValueParser};
use http::uri::Authority;
use serde::Serialize;
use tower_common::{
    check, config,
    process::{CHECK_CONFIG_HELP, ProcessOptions},
    telemetry::LogFormat,
    tls::{ClientFiles, ClientTls, TlsFile},
};
use tower_proto::v1;

/// What to do about what has no TLS.
const TRUST: &str = "--insecure if the network between them is to be trusted";

/// Mirrors Tower's store on this host, and serves it to the local Envoys by xDS.
#[derive(Debug, Clone, Parser, Serialize)]
#[command(
    name = "beacon-agent",
    version,
    after_help = CHECK_CONFIG_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
#[serde(rename_all = "kebab-case")]
pub struct Options {
    /// A TOML file; its keys are the long names of these flags
    #[arg(long, env = "BEACON_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Print the effective configuration as such a file, and exit
    #[arg(long)]
    #[serde(skip)]
    pub dump_config: bool,

    /// Towers, of which one is used at a time
    #[arg(
        long,
        env = "BEACON_TOWER",
        value_name = "HOST:PORT",
        value_delimiter = ',',
        required = true,
        value_parser = host_and_port
    )]
    pub tower: Vec<String>,

    /// Beyond so many services, all of which each Envoy is served, the Beacon warns
    #[arg(long, env = "BEACON_WARN_SERVICES", value_name = "COUNT", default_value_t = 500)]
    pub warn_services: usize,

    /// Who this host is; default is the first name in its certificate, or else its host name
    #[arg(long, env = "BEACON_NODE_ID")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,

    /// A service that runs on this host; may be repeated
    #[arg(long, env = "BEACON_WORKLOAD", value_name = "SERVICE[/CLUSTER]", value_delimiter = ',')]
    pub workload: Vec<String>,

    /// The zone that this host is in
    #[arg(long, env = "BEACON_ZONE", default_value = "")]
    pub zone: String,

    /// A label of this host; may be repeated
    #[arg(long, env = "BEACON_LABEL", value_name = "KEY=VALUE", value_delimiter = ',')]
    pub label: Vec<String>,

    /// Where Envoys connect
    #[arg(long, env = "BEACON_XDS_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5872")]
    pub xds_listen: SocketAddr,

    /// A Unix socket on which Envoys can connect as well; mode 0660, removed at the end
    #[arg(long, env = "BEACON_XDS_SOCKET", value_name = "PATH")]
    pub xds_socket: Option<PathBuf>,

    /// A folder with Envoy's resources of the types SDS, RTDS, ECDS and SRDS, as YAML or JSON
    #[arg(long, env = "BEACON_STATIC_RESOURCES", value_name = "DIR")]
    pub static_resources: Option<PathBuf>,

    /// Where `/ready`, `/metrics` and the status pages are
    #[arg(long, env = "BEACON_ADMIN_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5873")]
    pub admin_listen: SocketAddr,

    /// Where Envoys listen for calls that leave the host; an Envoy's node metadata `tower.egress_port`
    /// overrides the port
    #[arg(long, env = "BEACON_EGRESS_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5875")]
    pub egress_listen: SocketAddr,

    /// Where the snapshot is kept
    #[arg(long, env = "BEACON_DATA_DIR", value_name = "DIR", default_value = "/var/lib/beacon")]
    pub data_dir: PathBuf,

    /// A PEM file with the CAs of Towers' certificates. With it Towers are connected to by TLS, and must
    /// be named in their certificates as in `--tower`. The files of all three flags are read again when
    /// they change
    #[arg(long, env = "BEACON_TLS_CA", value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,

    /// A PEM file with this host's certificate and those between it and its CA, for Towers that ask for
    /// one
    #[arg(long, env = "BEACON_TLS_CERT", value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,

    /// A PEM file with the key of that certificate
    #[arg(long, env = "BEACON_TLS_KEY", value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,

    /// The mesh or region that this host belongs to
    #[arg(long, env = "BEACON_SCOPE", default_value = "default")]
    pub scope: String,

    /// Listen beyond loopback, where there is no TLS, and connect to Towers there without TLS if
    /// `--tls-ca` is not given
    #[arg(long, env = "BEACON_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,

    /// How log lines look
    #[arg(long, env = "BEACON_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,

    /// What is logged, such as `info,beacon_agent::xds=debug`
    #[arg(long, env = "BEACON_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,

    /// What to do instead of running
    #[command(subcommand)]
    #[serde(skip)]
    pub command: Option<Command>,
}

/// What to do instead of running.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Print a bootstrap configuration for an Envoy, or gRPC, on this host
    Bootstrap(BootstrapOptions),

    /// Wait until the Beacon of this host is ready, so that what needs it can be started in order
    Wait(WaitOptions),
}

/// What to wait for.
#[derive(Debug, Clone, Args)]
pub struct WaitOptions {
    /// How long, such as `500ms`, `60s` or `2m`
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = config::duration)]
    pub timeout: Duration,

    /// The Beacon's admin address
    #[arg(long, env = "BEACON_ADMIN_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5873")]
    pub admin: SocketAddr,

    /// The admin address of an Envoy that shall be ready as well
    #[arg(long, value_name = "ADDRESS")]
    pub envoy: Option<SocketAddr>,
}

/// What an Envoy must know before it can ask.
#[derive(Debug, Clone, Args)]
pub struct BootstrapOptions {
    /// The client's node id
    #[arg(long, default_value_t = host_name())]
    pub node_id: String,

    /// The Envoy's node cluster
    #[arg(long, default_value = "egress")]
    pub node_cluster: String,

    /// Where the Beacon serves xDS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5872")]
    pub xds_address: SocketAddr,

    /// The Unix socket on which the Beacon serves xDS; used instead of the address
    #[arg(long, value_name = "PATH", conflicts_with = "xds_address")]
    pub xds_socket: Option<PathBuf>,

    /// What asks, and how
    #[arg(long, value_enum, default_value = "delta")]
    pub mode: XdsMode,

    /// Where the Envoy's own admin page is; 0 takes any port
    #[arg(long, value_name = "PORT", default_value_t = 5874)]
    pub admin_port: u16,

    /// The service whose instances share this Envoy's zones with it, for routing that prefers a zone
    #[arg(long, value_name = "SERVICE")]
    pub local_service: Option<String>,

    /// The zone that this Envoy is in
    #[arg(long, default_value = "")]
    pub zone: String,

    /// Where this Envoy listens for calls that leave the host, if not where the Beacon says
    #[arg(long, value_name = "PORT")]
    pub egress_port: Option<u16>,
}

/// The four ways of xDS, and a client of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum XdsMode {
    /// Only what changed; all types on one stream, in order.
    Delta,
    /// State of the world; all types on one stream, in order.
    Sotw,
    /// Only what changed; a stream for each type.
    DeltaPerType,
    /// State of the world; a stream for each type.
    SotwPerType,
    /// Not an Envoy, but gRPC without a proxy: what GRPC_XDS_BOOTSTRAP points to.
    Grpc,
}

impl ProcessOptions for Options {
    fn log(&self) -> (LogFormat, &str) {
        (self.log_format, &self.log)
    }

    fn dump_config(&self) -> bool {
        self.dump_config
    }

    fn faults(&self) -> Vec<String> {
        if self.command.is_some() {
            return Vec::new();
        }
        let mut faults = Vec::new();
        if self.node_id.as_deref().unwrap_or(&host_name()).is_empty() {
            faults.push("--node-id is empty, and this host has no name".to_owned());
        }
        faults.extend(self.node().err());
        let listeners = [
            ("--xds-listen", self.xds_listen),
            ("--admin-listen", self.admin_listen),
            ("--egress-listen", self.egress_listen),
        ];
        faults.extend(check::same_address(&listeners));
        let tls = self.tls();
        if !self.insecure {
            faults.extend(check::beyond_loopback(&listeners, TRUST));
            let open = self.tower.iter().filter(|tower| !is_local(tower) && matches!(tls, Ok(None)));
            faults.extend(open.map(|tower| {
                format!("--tower {tower} is another host, and there is no TLS; give --tls-ca, or {TRUST}")
            }));
        }
        faults.extend(tls.err());
        faults
    }

    fn faults_of_host(&self) -> Vec<String> {
        if self.command.is_some() {
            return Vec::new();
        }
        let mut faults: Vec<_> = check::data_dir("--data-dir", &self.data_dir).into_iter().collect();
        match self.tls().ok().flatten().map(|files| check::tls(&files)) {
            Some(Err(fault)) => faults.push(fault),
            Some(Ok(ClientTls { certificate: Some(certificate), .. })) => {
                let other = self.node_id.as_ref().filter(|id| !certificate.is_for(id));
                faults.extend(other.map(|id| {
                    format!("--node-id {id}, and --tls-cert is for {}", certificate.names().join(", "))
                }));
            }
            _ => {}
        }
        faults
    }
}

impl Options {
    /// The files for TLS, if that is wanted.
    ///
    /// # Errors
    /// If one is missing.
    pub fn tls(&self) -> Result<Option<ClientFiles>, String> {
        let identity = TlsFile::pair(self.tls_cert.as_deref(), self.tls_key.as_deref())?;
        match &self.tls_ca {
            Some(path) => Ok(Some(ClientFiles { ca: TlsFile::new("--tls-ca", path), identity })),
            None if identity.is_some() => {
                Err("--tls-cert is given without --tls-ca, which says whom to trust".to_owned())
            }
            None => Ok(None),
        }
    }

    /// How this Beacon introduces itself, if its certificate does not name it.
    ///
    /// # Errors
    /// If a label or workload is malformed.
    pub fn node(&self) -> Result<v1::Node, String> {
        let labels = self.label.iter().map(|label| match label.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(format!("--label {label:?} is not KEY=VALUE")),
        });
        let workloads = self.workload.iter().map(|workload| {
            let (service, cluster) = workload.split_once('/').unwrap_or((workload, ""));
            if service.is_empty() {
                return Err(format!("--workload {workload:?} is not SERVICE[/CLUSTER]"));
            }
            Ok(v1::Workload { service: service.to_owned(), cluster: cluster.to_owned() })
        });
        Ok(v1::Node {
            id: self.node_id.clone().unwrap_or_else(host_name),
            zone: self.zone.clone(),
            labels: labels.collect::<Result<BTreeMap<_, _>, _>>()?,
            workloads: workloads.collect::<Result<_, _>>()?,
            build: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn host_and_port(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not HOST:PORT, with brackets around an IPv6 address");
    let authority: Authority = text.parse().map_err(|_| wrong())?;
    // An authority may name a user before the host.
    let whole = !text.contains('@') && authority.port_u16().is_some_and(|port| port > 0);
    if whole && !authority.host().is_empty() { Ok(text.to_owned()) } else { Err(wrong()) }
}

fn is_local(tower: &str) -> bool {
    let host = tower.rsplit_once(':').map_or(tower, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Result<Options, String> {
        let options: Options =
            config::parse_from([&["beacon-agent"], args].concat()).map_err(|error| error.to_string())?;
        let faults = options.faults();
        if faults.is_empty() { Ok(options) } else { Err(faults.join("; ")) }
    }

    #[test]
    fn a_node_introduces_itself() {
        let args = ["--tower", "localhost:1,[::1]:2", "--workload", "web/eu", "--label", "a=b=c"];
        let options = options(&args).unwrap();
        assert_eq!(options.tower, ["localhost:1", "[::1]:2"]);
        let node = options.node().unwrap();
        assert_eq!(node.labels["a"], "b=c");
        assert_eq!((node.workloads[0].service.as_str(), node.workloads[0].cluster.as_str()), ("web", "eu"));
    }

    #[test]
    fn wrong_flags_are_named() {
        let check = |args: &[&str], message: &str| {
            let error = options(args).unwrap_err();
            assert!(error.contains(message), "{error:?} does not contain {message:?}");
        };
        check(&[], "--tower <HOST:PORT>");
        check(&["--tower", "nowhere"], "is not HOST:PORT");
        for tower in ["h:0", "http://localhost:5870", "::1:5870", "a:b:c:1", "loc/al@h:1", "me@h:1", ":1"] {
            check(&["--tower", tower], "is not HOST:PORT");
        }
        check(&["--tower", "localhost:1", "--egress-listen", "0.0.0.0:5875"], "--egress-listen 0.0.0.0:5875");
        check(&["--tower", "tower.example:5870"], "--tower tower.example:5870 is another host");
        check(&["--tower", "localhost:1", "--label", "a"], "--label \"a\" is not KEY=VALUE");
        check(&["--tower", "localhost:1", "--workload", "/x"], "--workload \"/x\"");
        check(&["--tower", "localhost:1", "--xds-listen", "0.0.0.0:1"], "--xds-listen 0.0.0.0:1");
        let tls = ["--tower", "tower.example:1", "--tls-ca", "/ca"];
        check(&[&tls[..], &["--tls-cert", "/c"]].concat(), "--tls-cert is given without --tls-key");
        check(&[&tls[..], &["--xds-listen", "0.0.0.0:1"]].concat(), "is without TLS");
        check(
            &["--tower", "localhost:1", "--tls-cert", "/c", "--tls-key", "/k"],
            "--tls-cert is given without --tls-ca",
        );
    }

    #[test]
    fn other_hosts_are_reached_by_tls() {
        assert!(options(&["--tower", "tower.example:5870", "--tls-ca", "/ca"]).is_ok());
        assert!(options(&["--tower", "tower.example:5870", "--insecure"]).is_ok());
    }

    #[test]
    fn a_subcommand_needs_no_tower() {
        assert!(matches!(options(&["bootstrap"]).unwrap().command, Some(Command::Bootstrap(_))));
        let wait = options(&["wait", "--timeout", "2m"]).unwrap().command;
        assert!(matches!(wait, Some(Command::Wait(wait)) if wait.timeout == Duration::from_secs(120)));
    }
}
