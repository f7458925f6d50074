//! Single values as a file spells them. Every error says what would be right.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use ipnet::IpNet;

use crate::target::locate;

/// Past it a margin says more about the network than about a call's delay.
const MARGIN_LIMIT: Duration = Duration::from_secs(10);
/// A header line of which this is a part must pass every server.
const MAX_CONTACT_BYTES: usize = 200;

/// Why a text is not the value that belongs there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    #[error(
        "`{0}` is not a span of time: write a whole number and its unit, such as 25ms, 60s, 5min, 1h or 7d"
    )]
    Duration(String),
    #[error("a timeout of zero would end every call: write how long to wait, such as 60s")]
    ZeroTimeout,
    #[error("`{0}` is less than a day, and whole days are let go: write such as 90d")]
    Retention(String),
    #[error("`{0}` is too long for a difference between delays: write less than 10s")]
    Margin(String),
    #[error(
        "`{0}` is not a size: write a whole number and its unit, such as 500MB, 1GiB or 20GB (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
    )]
    Size(String),
    #[error("a size of zero would cut every answer: write the most bytes a body may have")]
    ZeroSize,
    #[error("`{0}` is not an address range: write such as 127.0.0.0/8 or fd00::/8")]
    Range(String),
    #[error("`{text}` names an address inside a range: write {range} or {address}")]
    HostBits {
        text: String,
        range: IpNet,
        address: IpNet,
    },
    #[error("`{0}` is an IPv4 range in IPv6 clothes: write it as IPv4, such as 127.0.0.0/8")]
    MappedRange(String),
    #[error("`{0}` is not an address: write such as 127.0.0.1 or ::1")]
    Address(String),
    #[error("`{0}` is not a host name ({1}): write a name without scheme, port or path")]
    HostName(String, String),
    #[error(
        "does not fit into a header: write 1 to 200 printable ASCII characters without ( ) and \\, such as ops@example.org"
    )]
    Contact,
    #[error("`{0}` is not a date: write YYYY-MM-DD")]
    Date(String),
    #[error("is empty: write it out or leave the key out")]
    Empty,
    #[error("`{0}` is no name: write printable characters without space at the ends")]
    Name(String),
    #[error("`~` is not read as a home folder here: write the whole path")]
    Tilde,
}

/// `25ms`, `60s`, `5min` (or `5m`), `1h`, `7d`.
pub(super) fn duration(text: &str) -> Result<Duration, ValueError> {
    let error = || ValueError::Duration(text.to_owned());
    let (count, unit) = number_and_unit(text).ok_or_else(error)?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(error()),
    };
    let millis = count.checked_mul(millis).ok_or_else(error)?;
    Ok(Duration::from_millis(millis))
}

/// A duration that is not zero.
pub(super) fn timeout(text: &str) -> Result<Duration, ValueError> {
    match duration(text)? {
        Duration::ZERO => Err(ValueError::ZeroTimeout),
        timeout => Ok(timeout),
    }
}

/// A duration of at least a day.
pub(super) fn retention(text: &str) -> Result<Duration, ValueError> {
    let retention = duration(text)?;
    if retention < Duration::from_hours(24) {
        return Err(ValueError::Retention(text.to_owned()));
    }
    Ok(retention)
}

/// A duration below ten seconds; zero means that calls arrive as they leave.
pub(super) fn margin(text: &str) -> Result<Duration, ValueError> {
    let margin = duration(text)?;
    if margin >= MARGIN_LIMIT {
        return Err(ValueError::Margin(text.to_owned()));
    }
    Ok(margin)
}

/// `500MB`, `1GiB`: powers of 1000 by the SI, powers of 1024 by IEC 80000-13.
pub(super) fn size(text: &str) -> Result<u64, ValueError> {
    let error = || ValueError::Size(text.to_owned());
    let (count, unit) = number_and_unit(text).ok_or_else(error)?;
    let bytes: u64 = match unit {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(error()),
    };
    count.checked_mul(bytes).ok_or_else(error)
}

/// A size that is not zero.
pub(super) fn body_size(text: &str) -> Result<u64, ValueError> {
    NonZeroU64::new(size(text)?)
        .map(NonZeroU64::get)
        .ok_or(ValueError::ZeroSize)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let count = text.strip_suffix(unit)?.parse().ok()?;
    Some((count, unit.trim_start()))
}

/// `127.0.0.0/8`; a bare address is a range of one.
pub(super) fn range(text: &str) -> Result<IpNet, ValueError> {
    let error = |_| ValueError::Range(text.to_owned());
    let range = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse::<IpNet>().map_err(error)?,
    };
    if range != range.trunc() {
        return Err(ValueError::HostBits {
            text: text.to_owned(),
            range: range.trunc(),
            address: range.addr().into(),
        });
    }
    // Such addresses are folded before they are compared, so it would match nothing.
    match range {
        IpNet::V6(v6) if v6.prefix_len() >= 96 && v6.addr().to_ipv4_mapped().is_some() => {
            Err(ValueError::MappedRange(text.to_owned()))
        }
        _ => Ok(range),
    }
}

/// An IP address, without port or zone.
pub(super) fn address(text: &str) -> Result<IpAddr, ValueError> {
    let address: IpAddr = text
        .parse()
        .map_err(|_| ValueError::Address(text.to_owned()))?;
    Ok(address.to_canonical())
}

/// A DNS name in the spelling that target keys use.
pub(super) fn host_name(text: &str) -> Result<String, ValueError> {
    let error = |why: &str| ValueError::HostName(text.to_owned(), why.to_owned());
    if text.contains([':', '/', '\\', '?', '#', '@', '*']) {
        return Err(error("not a name alone"));
    }
    let located =
        locate(&format!("http://{text}")).map_err(|rejection| error(&rejection.detail))?;
    if located.origin.ip().is_some() {
        return Err(error("an address needs no resolving"));
    }
    Ok(located.origin.host().to_owned())
}

/// Text that can stand in the comment of a `User-Agent` (RFC 9110 section
/// 5.6.5), unquoted.
pub(super) fn contact(text: &str) -> Result<String, ValueError> {
    let plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"()\\".contains(&byte);
    let fits = !text.trim().is_empty() && text.len() <= MAX_CONTACT_BYTES;
    if fits && text.bytes().all(plain) {
        Ok(text.trim().to_owned())
    } else {
        Err(ValueError::Contact)
    }
}

/// A day, `YYYY-MM-DD`.
pub(super) fn date(text: &str) -> Result<String, ValueError> {
    let day = text.parse::<jiff::civil::Date>().ok();
    // The parser takes other spellings too; records are compared as text.
    day.map(|day| day.to_string())
        .filter(|day| day == text)
        .ok_or_else(|| ValueError::Date(text.to_owned()))
}

/// Any text but none.
pub(super) fn words(text: &str) -> Result<String, ValueError> {
    if text.trim().is_empty() {
        return Err(ValueError::Empty);
    }
    Ok(text.to_owned())
}

/// A name that fits into one line of a listing.
pub(super) fn name(text: &str) -> Result<String, ValueError> {
    let plain = text.trim() == text && !text.chars().any(char::is_control);
    if text.is_empty() || !plain {
        return Err(ValueError::Name(text.to_owned()));
    }
    Ok(text.to_owned())
}

/// A path as it is written.
pub(super) fn path(text: &str) -> Result<String, ValueError> {
    if text == "~" || text.starts_with("~/") {
        return Err(ValueError::Tilde);
    }
    words(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read_in_every_unit() {
        for (text, millis) in [
            ("0s", 0),
            ("25ms", 25),
            ("60s", 60_000),
            ("5m", 300_000),
            ("5min", 300_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
            ("90 s", 90_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "+5s",
            "1.5s",
            "5sec",
            "5S",
            "5M",
            "1h30m",
            "5s ",
            "5µs",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            let error = duration(text).unwrap_err().to_string();
            assert!(error.contains("such as 25ms"), "{text}: {error}");
        }
    }

    #[test]
    fn a_timeout_is_not_zero_and_a_margin_is_below_ten_seconds() {
        assert_eq!(timeout("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(timeout("0ms"), Err(ValueError::ZeroTimeout));
        assert_eq!(margin("0s"), Ok(Duration::ZERO));
        assert_eq!(margin("9999ms"), Ok(Duration::from_millis(9_999)));
        assert_eq!(margin("10s"), Err(ValueError::Margin("10s".to_owned())));
    }

    #[test]
    fn sizes_are_read_in_every_unit() {
        for (text, bytes) in [
            ("0B", 0),
            ("1B", 1),
            ("2kB", 2_000),
            ("2KB", 2_000),
            ("500MB", 500_000_000),
            ("20GB", 20_000_000_000),
            ("3TB", 3_000_000_000_000),
            ("1KiB", 1_024),
            ("1MiB", 1_048_576),
            ("1GiB", 1_073_741_824),
            ("1TiB", 1_099_511_627_776),
            ("64 MiB", 67_108_864),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "5",
            "MB",
            "-1MB",
            "1.5GB",
            "5mb",
            "5M",
            "5Gi",
            "5PB",
            "99999999999TiB",
        ] {
            let error = size(text).unwrap_err().to_string();
            assert!(error.contains("such as 500MB"), "{text}: {error}");
        }
        assert_eq!(body_size("0GB"), Err(ValueError::ZeroSize));
    }

    #[test]
    fn a_range_is_one_that_can_match() {
        for (text, canonical) in [
            ("127.0.0.0/8", "127.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("fd00::/8", "fd00::/8"),
            ("::1", "::1/128"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(range(text).unwrap().to_string(), canonical, "{text}");
        }
        for (text, right) in [
            ("127.0.0.1/8", "write 127.0.0.0/8 or 127.0.0.1/32"),
            ("fd00::1/8", "write fd00::/8 or fd00::1/128"),
            ("::ffff:127.0.0.0/104", "write it as IPv4"),
            ("::ffff:10.0.0.1", "write it as IPv4"),
            ("localhost", "write such as 127.0.0.0/8"),
            ("10.0.0.0/33", "write such as 127.0.0.0/8"),
            ("10.0.0.0-10.0.0.9", "write such as 127.0.0.0/8"),
            ("", "write such as 127.0.0.0/8"),
        ] {
            let error = range(text).unwrap_err().to_string();
            assert!(error.contains(right), "{text}: {error}");
        }
    }

    #[test]
    fn pinned_names_are_spelled_like_target_keys() {
        for (text, name) in [
            ("API.example.org.", "api.example.org"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(host_name(text).unwrap(), name);
        }
        for text in [
            "",
            "127.0.0.1",
            "[::1]",
            "::1",
            "0x7f.1",
            "http://a.test",
            "a.test:80",
            "a.test/x",
            "u@a.test",
            "*.a.test",
            "a..test",
        ] {
            assert!(host_name(text).is_err(), "{text}");
        }
        assert_eq!(address("::ffff:127.0.0.1"), address("127.0.0.1"));
        assert!(address("fe80::1%eth0").is_err() && address("127.0.0.1:80").is_err());
    }

    #[test]
    fn a_contact_cannot_break_out_of_its_header() {
        for text in ["ops@example.org", "https://example.org/bot", "A B <a@b.c>"] {
            assert_eq!(contact(text).as_deref(), Ok(text));
        }
        let long = "x".repeat(MAX_CONTACT_BYTES + 1);
        for text in [
            "",
            "  ",
            "a\r\nb: c",
            "a\0",
            "é@example.org",
            "a)b",
            "a(b",
            "a\\b",
            &long,
        ] {
            assert_eq!(contact(text), Err(ValueError::Contact), "{text}");
        }
    }

    #[test]
    fn a_date_is_a_day_of_the_calendar_in_one_spelling() {
        for text in ["2026-12-01", "2024-02-29"] {
            assert_eq!(date(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "2026-13-01",
            "2025-02-29",
            "2026-12-1",
            "20261201",
            "01.12.2026",
            "2026-12-01T00:00:00",
            "+002026-12-01",
            "yesterday",
        ] {
            let error = date(text).unwrap_err().to_string();
            assert!(error.contains("YYYY-MM-DD"), "{text}: {error}");
        }
    }

    #[test]
    fn a_path_that_would_be_taken_by_its_letters_is_refused() {
        assert_eq!(
            path("/var/lib/tidegate").as_deref(),
            Ok("/var/lib/tidegate")
        );
        assert_eq!(path("data~").as_deref(), Ok("data~"));
        for text in ["~", "~/data"] {
            assert_eq!(path(text), Err(ValueError::Tilde));
        }
        assert_eq!(path(""), Err(ValueError::Empty));
    }
}
