//! Lengths of time as users write them: `"30s"`, `"200ms"`, `"1m30s"`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr, time::Duration};

/// A length of time in Go's notation, the one Kubernetes users write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(pub Duration);

/// A century and more; up to here microseconds are exact however a length is written.
const LONGEST: Duration = Duration::from_secs(1_000_000 * 3600);

impl Period {
    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(Duration::from_millis(n))
    }

    /// `n` seconds.
    pub const fn secs(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }

    /// In milliseconds, the unit of a history.
    pub fn as_ms(self) -> f64 {
        self.0.as_secs_f64() * 1000.0
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("{text:?} is not a duration: write a number with a unit, such as \"30s\", \"200ms\" or \"1m30s\"")
        };
        let too_long = || format!("{text:?} is longer than {} hours", LONGEST.as_secs() / 3600);
        let mut rest = text.trim();
        let mut total = Duration::ZERO;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
            let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let unit_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let unit = match &rest[..unit_len] {
                "us" | "µs" => 0.000_001,
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(bad()),
            };
            let part = Duration::try_from_secs_f64(number * unit).map_err(|_| bad())?;
            total = total.checked_add(part).filter(|t| *t <= LONGEST).ok_or_else(too_long)?;
            rest = &rest[unit_len..];
        }
        // As fine as it is written: a length that is read is written as one that is read the same.
        let micros = total.as_nanos().saturating_add(500) / 1000;
        Ok(Self(Duration::from_micros(u64::try_from(micros).map_err(|_| too_long())?)))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (us, ms) = (self.0.as_micros(), self.0.as_millis());
        match ms {
            _ if !us.is_multiple_of(1000) => write!(f, "{us}us"),
            _ if !ms.is_multiple_of(1000) => write!(f, "{ms}ms"),
            _ if ms >= 60_000 && ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            _ => write!(f, "{}s", ms / 1000),
        }
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Period {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Period".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A duration such as \"30s\", \"200ms\" or \"1m30s\".",
            "pattern": "^([0-9]+(\\.[0-9]+)?(us|µs|ms|s|m|h))+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Period;

    #[test]
    fn durations_round_trip_and_bad_ones_say_how_to_write_them() {
        for (text, ms, shown) in [
            ("30s", 30_000, "30s"),
            ("200ms", 200, "200ms"),
            ("1m30s", 90_000, "90s"),
            ("1.5s", 1500, "1500ms"),
            ("2m", 120_000, "2m"),
            ("1h", 3_600_000, "60m"),
            ("0s", 0, "0s"),
            ("1500us", 1, "1500us"),
            ("0.0006ms", 0, "1us"),
            ("1000000h", 3_600_000_000_000, "60000000m"),
            ("3599999999.999999s", 3_599_999_999_999, "3599999999999999us"),
        ] {
            let p: Period = text.parse().unwrap();
            assert_eq!((p.0.as_millis(), p.to_string().as_str()), (ms, shown), "{text}");
            assert_eq!(p.to_string().parse::<Period>().unwrap(), p);
        }
        for text in
            ["1000001h", "18446744073709551615s18446744073709551615s", "10000000000000000000s10000000000000000000s"]
        {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
        for text in ["", "30", "s", "3x", "-1s", "1s2"] {
            assert!(text.parse::<Period>().unwrap_err().contains("write a number with a unit"), "{text}");
        }
    }
}
