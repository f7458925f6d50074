//! One limit as a policy states it, and the bucket it becomes.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::nanos;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// So many in a period: `20/s`, `30/min`, `5000/h`, `1000/day`, `1/3s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Frequency {
    count: NonZeroU32,
    period: u64,
}

impl Frequency {
    /// `count` in each `period`; none when the period is zero or is over a year.
    #[must_use]
    pub fn new(count: NonZeroU32, period: Duration) -> Option<Self> {
        let period = nanos(period);
        (period > 0 && period <= 366 * DAY).then_some(Self { count, period })
    }

    /// How many.
    #[must_use]
    pub fn count(self) -> NonZeroU32 {
        self.count
    }

    /// In how long.
    #[must_use]
    pub fn period(self) -> Duration {
        Duration::from_nanos(self.period)
    }
}

impl FromStr for Frequency {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let malformed = || LimitError::Frequency(text.to_owned());
        let overflow = || LimitError::Overflow(text.to_owned());
        let (count, period) = text.split_once('/').ok_or_else(malformed)?;
        let count = count.trim();
        // `parse` alone would let a sign through.
        if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed());
        }
        let count: u32 = count.parse().map_err(|_| overflow())?;
        let count = NonZeroU32::new(count).ok_or_else(|| LimitError::Zero(text.to_owned()))?;
        let period = period.trim();
        let unit = period.trim_start_matches(|c: char| c.is_ascii_digit());
        let times = match period.strip_suffix(unit) {
            None | Some("") => 1,
            Some(digits) => digits.parse::<u64>().map_err(|_| overflow())?,
        };
        let unit = match unit {
            "s" => SECOND,
            "min" => MINUTE,
            "h" => HOUR,
            "day" => DAY,
            _ => return Err(malformed()),
        };
        if times == 0 {
            return Err(malformed());
        }
        let period = times.checked_mul(unit).ok_or_else(overflow)?;
        Self::new(count, Duration::from_nanos(period)).ok_or_else(overflow)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.count)?;
        let units = [(DAY, "day"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];
        let (unit, name) = units
            .into_iter()
            .find(|(unit, _)| self.period.is_multiple_of(*unit))
            .unwrap_or((1, "ns"));
        match self.period / unit {
            1 => f.write_str(name),
            times => write!(f, "{times}{name}"),
        }
    }
}

impl TryFrom<String> for Frequency {
    type Error = LimitError;
    fn try_from(text: String) -> Result<Self, LimitError> {
        text.parse()
    }
}

impl From<Frequency> for String {
    fn from(frequency: Frequency) -> Self {
        frequency.to_string()
    }
}

/// When a quota's count starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// At each whole period of UTC: for a day, at midnight.
    #[serde(rename = "UTC")]
    Utc,
    /// Each call counts until it is a period old.
    Rolling,
}

/// One limit, known to be one that can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A token bucket, for a target that is known to be one.
    Rate {
        /// How fast it refills.
        frequency: Frequency,
        /// How many may go at once.
        burst: NonZeroU32,
    },
    /// Never more than so many in any rolling period, as policies are
    /// published; paced, at most `burst` at once.
    Max {
        /// The most in any period.
        frequency: Frequency,
        /// How many may go at once.
        burst: NonZeroU32,
    },
    /// A count for a long period, not paced.
    Quota {
        /// The most in a period.
        frequency: Frequency,
        /// When the count starts anew.
        reset: Reset,
    },
}

/// Why a limit cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Not a frequency.
    #[error("`{0}` is not a frequency: write N/s, N/min, N/h, N/day or N/3s, N a whole number")]
    Frequency(String),
    /// A number that does not fit.
    #[error("`{0}` cannot be kept: at most 4294967295 in a period of at most 366 days")]
    Overflow(String),
    /// Nothing would ever be sent.
    #[error(
        "`{0}` would never let anything through: the number must be at least 1 (to stop a target, hold it)"
    )]
    Zero(String),
    /// A burst above the window's own number.
    #[error("a burst of {burst} is more than the {frequency} it is part of: lower the burst")]
    BurstAboveMax {
        /// The burst asked for.
        burst: u32,
        /// The window cap.
        frequency: Frequency,
    },
    /// Finer than a nanosecond, or longer than 146 years until full.
    #[error(
        "{0} cannot be kept: more than 1,000,000,000 a second, or more than 146 years until the burst is back"
    )]
    OutOfRange(Frequency),
}

impl Limit {
    /// A token bucket.
    ///
    /// # Errors
    /// When the bucket's arithmetic would leave 63 bits of nanoseconds.
    pub fn rate(frequency: Frequency, burst: NonZeroU32) -> Result<Self, LimitError> {
        Self::Rate { frequency, burst }.checked()
    }

    /// A cap over any rolling window.
    ///
    /// # Errors
    /// When the burst is above the cap, or the arithmetic leaves 63 bits.
    pub fn max(frequency: Frequency, burst: NonZeroU32) -> Result<Self, LimitError> {
        Self::Max { frequency, burst }.checked()
    }

    /// A count for a long period.
    #[must_use]
    pub fn quota(frequency: Frequency, reset: Reset) -> Self {
        Self::Quota { frequency, reset }
    }

    fn checked(self) -> Result<Self, LimitError> {
        let (Self::Rate { frequency, burst } | Self::Max { frequency, burst }) = self else {
            return Ok(self);
        };
        if matches!(self, Self::Max { .. }) && burst > frequency.count {
            return Err(LimitError::BurstAboveMax {
                burst: burst.get(),
                frequency,
            });
        }
        // governor multiplies in 64 bits without a check; 63 leave room for `now`.
        let per_second =
            u64::from(frequency.count.get()).saturating_mul(SECOND) / frequency.period.max(1);
        match self.interval().checked_mul(u64::from(burst.get())) {
            Some(full) if full < 1 << 62 && per_second <= SECOND => Ok(self),
            _ => Err(LimitError::OutOfRange(frequency)),
        }
    }

    /// What the limit states, without its burst.
    #[must_use]
    pub fn frequency(&self) -> Frequency {
        match self {
            Self::Rate { frequency, .. }
            | Self::Max { frequency, .. }
            | Self::Quota { frequency, .. } => *frequency,
        }
    }

    /// How many could ever go at once.
    #[must_use]
    pub fn burst(&self) -> NonZeroU32 {
        match self {
            Self::Rate { burst, .. } | Self::Max { burst, .. } => *burst,
            Self::Quota { frequency, .. } => frequency.count,
        }
    }

    /// Nanoseconds in which one token comes back, rounded up so that rounding
    /// never lets one more through. Within any window of a period, a bucket
    /// of burst `b` and this interval admits at most `N` for
    /// `max = N/period`: b at once, and (N - b) while the period lasts.
    #[must_use]
    pub fn interval(&self) -> u64 {
        let (period, tokens) = match self {
            Self::Rate { frequency, .. } | Self::Quota { frequency, .. } => {
                (frequency.period, frequency.count.get())
            }
            Self::Max { frequency, burst } => (
                frequency.period,
                frequency
                    .count
                    .get()
                    .saturating_sub(burst.get())
                    .saturating_add(1),
            ),
        };
        period.div_ceil(u64::from(tokens)).max(1)
    }

    /// What makes two limits of one scope the same limit with other numbers,
    /// so that what was spent under one stays spent under the other.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let kind = match self {
            Self::Rate { .. } => Kind::Rate,
            Self::Max { .. } => Kind::Max,
            Self::Quota { .. } => Kind::Quota,
        };
        Identity {
            kind,
            unit: Unit::Requests,
            period: self.frequency().period,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frequency().fmt(f)
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Requests.
    Requests,
}

/// Which kind of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A token bucket.
    Rate,
    /// A cap over any rolling window.
    Max,
    /// A count.
    Quota,
}

/// A limit's identity inside its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Rate, cap or count.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// Its period in nanoseconds.
    pub period: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequency(text: &str) -> Frequency {
        text.parse().unwrap()
    }

    fn burst(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    #[test]
    fn frequencies_are_read_and_written() {
        for text in ["20/s", "30/min", "5000/h", "1000/day", "1/3s", "7/2day"] {
            assert_eq!(frequency(text).to_string(), text);
        }
        assert_eq!(frequency("1/60s").to_string(), "1/min");
        assert_eq!(frequency(" 5 / min ").period(), Duration::from_secs(60));
    }

    #[test]
    fn what_is_no_frequency_says_what_would_be() {
        for text in [
            "", "5", "/s", "5/", "5/m", "1.5/s", "-1/s", "+1/s", "5/s/s", "x/s", "5/0s", "5/+3s",
        ] {
            let error = text.parse::<Frequency>().unwrap_err();
            assert!(error.to_string().contains("write N/s"), "{text}: {error}");
        }
        assert!(matches!(
            "0/s".parse::<Frequency>(),
            Err(LimitError::Zero(_))
        ));
    }

    #[test]
    fn a_number_that_does_not_fit_is_told_the_most_that_does() {
        for text in [
            "4294967296/s",
            "99999999999999999999/min",
            "5/99999999999999999999s",
            "5/18446744073709551615day",
            "9/400day",
        ] {
            let error = text.parse::<Frequency>().unwrap_err();
            assert_eq!(error, LimitError::Overflow(text.to_owned()));
        }
        assert!("4294967295/366day".parse::<Frequency>().is_ok());
    }

    #[test]
    fn a_window_cap_paces_what_its_burst_leaves() {
        let limit = Limit::max(frequency("30/min"), burst(5)).unwrap();
        assert_eq!(limit.interval(), (60 * SECOND).div_ceil(26));
        assert!(Limit::max(frequency("30/min"), burst(31)).is_err());
    }

    #[test]
    fn a_limit_whose_arithmetic_would_wrap_is_refused() {
        assert!(Limit::rate(frequency("1/day"), burst(213_505)).is_err());
        assert!(Limit::rate(frequency("1/day"), burst(10)).is_ok());
        assert!(Limit::rate(frequency("2000000000/s"), burst(1)).is_err());
    }

    #[test]
    fn the_interval_is_rounded_up() {
        assert_eq!(
            Limit::rate(frequency("3/s"), burst(1)).unwrap().interval(),
            333_333_334
        );
    }
}
