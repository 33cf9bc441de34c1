//! What a control plane pays for proxies beside each pod, and for one on each node: the comparison that Cilium
//! makes, with Tower in its place.

use std::fmt::Write;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    churn::{self, Rate},
    document::number,
    figures::{Figure, Report, machine},
    fleet::Beacons,
    machine::allow_files,
    mesh::Size,
};

/// Pods of each node.
const PODS: usize = 30;

/// Endpoints of each service; each pod is one.
const OF_A_SERVICE: usize = 10;

/// Sizes of clusters, in nodes.
const NODES: [usize; 2] = [500, 5000];

/// Pods that come or go on each node, each minute.
const CHURN: [usize; 2] = [1, 20];

/// A line of the table.
#[derive(Debug)]
pub struct Row {
    /// Nodes.
    pub nodes: usize,
    /// Events a minute on each of them.
    pub per_minute: usize,
    /// A stream for each pod, and not for each node.
    pub sidecars: bool,
    /// What Tower pays.
    pub cost: Cost,
}

/// What Tower pays for so many streams.
#[derive(Debug)]
pub enum Cost {
    /// This was measured, with all streams.
    Measured(Report),
    /// They do not fit on the machine: measured at the same rate with so many streams of the same mesh, and
    /// multiplied.
    Computed {
        /// Streams that were measured.
        streams: usize,
        /// Cores.
        cores: f64,
        /// Gigabytes a second.
        traffic: f64,
    },
}

impl Row {
    fn streams(&self) -> usize {
        streams(self.nodes, self.sidecars)
    }
}

fn streams(nodes: usize, sidecars: bool) -> usize {
    if sidecars { nodes * PODS } else { nodes }
}

/// Events each second, to the nearest.
fn rate(nodes: usize, per_minute: usize) -> u32 {
    u32::try_from((nodes * per_minute + 30) / 60).unwrap_or(u32::MAX)
}

/// Measures what fits on this machine, for so many seconds each, and computes the rest.
///
/// # Errors
/// If a Beacon ends up with something else than Tower has, or something does not work.
pub async fn run(runs: usize, seconds: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for nodes in NODES {
        let size = Size { services: nodes * PODS / OF_A_SERVICE, endpoints: OF_A_SERVICE };
        for per_minute in CHURN {
            let rate = Rate { rate: rate(nodes, per_minute), seconds };
            let beacons = measure(runs, streams(nodes, false), size, rate).await?;
            let cost = if allow_files(streams(nodes, true)).is_ok() {
                Cost::Measured(measure(runs, streams(nodes, true), size, rate).await?)
            } else {
                multiplied(&beacons, nodes)
            };
            rows.push(Row { nodes, per_minute, sidecars: true, cost });
            rows.push(Row { nodes, per_minute, sidecars: false, cost: Cost::Measured(beacons) });
        }
    }
    Ok(rows)
}

async fn measure(runs: usize, streams: usize, size: Size, rate: Rate) -> Result<Report> {
    let mut report = Report::new("cilium", runs);
    churn::run(&mut report, Beacons { beacons: streams, tls: false }, size, rate).await?;
    Ok(report)
}

fn multiplied(measured: &Report, nodes: usize) -> Cost {
    let times = |figure| measured.get(figure).map_or(0.0, |figure| figure.median) * PODS as f64;
    Cost::Computed { streams: nodes, cores: times("tower_cores"), traffic: times("wire_gb_per_s") }
}

/// A section of the page, below a heading of its own.
pub fn render(rows: &[Row]) -> String {
    let mut page = format!(
        "## A proxy for each pod, and for each node\n\nThomas Graf compared one Envoy for each node with one \
         beside each pod at EnvoyCon 2019 (\"Envoy Namespaces - Operating an Envoy-based Service Mesh at a \
         Fraction of the Cost\"), and later in the article \"How eBPF will solve Service Mesh - Goodbye \
         Sidecars\": 500 nodes of 30 pods are 15,000 proxies or 500, and so many times the memory. Here is what \
         that means for the control plane, if Tower is it: a stream for each pod, or a Beacon on each node, while \
         pods come and go. All streams carry everything. The mesh has an endpoint for each pod, \
         {OF_A_SERVICE} to a service.\n\n\
         What is *computed* does not fit on this machine: it is what was measured with one stream for each node \
         at the same rate, times {PODS}. A Tower that is busier for that sends less often and more at once, so \
         that it may pay less, and be later.\n\n    tower-bench cilium\n\n\
         | nodes | events a minute and node | streams | Tower, cores | on the wire, GB/s | p99, ms | |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let Row { nodes, per_minute, sidecars, cost } = row;
        let whose = if *sidecars { "one for each pod" } else { "one for each node" };
        let [cores, traffic, latency, how] = match cost {
            Cost::Measured(report) => {
                let cell = |figure| report.get(figure).map_or_else(String::new, spread);
                let figures = ["tower_cores", "wire_gb_per_s", "p99_ms"].map(cell);
                let [cores, traffic, latency] = figures;
                [cores, traffic, latency, "measured".to_owned()]
            }
            Cost::Computed { streams, cores, traffic } => {
                let how = format!("*computed* from {streams} streams");
                [format!("*{}*", number(*cores)), format!("*{}*", fine(*traffic)), String::new(), how]
            }
        };
        let streams = row.streams();
        let _ = writeln!(
            page,
            "| {nodes} | {per_minute} | {streams}, {whose} | {cores} | {traffic} | {latency} | {how} |"
        );
    }
    page
}

fn spread(Figure { median, least, most, .. }: Figure) -> String {
    if least == most {
        return fine(median);
    }
    format!("{} ({} to {})", fine(median), fine(least), fine(most))
}

/// Two digits after the point do not tell small traffic from none.
fn fine(value: f64) -> String {
    if value < 0.1 { format!("{value:.4}") } else { number(value) }
}

/// All that was measured and computed.
pub fn object(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        let mut object = json!({
            "nodes": row.nodes, "events_per_minute_and_node": row.per_minute, "streams": row.streams(),
            "events_per_s": rate(row.nodes, row.per_minute), "sidecars": row.sidecars,
        });
        match &row.cost {
            Cost::Measured(report) => {
                object["measured"] = true.into();
                for (name, figure) in report.all() {
                    object[name] = figure.median.into();
                    object["spread"][name] = json!([figure.least, figure.most]);
                }
            }
            Cost::Computed { streams, cores, traffic } => {
                object["measured"] = false.into();
                object["computed_from_streams"] = (*streams).into();
                object["tower_cores"] = (*cores).into();
                object["wire_gb_per_s"] = (*traffic).into();
            }
        }
        object
    };
    json!({ "scenario": "cilium", "machine": machine(), "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_is_marked() {
        let mut report = Report::new("cilium", 1);
        report.note("tower_cores", 0.5);
        report.note("wire_gb_per_s", 0.25);
        let computed = multiplied(&report, 5000);
        let rows = [
            Row { nodes: 5000, per_minute: 20, sidecars: true, cost: computed },
            Row { nodes: 5000, per_minute: 20, sidecars: false, cost: Cost::Measured(report) },
        ];
        let page = render(&rows);
        let of_pods =
            "| 5000 | 20 | 150000, one for each pod | *15.0* | *7.50* |  | *computed* from 5000 streams |";
        assert!(page.contains(of_pods), "{page}");
        assert!(
            page.contains("| 5000 | 20 | 5000, one for each node | 0.50 | 0.25 |  | measured |"),
            "{page}"
        );
        let object = object(&rows);
        assert_eq!(
            (&object["rows"][0]["events_per_s"], &object["rows"][0]["measured"]),
            (&json!(1667), &json!(false))
        );
        assert_eq!(object["rows"][1]["tower_cores"], 0.5);
    }

    #[test]
    fn rates_are_those_of_whole_clusters() {
        assert_eq!([rate(500, 1), rate(500, 20), rate(5000, 1), rate(5000, 20)], [8, 167, 83, 1667]);
    }
}
