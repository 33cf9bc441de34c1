//! Times and percentages: how they are written, and in which unit they are kept.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::period;

/// A time in whole milliseconds, written as one or more numbers with the units `h`, `m`, `s` and `ms`, such as
/// `250ms` or `1m30s`; at most 4 of them, of 5 digits each (GEP-2257 of the Gateway API). `0s` is none at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

/// A part of 100 with up to two digits behind the point, kept in basis points (hundredths of a percent).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u32);

impl Duration {
    /// What [`Duration`] looks like, as a regular expression.
    pub const PATTERN: &str = "^([0-9]{1,5}(h|m|s|ms)){1,4}$";

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// In milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// For arithmetic.
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no time: write numbers with units, such as \"250ms\" or \"1m30s\"");
        let numbers = || text.split(|letter: char| !letter.is_ascii_digit()).filter(|it| !it.is_empty());
        if text.contains('d') || numbers().count() > 4 || numbers().any(|digits| digits.len() > 5) {
            return Err(wrong());
        }
        let period = period::parse(text).ok_or_else(wrong)?;
        Ok(Self(u64::try_from(period.as_millis()).map_err(|_| wrong())?))
    }
}

impl fmt::Display for Duration {
    /// In the fewest terms, and so that it can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        // A time of one unit stays in it, as long as its digits suffice.
        if !self.0.is_multiple_of(1000) && self.0 < 100_000 {
            return write!(f, "{}ms", self.0);
        }
        let mut rest = self.0;
        for (unit, millis) in [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
            if rest >= millis {
                write!(f, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'_, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "mesh-duration",
            "pattern": Self::PATTERN,
            "description": "A time, such as 250ms, 1s or 1m30s.",
        })
    }
}

impl Percent {
    /// All of it.
    pub const ALL: Self = Self(10_000);

    /// So many hundredths of a percent.
    pub const fn from_basis_points(points: u32) -> Self {
        Self(points)
    }

    /// In hundredths of a percent: 10,000 is all.
    pub const fn basis_points(self) -> u32 {
        self.0
    }

    /// As a number of 100.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Whole numbers without a point, so that one value has one form.
        if self.0.is_multiple_of(100) {
            serializer.serialize_u32(self.0 / 100)
        } else {
            serializer.serialize_f64(self.value())
        }
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        let points = (value * 100.0).round();
        if !(0.0..=10_000.0).contains(&points) || (value * 100.0 - points).abs() > 1e-6 {
            return Err(de::Error::custom(format!(
                "{value} is no percentage: write a number from 0 to 100 with at most two digits behind the point"
            )));
        }
        Ok(Self(points as u32))
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "format": "mesh-percent",
            "minimum": 0,
            "maximum": 100,
            "description": "A percentage with at most two digits behind the point.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_in_their_shortest_form() {
        for (text, millis, shown) in [
            ("0s", 0, "0s"),
            ("250ms", 250, "250ms"),
            ("1000ms", 1000, "1s"),
            ("1500ms", 1500, "1500ms"),
            ("90s", 90_000, "1m30s"),
            ("1m30s", 90_000, "1m30s"),
            ("99999h", 359_996_400_000, "99999h"),
            ("2m1ms", 120_001, "2m1ms"),
        ] {
            let time: Duration = text.parse().unwrap();
            assert_eq!((time.as_millis(), time.to_string().as_str()), (millis, shown), "{text}");
            assert_eq!(shown.parse(), Ok(time), "{shown}");
        }
        for text in ["", "1", "ms", "1.5s", "-1s", "100000s", "1s1s1s1s1s", "1 s", "1d", "٣s"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_are_kept_exactly() {
        for (text, points, shown) in [("20", 2000, "20"), ("0.5", 50, "0.5"), ("99.99", 9999, "99.99")] {
            let percent: Percent = serde_json::from_str(text).unwrap();
            assert_eq!(percent.basis_points(), points, "{text}");
            assert_eq!(serde_json::to_string(&percent).unwrap(), shown, "{text}");
        }
        assert_eq!(serde_json::from_str::<Percent>("20.0").unwrap(), Percent::from_basis_points(2000));
        for text in ["-1", "100.01", "0.001", "1e300"] {
            assert!(serde_json::from_str::<Percent>(text).is_err(), "{text}");
        }
    }
}
