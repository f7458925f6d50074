//! When a target that refuses a call wants to see us again.
//!
//! A wait that is read too short turns one refusal into a row of them, and one that is read
//! from a broken header can park a target for good. So whatever is in doubt is rounded up, and
//! whatever makes no sense is kept apart from silence: the caller falls back to its own back-off
//! in both cases, but only one of them belongs in the record.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, HeaderValue};

/// Longer waits than this (100 Julian years) are taken for a fault of the sender.
const LONGEST: Duration = Duration::from_secs(36_525 * 24 * 60 * 60);

/// Characters of a header that are kept for the record.
const QUOTED: usize = 80;

const TOO_MANY_REQUESTS: u16 = 429;
const SERVICE_UNAVAILABLE: u16 = 503;

/// What the headers of a response say about when to come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// No such header.
    Nothing,
    /// Come back after `wait`: more than zero and at most 100 years, counted from now.
    Wait {
        /// Whole seconds, or whole milliseconds where `retry-after-ms` was believed; rounded up.
        wait: Duration,
        /// The header that said so, such as `Retry-After: 120`: at most 80 characters of
        /// printable ASCII, others replaced by `?`.
        header: String,
    },
    /// There is a header, and it cannot be acted upon: unreadable, not in the future, or beyond
    /// 100 years.
    Nonsense {
        /// The header at fault, quoted as in [`Asked::Wait`].
        header: String,
    },
}

/// Reads `Retry-After` (RFC 9110 section 10.2.3) and `retry-after-ms`.
///
/// Seconds may have a fraction. A date may be in any of the three formats of RFC 9110 section
/// 5.6.7 and is read against the response's own `Date`, so that a wrong clock on either side
/// cancels out; without a readable `Date` it is read against `now`. A usable `retry-after-ms` is
/// believed before `Retry-After`; of several values of one header the longest counts.
///
/// The status is not looked at: see [`is_throttle`].
pub fn asked(headers: &HeaderMap, now: SystemTime) -> Asked {
    let clock = headers
        .get(DATE)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| httpdate::parse_http_date(text).ok())
        .unwrap_or(now);

    let fine = longest(headers, "retry-after-ms", milliseconds);
    if let Asked::Wait { .. } = fine {
        return fine;
    }
    match longest(headers, "Retry-After", |text| {
        seconds(text).or_else(|| until(text, clock))
    }) {
        Asked::Nothing => fine,
        coarse => coarse,
    }
}

/// Whether a response is the target's *not now*: 429 always, 503 where it speaks of coming back
/// at all, however badly; no other status, whatever its headers.
pub fn is_throttle(status: u16, asked: &Asked) -> bool {
    match status {
        TOO_MANY_REQUESTS => true,
        SERVICE_UNAVAILABLE => *asked != Asked::Nothing,
        _ => false,
    }
}

fn longest(headers: &HeaderMap, name: &str, read: impl Fn(&str) -> Option<Duration>) -> Asked {
    let mut found = Asked::Nothing;
    for value in headers.get_all(name) {
        let asked = value
            .to_str()
            .ok()
            .and_then(|text| read(text.trim()))
            .filter(|wait| !wait.is_zero() && *wait <= LONGEST);
        found = match (found, asked) {
            (Asked::Wait { wait, header }, asked) if asked <= Some(wait) => {
                Asked::Wait { wait, header }
            }
            (_, Some(wait)) => Asked::Wait {
                wait,
                header: quoted(name, value),
            },
            (Asked::Nothing, None) => Asked::Nonsense {
                header: quoted(name, value),
            },
            (earlier, None) => earlier,
        };
    }
    found
}

fn milliseconds(text: &str) -> Option<Duration> {
    rounded_up(text).map(Duration::from_millis)
}

fn seconds(text: &str) -> Option<Duration> {
    rounded_up(text).map(Duration::from_secs)
}

fn until(text: &str, clock: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    let left = date.duration_since(clock).ok()?;
    let begun = u64::from(left.subsec_nanos() > 0);
    left.as_secs().checked_add(begun).map(Duration::from_secs)
}

/// Reads `1*DIGIT [ "." 1*DIGIT ]`; a float would take signs, exponents, `inf` and `NaN` as well,
/// and lose the end of a long fraction.
fn rounded_up(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let begun = u64::from(fraction.bytes().any(|digit| digit != b'0'));
    whole.parse::<u64>().ok()?.checked_add(begun)
}

// A header is the target's text: what it could do to a terminal or a log stays outside.
fn quoted(name: &str, value: &HeaderValue) -> String {
    let printable = value.as_bytes().iter().map(|&byte| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '?',
    });
    format!("{name}: ")
        .chars()
        .chain(printable)
        .take(QUOTED)
        .collect()
}

#[cfg(test)]
mod tests;
