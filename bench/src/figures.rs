//! What was measured, as a table for people and an object for machines.

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::{Map, Value, json};

/// Named figures, each measured in several runs.
#[derive(Debug)]
pub struct Report {
    /// Which scenario this is.
    pub scenario: String,
    /// How many runs there are to be.
    pub runs: usize,
    figures: BTreeMap<String, Vec<f64>>,
}

/// A figure over all its runs.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The median.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// How often it was measured.
    pub runs: usize,
}

impl Report {
    /// Of a scenario, before anything is measured.
    pub fn new(scenario: &str, runs: usize) -> Self {
        Self { scenario: scenario.to_owned(), runs, figures: BTreeMap::new() }
    }

    /// Names the scenario.
    pub fn name(&mut self, scenario: &str) {
        scenario.clone_into(&mut self.scenario);
    }

    /// Notes a figure of one run. Its name ends in its unit.
    pub fn note(&mut self, name: &str, value: f64) {
        self.figures.entry(name.to_owned()).or_default().push(value);
    }

    /// A figure, if it was measured.
    pub fn get(&self, name: &str) -> Option<Figure> {
        self.figures.get(name).map(|values| figure(values))
    }

    /// A figure of the last run, if it was measured.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.figures.get(name)?.last().copied()
    }

    /// All figures, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, Figure)> {
        self.figures.iter().map(|(name, values)| (name.as_str(), figure(values)))
    }

    /// Prints medians and ranges; with `as_json` the last line is one object: the median of each figure by its
    /// name, and the least and the most of each in `spread`.
    #[allow(clippy::print_stdout, reason = "figures are the program's output")]
    pub fn print(&self, as_json: bool) {
        println!("{}: {}", self.scenario, machine());
        println!("{:48} {:>12} {:>12} {:>12}  runs", "", "median", "least", "most");
        let (mut object, mut spread) = (Map::new(), Map::new());
        object.insert("scenario".to_owned(), json!(self.scenario));
        object.insert("machine".to_owned(), json!(machine()));
        for (name, Figure { median, least, most, runs }) in self.all() {
            println!("{name:48} {median:12.2} {least:12.2} {most:12.2}  {runs}");
            object.insert(name.to_owned(), json!(median));
            spread.insert(name.to_owned(), json!([least, most]));
        }
        object.insert("spread".to_owned(), Value::Object(spread));
        if as_json {
            println!("{}", Value::Object(object));
        }
    }
}

fn figure(values: &[f64]) -> Figure {
    let sorted = sorted(values.to_vec());
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    Figure { median: quantile(&sorted, 0.5), least, most, runs: sorted.len() }
}

/// Sorts figures.
pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which this share of the sorted values lies. There must be one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of the slice")]
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// In milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// What it was measured on, and what else ran there.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    format!("{cores} cores, {model}, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_its_median_and_its_range() {
        let mut report = Report::new("scenario", 3);
        for value in [3.0, 1.0, 2.0] {
            report.note("x_ms", value);
        }
        let figure = report.get("x_ms").unwrap();
        assert!((figure.median, figure.least, figure.most, figure.runs) == (2.0, 1.0, 3.0, 3));
        assert!(report.get("y_ms").is_none());
    }
}
