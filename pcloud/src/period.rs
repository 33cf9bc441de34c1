//! Lengths of time on the command line.

use std::{fmt, str::FromStr, time::Duration};

/// A length of time: a number with `ms`, `s`, `m`, `h` or `d`, or several of them, such as `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) Duration);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Period {
    /// In whole seconds, rounded up.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_secs() + u64::from(self.0.subsec_nanos() > 0)
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no length of time; write 90s, 10m, 2h or 1h30m");
        let mut rest = text;
        let mut millis: u64 = 0;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let unit = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(wrong)?;
            rest = &rest[letters..];
            millis =
                number.checked_mul(unit.1).and_then(|more| millis.checked_add(more)).ok_or_else(wrong)?;
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return f.write_str("0s");
        }
        for (name, unit) in UNITS.iter().rev() {
            let number = left / unit;
            left %= unit;
            if number > 0 {
                write!(f, "{number}{name}")?;
            }
        }
        Ok(())
    }
}

/// How long ago something was, in its two largest units.
pub(crate) fn ago(then_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(then_ms) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_read_and_written() {
        for (text, millis) in [("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("2d", 172_800_000)] {
            assert_eq!(text.parse(), Ok(Period(Duration::from_millis(millis))));
        }
        assert_eq!(Period(Duration::from_secs(5400)).to_string(), "1h30m");
        for text in ["", "5", "s", "5x", "1.5h", "-1s", "99999999999999999999s", "18446744073709551615d"] {
            assert!(text.parse::<Period>().unwrap_err().contains("1h30m"), "{text}");
        }
    }

    #[test]
    fn what_was_is_told_in_two_units() {
        assert_eq!(ago(0, 59_999), "59s");
        assert_eq!(ago(0, 3_725_000), "1h2m");
        assert_eq!(ago(10, 0), "0s", "a clock that is behind");
    }
}
