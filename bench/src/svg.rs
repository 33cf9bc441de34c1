//! Curves as SVG: lines over two axes that begin at zero.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 48.0;

/// Lines of an axis, about.
const LINES: f64 = 5.0;

/// Colours that are told apart by those who see few, too (Okabe and Ito, 2008).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// A curve for each of several things.
#[derive(Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What is to the right.
    pub x: String,
    /// What is up.
    pub y: String,
    /// Names, and points in the order of `x`.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Chart {
    /// The chart as a document.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|(_, points)| points);
        let x_step = step(points().map(|point| point.0).fold(0.0, f64::max));
        let y_step = step(points().map(|point| point.1).fold(0.0, f64::max));
        let (x_lines, y_lines) =
            (lines(points().map(|point| point.0), x_step), lines(points().map(|point| point.1), y_step));
        let x_at = |value: f64| LEFT + value / (x_step * f64::from(x_lines)) * (WIDTH - LEFT - RIGHT);
        let y_at =
            |value: f64| HEIGHT - BOTTOM - value / (y_step * f64::from(y_lines)) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        text(&mut svg, (LEFT, 20.0), "start", &self.title);
        text(&mut svg, (WIDTH - RIGHT, HEIGHT - 10.0), "end", &self.x);
        text(&mut svg, (LEFT, TOP - 6.0), "start", &self.y);
        for line in 0..=y_lines {
            let value = y_step * f64::from(line);
            let y = y_at(value);
            stroke(&mut svg, (LEFT, y), (WIDTH - RIGHT, y));
            text(&mut svg, (LEFT - 6.0, y + 4.0), "end", &number(value));
        }
        for line in 0..=x_lines {
            let value = x_step * f64::from(line);
            text(&mut svg, (x_at(value), HEIGHT - BOTTOM + 18.0), "middle", &number(value));
        }
        for (index, (name, points)) in self.series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let path: Vec<String> =
                points.iter().map(|(x, y)| format!("{:.1},{:.1}", x_at(*x), y_at(*y))).collect();
            let path = path.join(" ");
            let _ = writeln!(
                svg,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            );
            for (x, y) in points {
                let (x, y) = (x_at(*x), y_at(*y));
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
            }
            let y = TOP + 14.0 * index as f64 + 8.0;
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
                LEFT + 8.0,
                y - 9.0
            );
            text(&mut svg, (LEFT + 24.0, y), "start", name);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// The distance of lines, 1, 2 or 5 times a power of ten, so that there are about five.
fn step(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let raw = most / LINES;
    let power = 10_f64.powf(raw.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|times| times * power >= raw).unwrap_or(10.0);
    times * power
}

/// How many lines cover all values, with some room above.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most about six")]
fn lines(values: impl Iterator<Item = f64>, step: f64) -> u32 {
    (values.fold(0.0, f64::max) / step).ceil().max(1.0) as u32
}

fn number(value: f64) -> String {
    let rounded = (value * 1000.0).round() / 1000.0;
    format!("{rounded}")
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

fn stroke(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_cover_what_is_shown_in_round_steps() {
        assert!((step(8000.0), step(0.7), step(0.0)) == (2000.0, 0.2, 1.0));
        assert_eq!(lines([8000.0, 1.0].into_iter(), 2000.0), 4);
        let series = vec![("a < b".to_owned(), vec![(0.0, 1.0), (10.0, 5.0)])];
        let svg = Chart { title: "t".into(), x: "x".into(), y: "y".into(), series }.svg();
        // The last point is in the upper right corner.
        assert!(svg.contains("points=\"64.0,257.6 616.0,40.0\""), "{svg}");
        assert!(svg.contains("a &lt; b"), "{svg}");
    }
}
