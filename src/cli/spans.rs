//! Spans and instants as they are typed.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::Date;

/// `90s`, `30min`, `2h`, `7d`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    crate::config::duration(text).map_err(|error| error.to_string())
}

/// A span of whole seconds, at least one.
pub(super) fn window(text: &str) -> Result<Duration, String> {
    let width = span(text)?;
    if width.as_secs() == 0 || width.subsec_nanos() != 0 {
        return Err("a window is a whole number of seconds, at least 1s".to_owned());
    }
    Ok(width)
}

/// RFC 3339 with any offset, a date in UTC, or a span back from now.
pub(super) fn instant(text: &str) -> Result<SystemTime, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.into());
    }
    if let Ok(date) = text.parse::<Date>() {
        let midnight = date
            .to_zoned(jiff::tz::TimeZone::UTC)
            .map_err(|error| error.to_string())?;
        return Ok(midnight.timestamp().into());
    }
    let back = span(text).map_err(|_| {
        "not a time: write 2026-12-01T03:41:00Z, 2026-12-01, or a span back from now such as 2h"
            .to_owned()
    })?;
    #[expect(
        clippy::disallowed_methods,
        reason = "what a person calls now is the wall clock's"
    )]
    let now = SystemTime::now();
    now.checked_sub(back)
        .ok_or_else(|| "before the beginning of time".to_owned())
}

/// `500MB`, `1GiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    match crate::config::size(text) {
        Ok(0) => Err("a size of at least 1B".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number of at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_three_spellings() {
        let at = instant("2026-12-01T03:41:00+02:00").unwrap();
        assert_eq!(at, instant("2026-12-01T01:41:00Z").unwrap());
        assert!(instant("2026-12-01").unwrap() < at);
        assert!(instant("2h").is_ok());
        assert!(instant("yesterday").unwrap_err().contains("2026-12-01"));
    }

    #[test]
    fn no_calls_at_once_is_no_number() {
        assert!(at_least_one("0").is_err() && at_least_one("x").is_err());
        assert_eq!(at_least_one("7"), Ok(7));
    }
}
