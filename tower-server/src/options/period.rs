//! A length of time, as people write it.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Serialize, Serializer};
use tower_common::period;

/// Longer ones are taken for mistakes.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// `0`, or numbers with units, such as `1m30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period(pub Duration);

/// Not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a time from 0 to 24h, such as 500ms, 60s or 5m")]
pub struct NotAPeriod;

impl FromStr for Period {
    type Err = NotAPeriod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let period = if text == "0" { Duration::ZERO } else { period::parse(text).ok_or(NotAPeriod)? };
        if period > LONGEST { Err(NotAPeriod) } else { Ok(Self(period)) }
    }
}

/// In the largest unit that says it exactly.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let exact = UNITS.iter().rev().find(|(_, unit)| millis.is_multiple_of(*unit));
        match exact {
            Some((name, unit)) if millis > 0 => write!(f, "{}{name}", millis / unit),
            Some(_) | None => f.write_str("0"),
        }
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_written_as_they_are_read() {
        for (text, millis, canonical) in [
            ("0", 0, "0"),
            ("0s", 0, "0"),
            ("1ms", 1, "1ms"),
            ("1500ms", 1_500, "1500ms"),
            ("60s", 60_000, "1m"),
            ("90s", 90_000, "90s"),
            ("24h", 86_400_000, "24h"),
        ] {
            let period: Period = text.parse().unwrap();
            assert_eq!(period.0, Duration::from_millis(millis), "{text}");
            assert_eq!(period.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(period));
        }
        for text in ["", "s", "60", "-1s", "1.5s", "25h", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(text.parse::<Period>(), Err(NotAPeriod), "{text}");
        }
    }
}
