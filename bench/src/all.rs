//! A short form of all scenarios, as a page.

use std::path::Path;

use anyhow::Result;

use crate::{
    activation, beacon, churn,
    churn::Rate,
    document::{self, Section, Target},
    endtoend, fanout,
    figures::Report,
    fleet::Beacons,
    load, log,
    machine::allow_files,
    mesh::Size,
    slow, soak,
    storm::{self, Storms},
    svg::Chart,
};

/// In each run of the short form.
const CHANGES: usize = 8;

/// Runs them, prints each, and writes the page.
///
/// # Errors
/// If a scenario fails, or the page cannot be written.
pub async fn run(runs: usize, most: usize, json: bool, page: Option<&Path>) -> Result<()> {
    let mut all = All { runs, json, most, sections: Vec::new() };
    all.fan_out().await?;
    all.sizes().await?;
    all.churn().await?;
    all.storm().await?;
    all.slow().await?;
    all.tls().await?;
    all.soak().await?;
    all.hosts().await?;
    if let Some(page) = page {
        document::write(page, &all.targets(), &all.sections)?;
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "what is left out is a part of the output")]
fn note(what: &anyhow::Error) {
    println!("left out: {what}");
}

struct All {
    runs: usize,
    json: bool,
    /// Beacons, at most.
    most: usize,
    sections: Vec<Section>,
}

type Columns = Vec<(String, Report)>;

impl All {
    fn report(&self, scenario: &str) -> Report {
        Report::new(scenario, self.runs)
    }

    fn plain(&self, wanted: usize) -> Beacons {
        Beacons { beacons: wanted.min(self.most), tls: false }
    }

    fn done(&self, columns: &mut Columns, heading: String, report: Report) {
        report.print(self.json);
        columns.push((heading, report));
    }

    async fn fan_out(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        for count in [1000, 2000, 4000, 8000, 16_000].into_iter().filter(|count| *count <= self.most) {
            if let Err(why) = allow_files(count) {
                note(&why);
                continue;
            }
            // Those with a target are measured as often as is asked for.
            let mut report = if count < 8000 { Report::new("fanout", 1) } else { self.report("fanout") };
            fanout::run(&mut report, self.plain(count), fanout::USUAL, CHANGES).await?;
            self.done(&mut columns, format!("{count} Beacons"), report);
        }
        let charts = vec![
            (
                "fanout-latency",
                chart(
                    &columns,
                    "One endpoint to all Beacons",
                    "Beacons",
                    "ms",
                    &[
                        ("last Beacon", "last_ms"),
                        ("half of them", "p50_ms"),
                        ("last, of bare writes", "floor_last_ms"),
                    ],
                    "beacons",
                ),
            ),
            (
                "fanout-cpu",
                chart(
                    &columns,
                    "CPU for each delivery",
                    "Beacons",
                    "µs",
                    &[("Tower", "cpu_us_per_delivery"), ("bare writes", "floor_cpu_us_per_delivery")],
                    "beacons",
                ),
            ),
        ];
        self.sections.push(Section {
            title: "Fan-out",
            text: "One endpoint is registered in ZooKeeper, over and over. Latency is from before the request \
                   until a Beacon has applied it, over all Beacons and changes; `last` is the median of the \
                   slowest Beacon of each change. The floor writes the same bytes, in HTTP/2 frames that were \
                   made before, straight to as many sockets. `bytes_per_stream` is Tower's resident memory.",
            command: "tower-bench fanout --beacons 8000".to_owned(),
            columns,
            charts,
        });
        Ok(())
    }

    async fn sizes(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        for (services, endpoints) in [(10, 10), (300, 10), (1000, 10), (10, 100), (10, 1000)] {
            let mut report = Report::new("fanout", 1);
            let size = Size { services, endpoints };
            fanout::run(&mut report, self.plain(1000), size, CHANGES).await?;
            report.note("services", services as f64);
            report.note("endpoints_of_each", endpoints as f64);
            self.done(&mut columns, format!("{services} × {endpoints}"), report);
        }
        let costs = [("CPU, µs", "cpu_us_per_delivery"), ("bytes / 10", "wire_bytes_per_delivery")];
        let of_stores = chart(
            &columns[..3],
            "A delivery against the size of the store",
            "services",
            "",
            &costs,
            "services",
        );
        let service = [0, 3, 4].map(|column| &columns[column]);
        let of_services = chart(
            service,
            "A delivery against the size of its service",
            "endpoints",
            "",
            &costs,
            "endpoints_of_each",
        );
        let charts = vec![("store-size", tenth(of_stores)), ("service-size", tenth(of_services))];
        self.sections.push(Section {
            title: "Sizes",
            text: "The same with 1,000 Beacons, for stores and services of other sizes (services × endpoints of \
                   each): a change costs what changed, and not what there is.",
            command: "tower-bench fanout --services 1000 --endpoints 10".to_owned(),
            columns,
            charts,
        });
        Ok(())
    }

    async fn churn(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        for (count, rate) in [(1000, 100), (1000, 500), (1000, 1667), (5000, 1667)] {
            let mut report = if count < 5000 { Report::new("churn", 1) } else { self.report("churn") };
            let rate = Rate { rate, seconds: 10 };
            churn::run(&mut report, self.plain(count), fanout::USUAL, rate).await?;
            self.done(&mut columns, format!("{count} Beacons, {}/s", rate.rate), report);
        }
        let costs = [("Tower", "tower_cores"), ("the swarm", "swarm_cores")];
        let chart = chart(
            &columns[..3],
            "Cores for 1,000 Beacons",
            "changes a second",
            "cores",
            &costs,
            "rate_per_s",
        );
        self.sections.push(Section {
            title: "Churn",
            text: "Endpoints come and go at a rate, half of each, and are registered for 2 s. Latency is that of \
                   those that come, of one Beacon in sixteen.",
            command: "tower-bench churn --beacons 5000".to_owned(),
            columns,
            charts: vec![("churn", chart)],
        });
        Ok(())
    }

    async fn storm(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        let mut report = self.report("storm");
        storm::run(&mut report, self.plain(8000), Size::default(), Storms::All).await?;
        self.done(&mut columns, format!("{} Beacons", self.most.min(8000)), report);
        self.sections.push(Section {
            title: "Reconnect storms",
            text: "All Beacons come back at the same moment, to the same Tower, to the same after it was killed, \
                   and to another one; when nothing changed while they were away, and when one endpoint in a \
                   hundred did. `troubles` are connections that were refused, cut off, or sent away.",
            command: "tower-bench storm --beacons 8000".to_owned(),
            columns,
            charts: Vec::new(),
        });
        Ok(())
    }

    async fn slow(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        let mut report = self.report("slow");
        let rate = Rate { rate: 500, seconds: 15 };
        let beacons = self.plain(8000);
        slow::run(&mut report, beacons, fanout::USUAL, beacons.beacons / 8, rate).await?;
        self.done(&mut columns, format!("{} Beacons, an eighth stops reading", beacons.beacons), report);
        self.sections.push(Section {
            title: "Beacons that do not read",
            text: "One Beacon in eight stops reading while 500 endpoints a second come and go, and reads again. \
                   The memory of each stream has its share of the log in it, which all streams share; that of \
                   sockets is of both ends.",
            command: "tower-bench slow --beacons 8000 --stopped 1000 --rate 500 --seconds 15".to_owned(),
            columns,
            charts: Vec::new(),
        });
        Ok(())
    }

    async fn tls(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        let beacons = Beacons { tls: true, ..self.plain(8000) };
        let mut report = self.report("tls");
        fanout::run(&mut report, beacons, fanout::USUAL, CHANGES).await?;
        storm::run(&mut report, beacons, Size::default(), Storms::Same).await?;
        self.done(&mut columns, format!("{} Beacons", beacons.beacons), report);
        if self.most >= 16_000 && allow_files(16_000).is_ok() {
            let mut report = self.report("tls");
            fanout::run(&mut report, Beacons { beacons: 16_000, ..beacons }, fanout::USUAL, CHANGES).await?;
            self.done(&mut columns, "16000 Beacons".to_owned(), report);
        }
        let mut report = self.report("churn");
        let rate = Rate { rate: 1667, seconds: 10 };
        let of_churn = Beacons { tls: true, ..self.plain(5000) };
        churn::run(&mut report, of_churn, fanout::USUAL, rate).await?;
        self.done(&mut columns, format!("{} Beacons, 1667/s", of_churn.beacons), report);
        let mut report = self.report("slow");
        let rate = Rate { rate: 500, seconds: 15 };
        slow::run(&mut report, beacons, fanout::USUAL, beacons.beacons / 8, rate).await?;
        self.done(&mut columns, format!("an eighth of {} stops reading", beacons.beacons), report);
        self.sections.push(Section {
            title: "Mutual TLS",
            text: "The same by mutual TLS 1.3: the fan-out; the first storm, without resumption, beside as many \
                   handshakes with a process that does nothing else; changes at a rate; Beacons that do not read.",
            command: "tower-bench tls --beacons 8000; churn --tls; slow --tls".to_owned(),
            columns,
            charts: Vec::new(),
        });
        Ok(())
    }

    async fn soak(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        let mut report = Report::new("soak", 1);
        let rate = Rate { rate: 200, seconds: 60 };
        soak::run(&mut report, self.plain(1000), fanout::USUAL, rate).await?;
        self.done(&mut columns, "a minute".to_owned(), report);
        self.sections.push(Section {
            title: "Soak",
            text: "200 endpoints a second come and go, and one Beacon in twenty leaves and comes back every 5 s.",
            command: "tower-bench soak --seconds 3600".to_owned(),
            columns,
            charts: Vec::new(),
        });
        Ok(())
    }

    /// What has no swarm in it.
    async fn hosts(&mut self) -> Result<()> {
        let mut columns = Columns::new();
        let mut report = self.report("endtoend");
        endtoend::run(&mut report, 50, self.most.min(1000)).await?;
        self.done(&mut columns, "endtoend".to_owned(), report);
        let mut report = self.report("load");
        load::run(&mut report, Size { services: 10_000, endpoints: 10 }).await?;
        self.done(&mut columns, "load, 10,000 × 10".to_owned(), report);
        let mut report = self.report("beacon");
        beacon::run(&mut report, Size::default()).await?;
        self.done(&mut columns, "beacon, 1,000 × 10".to_owned(), report);
        let mut report = self.report("activation");
        activation::run(&mut report, 100).await?;
        self.done(&mut columns, "activation".to_owned(), report);
        let mut report = self.report("log");
        log::run(&mut report, 10_000).await?;
        self.done(&mut columns, "log".to_owned(), report);
        self.sections.push(Section {
            title: "Traffic, a host, the start, the log",
            text: "From a registration until Envoy's first answer; Tower's start from a local ZooKeeper; a real \
                   Beacon with one Envoy; from an activation until Envoy's first answer by it; the event log.",
            command: "tower-bench endtoend, load, beacon, activation, log".to_owned(),
            columns,
            charts: Vec::new(),
        });
        Ok(())
    }

    fn targets(&self) -> Vec<Target> {
        let get = |title: &str, heading: &str, figure: &str| {
            let section = self.sections.iter().find(|section| section.title == title)?;
            let (_, report) = section.columns.iter().find(|(name, _)| name.starts_with(heading))?;
            report.get(figure).map(|figure| figure.median)
        };
        let target = |what: &str, (section, column, figure), at_most, unit| Target {
            what: what.to_owned(),
            measured: get(section, column, figure),
            at_most,
            unit,
        };
        vec![
            target("one endpoint to 8,000 Beacons, p99", ("Fan-out", "8000", "p99_ms"), 100.0, "ms"),
            target("one endpoint to 16,000 Beacons, p99", ("Fan-out", "16000", "p99_ms"), 200.0, "ms"),
            target(
                "Tower's CPU for each delivery, against bare writes",
                ("Fan-out", "8000", "cpu_over_floor"),
                2.0,
                "times",
            ),
            target("memory for each Beacon", ("Fan-out", "8000", "bytes_per_stream"), 25_000.0, "bytes"),
            target(
                "the same while 1,000 of 8,000 do not read",
                ("Beacons that do not read", "8000", "bytes_per_stream_while_stopped"),
                32_000.0,
                "bytes",
            ),
            target(
                "1,667 changes a second to 5,000 Beacons: Tower",
                ("Churn", "5000", "tower_cores"),
                0.7,
                "cores",
            ),
            target("the same, p99", ("Churn", "5000", "p99_ms"), 100.0, "ms"),
            target("the same, on the wire", ("Churn", "5000", "wire_gb_per_s"), 0.35, "GB/s"),
            target(
                "8,000 Beacons come back, nothing changed",
                ("Reconnect storms", "8000", "same_unchanged_all_equal_ms"),
                5000.0,
                "ms",
            ),
            target(
                "the same, bytes of state for each",
                ("Reconnect storms", "8000", "same_unchanged_bytes_per_beacon"),
                200.0,
                "bytes",
            ),
            target(
                "the same, what is wrong",
                ("Reconnect storms", "8000", "same_unchanged_troubles"),
                0.0,
                "connections",
            ),
            target(
                "one endpoint to 8,000 Beacons by TLS, p99",
                ("Mutual TLS", "8000", "p99_ms"),
                100.0,
                "ms",
            ),
            target("the same to 16,000", ("Mutual TLS", "16000", "p99_ms"), 200.0, "ms"),
            target(
                "memory for each Beacon by TLS",
                ("Mutual TLS", "8000", "bytes_per_stream"),
                25_000.0,
                "bytes",
            ),
            target(
                "the same while 1,000 of 8,000 do not read",
                ("Mutual TLS", "an eighth of 8000", "bytes_per_stream_while_stopped"),
                32_000.0,
                "bytes",
            ),
            target(
                "1,667 changes a second to 5,000 Beacons by TLS: Tower",
                ("Mutual TLS", "5000", "tower_cores"),
                0.7,
                "cores",
            ),
            target("the same, p99", ("Mutual TLS", "5000", "p99_ms"), 100.0, "ms"),
            target(
                "8,000 Beacons come back by TLS, against bare handshakes",
                ("Mutual TLS", "8000", "same_unchanged_over_bare_handshakes"),
                1.5,
                "times",
            ),
            target(
                "a Beacon on a host, 1,000 services",
                ("Traffic, a host, the start, the log", "beacon", "beacon_rss_mib"),
                30.0,
                "MiB",
            ),
            target(
                "the same, idle",
                ("Traffic, a host, the start, the log", "beacon", "beacon_idle_cpu_percent"),
                1.0,
                "%",
            ),
            target(
                "the same, 10 changes a second",
                ("Traffic, a host, the start, the log", "beacon", "beacon_10_changes_per_second_cpu_percent"),
                3.0,
                "%",
            ),
            target(
                "Tower's start, 10,000 services of 10",
                ("Traffic, a host, the start, the log", "load", "tower_exec_to_ready_ms"),
                3000.0,
                "ms",
            ),
            target(
                "the same, memory",
                ("Traffic, a host, the start, the log", "load", "tower_rss_mib"),
                300.0,
                "MiB",
            ),
        ]
    }
}

/// Figures of reports over one of their figures.
fn chart<'a>(
    columns: impl IntoIterator<Item = &'a (String, Report)>,
    title: &str,
    x: &str,
    y: &str,
    series: &[(&str, &str)],
    over: &str,
) -> Chart {
    let reports: Vec<&Report> = columns.into_iter().map(|(_, report)| report).collect();
    let points = |figure: &str| {
        let point = |report: &&Report| Some((report.get(over)?.median, report.get(figure)?.median));
        reports.iter().filter_map(point).collect()
    };
    let series = series.iter().map(|(name, figure)| ((*name).to_owned(), points(figure))).collect();
    Chart { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), series }
}

/// Bytes are ten times as many as microseconds, about: both can be seen when they are divided.
fn tenth(mut chart: Chart) -> Chart {
    for (name, points) in &mut chart.series {
        if name.starts_with("bytes") {
            points.iter_mut().for_each(|point| point.1 /= 10.0);
        }
    }
    chart
}
