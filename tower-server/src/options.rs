//! What can be set, by flag, environment or file.

mod period;
mod serve;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand, builder::BoolishValueParser};
use serde::Serialize;
use tower_common::{
    check,
    process::{CHECK_CONFIG_HELP, ProcessOptions},
    served::Served,
    telemetry::LogFormat,
    tls::{ServerFiles, TlsFile},
};

pub use self::{
    period::{NotAPeriod, Period},
    serve::NotServed,
};
use crate::{
    event_log::{self, command::LogCommand, target::NotATarget},
    sources::spec,
};

/// What to do about a listener that other hosts can reach.
const SECURE: &str =
    "give --tls-cert and --tls-key, or --insecure if the network between them is to be trusted";

/// Watches where services register, and fans what changes out to a beacon-agent on every host.
#[derive(Debug, Clone, Parser, Serialize)]
#[command(name = "tower-server", version, after_help = CHECK_CONFIG_HELP, subcommand_negates_reqs = true)]
#[serde(rename_all = "kebab-case")]
pub struct Options {
    /// A TOML file; its keys are the long names of these flags
    #[arg(long, env = "TOWER_CONFIG", value_name = "FILE", global = true)]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Print the effective configuration as such a file, and exit
    #[arg(long)]
    #[serde(skip)]
    pub dump_config: bool,

    /// Where services register; may be repeated. A ZooKeeper ensemble,
    /// `zk://h1:2181,h2:2181/discovery/{service}/prod?format=serverset`, or a folder of YAML files,
    /// `file:///etc/tower/endpoints`
    #[arg(long, env = "TOWER_DISCOVERY", value_name = "URL", value_delimiter = ' ', required = true)]
    pub discovery: Vec<String>,

    /// Which services Beacons are sent: `all`, `none`, or those named here, with commas between them; may
    /// be repeated. The others are watched and shown
    #[arg(long, env = "TOWER_SERVE", value_name = "all|none|LIST", default_value = "all")]
    pub serve: Vec<String>,

    /// Beyond so many services, all of which each Beacon is sent, Tower warns
    #[arg(long, env = "TOWER_WARN_SERVICES", value_name = "COUNT", default_value_t = 500)]
    pub warn_services: usize,

    /// Where the event log is: `embedded` in the data folder, for one Tower, or in a ZooKeeper ensemble, for
    /// any number of Towers: `zk://h1:2181,h2:2181/tower`, or `zks://` by TLS
    #[arg(long, env = "TOWER_EVENT_LOG", value_name = "LOG", default_value = "embedded", global = true)]
    pub event_log: String,

    /// Where Tower keeps what must survive a restart
    #[arg(long, env = "TOWER_DATA_DIR", value_name = "DIR", default_value = "/var/lib/tower", global = true)]
    pub data_dir: PathBuf,

    /// Where Beacons connect
    #[arg(long, env = "TOWER_GRPC_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5870")]
    pub grpc_listen: SocketAddr,

    /// Where the HTTP API, `/metrics`, `/healthz` and `/readyz` are
    #[arg(long, env = "TOWER_HTTP_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5871")]
    pub http_listen: SocketAddr,

    /// A PEM file with this Tower's certificate and those between it and its CA. With it Beacons connect
    /// by TLS, and so do clients of HTTP unless `--http-listen` is on loopback. The files of all three
    /// flags are read again when they change
    #[arg(long, env = "TOWER_TLS_CERT", value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,

    /// A PEM file with the key of that certificate
    #[arg(long, env = "TOWER_TLS_KEY", value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,

    /// A PEM file with the CAs of Beacons' certificates. With it a Beacon needs one, and its node id must
    /// be a name in it
    #[arg(long, env = "TOWER_TLS_CLIENT_CA", value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_client_ca: Option<PathBuf>,

    /// The mesh or region that this Tower serves
    #[arg(long, env = "TOWER_SCOPE", default_value = "default")]
    pub scope: String,

    /// How long endpoints stay published that vanished with most of their service, or of their source,
    /// without having announced it; 0 holds nothing
    #[arg(long, env = "TOWER_GUARD_HOLD", value_name = "TIME", default_value = "60s")]
    pub guard_hold: Period,

    /// How old a stream gets, give or take half, before its Beacon is sent to the next Tower, so that Towers
    /// share the load again after one was away
    #[arg(long, env = "TOWER_STREAM_AGE", value_name = "TIME", default_value = "1h", hide = true)]
    pub stream_age: Period,

    /// Listen beyond loopback without TLS
    #[arg(long, env = "TOWER_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,

    /// How log lines look
    #[arg(long, env = "TOWER_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,

    /// What is logged, such as `info,tower_server::sources=debug`
    #[arg(long, env = "TOWER_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,

    /// What to do instead of running
    #[command(subcommand)]
    #[serde(skip)]
    pub command: Option<Command>,
}

/// What to do instead of running.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Export, import or verify the event log
    #[command(subcommand)]
    Log(LogCommand),
}

impl ProcessOptions for Options {
    fn log(&self) -> (LogFormat, &str) {
        (self.log_format, &self.log)
    }

    fn dump_config(&self) -> bool {
        self.dump_config
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        faults.extend(spec::parse_all(&self.discovery).err().map(|fault| fault.to_string()));
        faults.extend(self.served().err().map(|fault| fault.to_string()));
        faults.extend(self.event_log().err().map(|fault| format!("--event-log: {fault}")));
        let listeners = [("--grpc-listen", self.grpc_listen), ("--http-listen", self.http_listen)];
        faults.extend(check::same_address(&listeners));
        match self.tls() {
            Err(fault) => faults.push(fault),
            Ok(None) if !self.insecure => faults.extend(check::beyond_loopback(&listeners, SECURE)),
            Ok(_) => {}
        }
        faults
    }

    fn faults_of_host(&self) -> Vec<String> {
        let tls = self.tls().ok().flatten().and_then(|files| check::tls(&files).err());
        check::data_dir("--data-dir", &self.data_dir).into_iter().chain(tls).collect()
    }
}

impl Options {
    /// Which services Beacons are sent.
    ///
    /// # Errors
    /// If `--serve` does not say so.
    pub fn served(&self) -> Result<Served, NotServed> {
        serve::parse(&self.serve)
    }

    /// Where the event log is.
    ///
    /// # Errors
    /// If it is neither of the two kinds that there are.
    pub fn event_log(&self) -> Result<event_log::Target, NotATarget> {
        self.event_log.parse()
    }

    /// The files for TLS, if that is wanted.
    ///
    /// # Errors
    /// If one is missing.
    pub fn tls(&self) -> Result<Option<ServerFiles>, String> {
        let client_ca = self.tls_client_ca.as_ref().map(|path| TlsFile::new("--tls-client-ca", path));
        match TlsFile::pair(self.tls_cert.as_deref(), self.tls_key.as_deref())? {
            Some((cert, key)) => Ok(Some(ServerFiles { cert, key, client_ca })),
            None if client_ca.is_some() => {
                Err("--tls-client-ca is given without --tls-cert and --tls-key".to_owned())
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use tower_common::config;

    use super::*;

    fn options(args: &[&str]) -> Options {
        let always = ["tower-server", "--discovery", "file:///tmp/endpoints"];
        config::parse_from([&always, args].concat()).unwrap()
    }

    #[test]
    fn other_hosts_are_let_in_only_on_purpose() {
        assert!(options(&[]).faults().is_empty());
        let open = ["--grpc-listen", "0.0.0.0:5870"];
        assert!(options(&open).faults()[0].contains("--grpc-listen 0.0.0.0:5870"));
        assert!(options(&[&open[..], &["--insecure"]].concat()).faults().is_empty());
        let tls = ["--tls-cert", "/c.pem", "--tls-key", "/k.pem"];
        assert!(options(&[&open[..], &tls].concat()).faults().is_empty());
    }

    #[test]
    fn services_are_named_by_flag_or_file_and_printed_as_they_are_read() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, b"serve = ['web,ads', 'api']").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let both = options(&["--serve", "web,ads", "--serve", "api"]);
        let read = options(&["--config", &path]);
        assert_eq!(read.served(), both.served());
        assert!(both.served().unwrap().serves("ads") && !both.served().unwrap().serves("all"));
        assert!(config::dump(&both).unwrap().contains("serve = [\"web,ads\", \"api\"]"));
        assert_eq!(options(&[]).served(), Ok(Served::All));
        assert!(options(&["--serve", "web,all"]).faults()[0].contains("--serve: \"all\" stands alone"));
    }

    #[test]
    fn the_event_log_is_of_a_known_kind() {
        assert_eq!(options(&[]).event_log(), Ok(event_log::Target::Embedded));
        assert!(options(&["--event-log", "zk://h:2181/tower"]).faults().is_empty());
        let faults = options(&["--event-log", "zk://h:2181"]).faults();
        assert!(faults[0].starts_with("--event-log: \"zk://h:2181\": path: missing"), "{faults:?}");
    }

    #[test]
    fn a_command_needs_nothing_else() {
        let args = ["tower-server", "log", "verify", "--from", "7", "--data-dir", "/d"];
        let options: Options = config::parse_from(args).unwrap();
        assert!(matches!(options.command, Some(Command::Log(LogCommand::Verify { from: 7 }))));
        assert_eq!(options.data_dir, PathBuf::from("/d"));
    }

    #[test]
    fn tls_needs_its_files_together() {
        let check = |args: &[&str], message: &str| {
            let error = options(args).faults().join("; ");
            assert!(error.contains(message), "{error:?} does not contain {message:?}");
        };
        check(&["--tls-cert", "/c.pem"], "--tls-cert is given without --tls-key");
        check(&["--tls-key", "/k.pem"], "--tls-key is given without --tls-cert");
        check(&["--tls-client-ca", "/ca.pem"], "--tls-client-ca is given without --tls-cert");
    }
}
