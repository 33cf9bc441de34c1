//! Logs and metrics, as every process has them.

use std::{
    fmt, fs,
    io::{self, IsTerminal},
};

use clap::ValueEnum;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::{Registry, Unit},
};
use serde::Serialize;
use tracing_subscriber::{EnvFilter, filter::ParseError};

/// The media type of [`encode`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Checks a filter without using it.
///
/// # Errors
/// If it is not one.
pub fn check_filter(filter: &str) -> Result<(), ParseError> {
    EnvFilter::builder().parse(filter).map(drop)
}

/// Starts logging to standard error.
///
/// # Errors
/// If the filter is not one, such as `info` or `info,tower_server::sources=debug`.
pub fn init_logging(format: LogFormat, filter: &str) -> Result<(), ParseError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::builder().parse(filter)?)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}

/// A registry with what every process says of itself: `build`, `process_…`.
pub fn registry(version: &'static str) -> Registry {
    let mut registry = Registry::default();
    registry.register("build", "What runs here", Info::new(vec![("version", version)]));
    registry.register_collector(Box::new(Process));
    registry
}

/// The registry in the OpenMetrics text format, which Prometheus reads.
pub fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).expect("a string takes all");
    text
}

/// What Linux knows of this process.
#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        // Elsewhere than on Linux there is nothing to tell.
        let Some(usage) = usage() else { return Ok(()) };
        let memory = ConstGauge::new(usage.resident_bytes);
        memory.encode(encoder.encode_descriptor(
            "process_resident_memory",
            "Resident memory",
            Some(&Unit::Bytes),
            memory.metric_type(),
        )?)?;
        let cpu = ConstCounter::new(usage.cpu_seconds);
        cpu.encode(encoder.encode_descriptor(
            "process_cpu",
            "User and system CPU time",
            Some(&Unit::Seconds),
            cpu.metric_type(),
        )?)
    }
}

struct Usage {
    resident_bytes: i64,
    cpu_seconds: f64,
}

fn usage() -> Option<Usage> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let resident_kib: i64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
    // proc(5): utime and stime are the fields 14 and 15, in ticks of 1/100 s; the second field may
    // contain spaces, and ends with the last parenthesis.
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let ticks: f64 = ticks.collect::<Result<Vec<_>, _>>().ok()?.iter().sum();
    Some(Usage { resident_bytes: resident_kib * 1024, cpu_seconds: ticks / 100.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_of_itself() {
        let text = encode(&registry("1.2.3"));
        assert!(text.contains("build_info{version=\"1.2.3\"} 1"), "{text}");
        assert!(text.contains("process_resident_memory_bytes "), "{text}");
        assert!(text.contains("process_cpu_seconds_total "), "{text}");
    }
}
