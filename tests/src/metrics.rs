//! Reading the Prometheus text format, as far as tests ask for it.

/// The sum of all series with this name and, where given, these labels: `name` or
/// `name{label="value",…}`. `None` if there is no such series.
///
/// Labels that are not given may have any value, so a test names what it is about and no more.
pub fn sum(exposition: &str, wanted: &str) -> Option<f64> {
    let wanted = Series::parse(wanted)?;
    exposition
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (series, value) = split_value(line)?;
            Series::parse(series)?.covers(&wanted).then_some(value)
        })
        .reduce(|sum, value| sum + value)
}

struct Series<'a> {
    name: &'a str,
    labels: Vec<(&'a str, &'a str)>,
}

impl<'a> Series<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('{') else {
            return Some(Self { name: text, labels: Vec::new() });
        };
        let mut rest = rest.strip_suffix('}')?;
        let mut labels = Vec::new();
        while !rest.is_empty() {
            let (label, after) = rest.split_once("=\"")?;
            let end = closing_quote(after)?;
            labels.push((label.trim(), &after[..end]));
            rest = after[end + 1..].trim_start_matches([',', ' ']);
        }
        Some(Self { name, labels })
    }

    fn covers(&self, wanted: &Series<'_>) -> bool {
        self.name == wanted.name && wanted.labels.iter().all(|label| self.labels.contains(label))
    }
}

/// Where the label's value ends: at the first quote that is not escaped.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// Label values may hold spaces, the sample's value does not, and we expose no timestamps.
fn split_value(line: &str) -> Option<(&str, f64)> {
    let (series, value) = line.trim_end().rsplit_once(' ')?;
    Some((series, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP problems Things that are wrong.
# TYPE problems gauge
problems{source="zk, one",kind="znode"} 2
problems{source="files",kind="file"} 1
problems{source="a \"b\" c",kind="file"} 4
up 1
# EOF
"#;

    #[test]
    fn labels_select_and_the_rest_is_summed() {
        let check = |wanted, expected| assert_eq!(sum(TEXT, wanted), expected, "{wanted}");
        check("problems", Some(7.0));
        check(r#"problems{kind="file"}"#, Some(5.0));
        check(r#"problems{kind="znode",source="zk, one"}"#, Some(2.0));
        check(r#"problems{source="a \"b\" c"}"#, Some(4.0));
        check(r#"problems{source="none"}"#, None);
        check("up", Some(1.0));
        check("down", None);
    }
}
