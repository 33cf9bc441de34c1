//! Lengths of time on the command line.

use std::{fmt, str::FromStr, time::Duration};

use tower_common::period;

/// A length of time: a number with `ms`, `s`, `m`, `h` or `d`, or several of them, such as `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) Duration);

/// In what it is written.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Period {
    /// In milliseconds.
    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// In whole seconds, rounded up.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_secs() + u64::from(self.0.subsec_nanos() > 0)
    }
}

/// A moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// In milliseconds since 1970.
    Time(u64),
    /// So long ago.
    Ago(Period),
    /// After this entry of the log.
    Index(u64),
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let index = text.strip_prefix('@').and_then(|index| index.parse().ok());
        let time = || text.parse::<jiff::Timestamp>().ok()?.as_millisecond().try_into().ok();
        let ago = || text.parse().ok();
        index
            .map(Self::Index)
            .or_else(|| ago().map(Self::Ago))
            .or_else(|| time().map(Self::Time))
            .ok_or_else(|| {
                format!("{text:?} is no moment; write 2026-01-31T12:00:00Z, or 2h for two hours ago, or @17 for an entry")
            })
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no length of time; write 90s, 10m, 2h or 1h30m");
        period::parse(text).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.millis();
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
        for text in ["90s", "1h30m", "2d", "250ms"] {
            let period: Period = text.parse().unwrap();
            assert_eq!(period.to_string().parse(), Ok(period), "{text}");
        }
        assert_eq!(Period(Duration::from_secs(5400)).to_string(), "1h30m");
        assert!("5".parse::<Period>().unwrap_err().contains("1h30m"));
    }

    #[test]
    fn a_moment_is_a_time_a_period_ago_or_an_entry() {
        assert_eq!("@17".parse(), Ok(When::Index(17)));
        assert_eq!("2h".parse(), Ok(When::Ago(Period(Duration::from_secs(7200)))));
        assert_eq!("1970-01-01T00:00:01.5Z".parse(), Ok(When::Time(1500)));
        assert_eq!("1970-01-01T01:00:00+01:00".parse(), Ok(When::Time(0)));
        for text in ["", "@", "@x", "yesterday", "2026-01-31", "1960-01-01T00:00:00Z"] {
            assert!(text.parse::<When>().unwrap_err().contains("is no moment"), "{text}");
        }
    }

    #[test]
    fn what_was_is_told_in_two_units() {
        assert_eq!(ago(0, 59_999), "59s");
        assert_eq!(ago(0, 3_725_000), "1h2m");
        assert_eq!(ago(10, 0), "0s", "a clock that is behind");
    }
}
