//! Figures as a page: tables, curves, and what is within its target and what is not.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    figures::{Report, machine},
    svg::Chart,
};

/// Where the curves are, beside the page.
const CURVES: &str = "benchmarks";

/// A part of the page.
#[derive(Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// What is measured, and how.
    pub text: &'static str,
    /// How to measure it again.
    pub command: String,
    /// What was measured: a column each, by its heading.
    pub columns: Vec<(String, Report)>,
    /// Curves, each with the name of its file.
    pub charts: Vec<(&'static str, Chart)>,
}

/// What a figure is to be.
#[derive(Debug)]
pub struct Target {
    /// What is measured.
    pub what: String,
    /// What was measured.
    pub measured: Option<f64>,
    /// What it may be at most.
    pub at_most: f64,
    /// In what.
    pub unit: &'static str,
}

/// Writes the page, and the curves beside it.
///
/// # Errors
/// If a file cannot be written.
pub fn write(path: &Path, targets: &[Target], sections: &[Section]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("")).join(CURVES);
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (name, chart) in sections.iter().flat_map(|section| &section.charts) {
        let file = folder.join(format!("{name}.svg"));
        fs::write(&file, chart.svg()).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    let page = page(targets, sections);
    fs::write(path, page).with_context(|| format!("{} cannot be written", path.display()))
}

fn page(targets: &[Target], sections: &[Section]) -> String {
    let mut page = format!(
        "# Benchmarks\n\n\
         Written by `make bench`. All processes, and the simulated Beacons, share one machine: {}. Figures of a \
         machine that does other things as well, and of other machines, differ; compare what was measured in \
         one run. Each figure is the median of its runs, with the least and the most behind it.\n\n",
        machine()
    );
    page.push_str("| Target | at most | measured | |\n|---|---|---|---|\n");
    for Target { what, measured, at_most, unit } in targets {
        let (value, verdict) = match measured {
            None => ("not measured".to_owned(), String::new()),
            Some(value) if value <= at_most => (format!("{} {unit}", number(*value)), "within".to_owned()),
            Some(value) => {
                (format!("{} {unit}", number(*value)), format!("**{} times**", number(value / at_most)))
            }
        };
        let _ = writeln!(page, "| {what} | {} {unit} | {value} | {verdict} |", number(*at_most));
    }
    for section in sections {
        let _ = write!(page, "\n## {}\n\n{}\n\n    {}\n\n", section.title, section.text, section.command);
        table(&mut page, &section.columns);
        for (name, chart) in &section.charts {
            let _ = write!(page, "\n![{}]({CURVES}/{name}.svg)\n", chart.title);
        }
    }
    page
}

fn table(page: &mut String, columns: &[(String, Report)]) {
    let names: BTreeSet<&str> =
        columns.iter().flat_map(|(_, report)| report.all().map(|(name, _)| name)).collect();
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| heading.as_str()).collect();
    let _ = writeln!(page, "| | {} |\n|---|{}", headings.join(" | "), "---|".repeat(columns.len()));
    for name in names {
        let cells: Vec<String> = columns
            .iter()
            .map(|(_, report)| match report.get(name) {
                None => String::new(),
                Some(figure) if figure.least == figure.most => number(figure.median),
                Some(figure) => {
                    let [median, least, most] = [figure.median, figure.least, figure.most].map(number);
                    format!("{median} ({least} to {most})")
                }
            })
            .collect();
        let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
    }
}

/// Three digits are all that such figures are worth.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_is_within_its_target() {
        let mut report = Report::new("fanout", 2);
        report.note("p99_ms", 80.0);
        report.note("p99_ms", 81.0);
        let target = |measured| Target { what: "p99".into(), measured, at_most: 100.0, unit: "ms" };
        let section = Section {
            title: "Fan-out",
            text: "What it is.",
            command: "tower-bench fanout".into(),
            columns: vec![("1000".into(), report)],
            charts: Vec::new(),
        };
        let page = page(&[target(Some(80.0)), target(Some(150.0)), target(None)], &[section]);
        assert!(page.contains("| p99 | 100 ms | 80.0 ms | within |"), "{page}");
        assert!(page.contains("| p99 | 100 ms | 150 ms | **1.50 times** |"), "{page}");
        assert!(page.contains("| p99_ms | 81.0 (80.0 to 81.0) |"), "{page}");
    }
}
