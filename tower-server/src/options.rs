//! What can be set, by flag, environment or file.

mod period;

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;
use serde::Serialize;
use tower_common::{
    process::{self, ProcessOptions},
    telemetry::LogFormat,
};

pub use self::period::{NotAPeriod, Period};
use crate::sources::spec;

/// Watches where services register, and fans what changes out to a beacon-agent on every host.
#[derive(Debug, Clone, Parser, Serialize)]
#[command(name = "tower-server", version)]
#[serde(rename_all = "kebab-case")]
pub struct Options {
    /// A TOML file; its keys are the long names of these flags
    #[arg(long, env = "TOWER_CONFIG", value_name = "FILE")]
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

    /// Where Tower keeps what must survive a restart
    #[arg(long, env = "TOWER_DATA_DIR", value_name = "DIR", default_value = "/var/lib/tower")]
    pub data_dir: PathBuf,

    /// Where Beacons connect
    #[arg(long, env = "TOWER_GRPC_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5870")]
    pub grpc_listen: SocketAddr,

    /// Where the HTTP API, `/metrics`, `/healthz` and `/readyz` are
    #[arg(long, env = "TOWER_HTTP_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:5871")]
    pub http_listen: SocketAddr,

    /// The mesh or region that this Tower serves
    #[arg(long, env = "TOWER_SCOPE", default_value = "default")]
    pub scope: String,

    /// How long endpoints stay published that vanished with most of their service, or of their source,
    /// without having announced it; 0 holds nothing
    #[arg(long, env = "TOWER_GUARD_HOLD", value_name = "TIME", default_value = "60s")]
    pub guard_hold: Period,

    /// Listen beyond loopback without TLS
    #[arg(long, env = "TOWER_INSECURE")]
    pub insecure: bool,

    /// How log lines look
    #[arg(long, env = "TOWER_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,

    /// What is logged, such as `info,tower_server::sources=debug`
    #[arg(long, env = "TOWER_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

impl ProcessOptions for Options {
    fn log(&self) -> (LogFormat, &str) {
        (self.log_format, &self.log)
    }

    fn dump_config(&self) -> bool {
        self.dump_config
    }

    fn check(&self) -> Result<(), String> {
        spec::parse_all(&self.discovery).map_err(|error| error.to_string())?;
        let listeners = [("--grpc-listen", self.grpc_listen), ("--http-listen", self.http_listen)];
        process::check_listeners(&listeners, self.insecure)
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
        assert!(options(&[]).check().is_ok());
        let open = ["--grpc-listen", "0.0.0.0:5870"];
        assert!(options(&open).check().unwrap_err().contains("--grpc-listen 0.0.0.0:5870"));
        assert!(options(&[&open[..], &["--insecure"]].concat()).check().is_ok());
    }
}
