//! What was measured of the peers, for people and for machines.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::{
    document::{Target, number},
    figures::{Figure, Report, machine},
    mesh::Size,
};

/// The column of Tower.
pub const TOWER: &str = "Tower";

/// The column of NATS.
pub const NATS: &str = "nats-server";

/// The column that the targets name.
const LINEAR: &str = "go-control-plane, linear";

/// What is shown of each server; of each the least is best.
const ROWS: [(&str, &str, &str); 8] = [
    ("wire_bytes_per_delivery", "bytes on the wire, each client", ""),
    ("cpu_us_per_delivery", "the server's CPU, each client", "µs"),
    ("cpu_us_per_delivery_with_answers", "the same, until all is answered", "µs"),
    ("first_ms", "first client", "ms"),
    ("p50_ms", "half of the clients", "ms"),
    ("last_ms", "last client", "ms"),
    ("bytes_per_client", "the server's memory, each client", "bytes"),
    ("client_cpu_us_per_delivery", "CPU of a client", "µs"),
];

/// The last row is not the servers' merit.
const SERVER_ROWS: usize = 7;

/// Servers with as many clients, and the same mesh.
#[derive(Debug)]
pub struct Case {
    /// Of each server.
    pub clients: usize,
    /// The mesh.
    pub size: Size,
    /// What was measured of each server, by its name.
    pub columns: Vec<(String, Report)>,
}

impl Case {
    fn title(&self) -> String {
        let Self { clients, size: Size { services, endpoints }, .. } = self;
        format!("{clients} clients, {services} services of {endpoints} endpoints")
    }

    fn get(&self, server: &str, figure: &str) -> Option<Figure> {
        self.columns.iter().find(|(name, _)| name == server)?.1.get(figure)
    }

    /// How many times the other's figure Tower's is.
    fn over(&self, server: &str, figure: &str) -> Option<f64> {
        Some(self.get(TOWER, figure)?.median / self.get(server, figure)?.median)
    }
}

/// What Tower's figures are to be, as shares of the others'.
pub fn targets(cases: &[Case]) -> Vec<Target> {
    let large = cases.iter().max_by_key(|case| case.size.endpoints);
    let many = cases.iter().max_by_key(|case| case.clients);
    let target = |case: Option<&Case>, what: &str, server: &str, figure: &str, at_most: f64| Target {
        what: match case {
            Some(case) => format!("Tower's {what} over that of {server}; {}", case.title()),
            None => format!("Tower's {what} over that of {server}"),
        },
        measured: case.and_then(|case| case.over(server, figure)),
        at_most,
        unit: "times",
    };
    vec![
        target(large, "traffic", LINEAR, "wire_bytes_per_delivery", 0.05),
        target(large, "CPU", LINEAR, "cpu_us_per_delivery", 0.1),
        target(many, "CPU", NATS, "cpu_us_per_delivery", 1.0),
        target(many, "last client", NATS, "last_ms", 1.0),
    ]
}

/// A section of the page, below a heading of its own.
pub fn render(cases: &[Case]) -> String {
    let mut page = String::from(
        "## Peers\n\nOne endpoint of one service comes, and all clients are to have it. Each server serves the \
         same mesh to as many clients, one server after the other in each run; the clients share one thread and \
         the machine with it, and are written the same way, by hand. The best of a row is bold.\n\n\
         - Tower reads the endpoint from ZooKeeper, and its latency includes that; its Beacons check all they \
         receive, and report. The others are told directly.\n\
         - go-control-plane: delta ADS, each client subscribes to the assignments of all services, and gets all \
         endpoints of the one that changed. The linear cache is updated by one resource, the snapshot cache by a \
         snapshot that all nodes share.\n\
         - nats-server carries the bytes that Tower delivered; it keeps no state that a client could catch up \
         with.\n\
         - etcd: each client watches all keys; an endpoint is a key without a value. It does not sync its disk.\n\
         \n    tower-bench peers\n",
    );
    for case in cases {
        let _ = write!(page, "\n### {}\n\n", case.title());
        let names: Vec<&str> = case.columns.iter().map(|(name, _)| name.as_str()).collect();
        let _ = writeln!(page, "| | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
        for (row, (figure, label, unit)) in ROWS.iter().enumerate() {
            let figures: Vec<Option<Figure>> =
                case.columns.iter().map(|(_, report)| report.get(figure)).collect();
            let best = figures.iter().flatten().map(|figure| figure.median).min_by(f64::total_cmp);
            let cell = |figure: &Option<Figure>| {
                let Some(Figure { median, least, most, .. }) = *figure else { return String::new() };
                let bold = if row < SERVER_ROWS && best == Some(median) { "**" } else { "" };
                let [median, least, most] = [median, least, most].map(number);
                let spread = if least == most { String::new() } else { format!(" ({least} to {most})") };
                format!("{bold}{median}{bold}{spread}")
            };
            let cells: Vec<String> = figures.iter().map(cell).collect();
            let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
            let _ = writeln!(page, "| {label}{unit} | {} |", cells.join(" | "));
        }
    }
    page
}

/// All that was measured.
pub fn object(cases: &[Case]) -> Value {
    let case = |case: &Case| {
        let servers: Map<String, Value> =
            case.columns.iter().map(|(name, report)| (name.clone(), figures(report))).collect();
        json!({
            "clients": case.clients, "services": case.size.services, "endpoints": case.size.endpoints,
            "servers": servers,
        })
    };
    let targets: Vec<Value> = targets(cases)
        .iter()
        .map(|Target { what, measured, at_most, .. }| {
            json!({ "what": what, "measured": measured, "at_most": at_most })
        })
        .collect();
    json!({
        "scenario": "peers", "machine": machine(), "cases": cases.iter().map(case).collect::<Vec<_>>(),
        "targets": targets,
    })
}

fn figures(report: &Report) -> Value {
    let mut object = Map::new();
    let mut spread = Map::new();
    for (name, Figure { median, least, most, .. }) in report.all() {
        object.insert(name.to_owned(), json!(median));
        spread.insert(name.to_owned(), json!([least, most]));
    }
    object.insert("spread".to_owned(), Value::Object(spread));
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_wins_is_shown_winning() {
        let column = |name: &str, cpu: f64, last: f64| {
            let mut report = Report::new(name, 1);
            report.note("cpu_us_per_delivery", cpu);
            report.note("last_ms", last);
            (name.to_owned(), report)
        };
        let columns = vec![column(TOWER, 10.0, 50.0), column(NATS, 4.0, 60.0)];
        let case = Case { clients: 8000, size: Size { services: 100, endpoints: 10 }, columns };
        let cases = [case];
        let page = render(&cases);
        assert!(page.contains("| the server's CPU, each client, µs | 10.0 | **4.00** |"), "{page}");
        assert!(page.contains("| last client, ms | **50.0** | 60.0 |"), "{page}");
        let targets = targets(&cases);
        let of_nats: Vec<_> = targets.iter().map(|target| target.measured).collect();
        assert_eq!(of_nats, [None, None, Some(2.5), Some(50.0 / 60.0)]);
        assert_eq!(object(&cases)["cases"][0]["servers"][TOWER]["last_ms"], 50.0);
    }
}
