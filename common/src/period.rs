//! Lengths of time, as people write them.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads one or more numbers with the units `ms`, `s`, `m`, `h` or `d`, such as `1h30m`. None if it is something
/// else, or too long to be counted.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut millis: u64 = 0;
    loop {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        millis = number.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(millis)?;
        if tail.is_empty() {
            return Some(Duration::from_millis(millis));
        }
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_added() {
        for (text, millis) in [
            ("0s", 0),
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1m1ms", 60_001),
            ("2d", 172_800_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "5x",
            "5 s",
            "1.5h",
            "-1s",
            "1s5",
            "s1",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
