//! What was measured, as a table for people and an object for machines.

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::{Map, Value, json};

/// Named figures, each measured in several runs.
#[derive(Debug)]
pub(crate) struct Report {
    /// How many runs there are to be.
    pub(crate) runs: usize,
    figures: BTreeMap<String, Vec<f64>>,
}

impl Report {
    pub(crate) fn new(runs: usize) -> Self {
        Self { runs, figures: BTreeMap::new() }
    }

    /// Notes a figure of one run. Its name ends in its unit.
    pub(crate) fn note(&mut self, name: &str, value: f64) {
        self.figures.entry(name.to_owned()).or_default().push(value);
    }

    /// Prints medians and ranges.
    #[allow(clippy::print_stdout, reason = "figures are the program's output")]
    pub(crate) fn print(&self, as_json: bool) {
        println!("{}", machine());
        println!("{:44} {:>12} {:>12} {:>12}  runs", "", "median", "least", "most");
        let mut object = Map::new();
        for (name, values) in &self.figures {
            let sorted = sorted(values.clone());
            let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
            let median = quantile(&sorted, 0.5);
            println!("{name:44} {median:12.2} {least:12.2} {most:12.2}  {}", sorted.len());
            object.insert(name.clone(), json!({ "median": median, "least": least, "most": most }));
        }
        if as_json {
            println!("{}", Value::Object(object));
        }
    }
}

/// Sorts figures.
pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which this share of the sorted values lies.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of the slice")]
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// In milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    format!("{cores} cores, {model}, Linux {}", kernel.trim())
}
