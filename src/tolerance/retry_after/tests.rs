use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::{Asked, asked, is_throttle};

const CASES: &str = include_str!("../../../tests/cases/retry-after.tsv");

fn our_clock() -> SystemTime {
    httpdate::parse_http_date("Tue, 01 Dec 2026 03:41:00 GMT").unwrap()
}

/// Turns `\t` and `\xNN` of the table into the bytes they stand for.
fn bytes(text: &str) -> Vec<u8> {
    let mut rest = text.bytes();
    let mut bytes = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b't') => bytes.push(b'\t'),
            Some(b'x') => {
                let code: Vec<u8> = rest.by_ref().take(2).collect();
                let code = String::from_utf8(code).unwrap();
                bytes.push(u8::from_str_radix(&code, 16).unwrap());
            }
            other => panic!("unknown escape {other:?} in {text:?}"),
        }
    }
    bytes
}

fn headers(column: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in column.split('|').filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(&bytes(value)).unwrap(),
        );
    }
    headers
}

fn one(value: &[u8]) -> HeaderMap {
    HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_bytes(value).unwrap())])
}

fn outcome(asked: &Asked) -> String {
    match asked {
        Asked::Nothing => "nothing".to_owned(),
        Asked::Nonsense { .. } => "nonsense".to_owned(),
        Asked::Wait { wait, header } if header.starts_with("retry-after-ms: ") => {
            format!("{}ms", wait.as_millis())
        }
        Asked::Wait { wait, .. } => {
            assert_eq!(wait.subsec_nanos(), 0);
            format!("{}s", wait.as_secs())
        }
    }
}

#[test]
fn every_row_of_the_table_holds() {
    let mut rows = 0;
    for row in CASES.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [status, heads, wait, throttled, _why] = columns[..] else {
            panic!("not five columns: {row:?}");
        };
        let found = asked(&headers(heads), our_clock());
        assert_eq!(outcome(&found), wait, "{row:?}");
        let throttle = is_throttle(status.parse().unwrap(), &found);
        match throttled {
            "yes" => assert!(throttle, "{row:?}"),
            "no" => assert!(!throttle, "{row:?}"),
            _ => panic!("neither yes nor no: {row:?}"),
        }
        rows += 1;
    }
    assert_eq!(rows, CASES.lines().count() - 2);
}

#[test]
fn a_fraction_of_our_own_second_is_rounded_up() {
    let headers = one(b"Tue, 01 Dec 2026 03:41:30 GMT");
    for (late, wait) in [(1, 30), (999_999_999, 30), (1_000_000_000, 29)] {
        let now = our_clock() + Duration::from_nanos(late);
        let Asked::Wait { wait: found, .. } = asked(&headers, now) else {
            panic!("no wait at {late} ns");
        };
        assert_eq!(found, Duration::from_secs(wait), "{late} ns");
    }
}

#[test]
fn a_clock_before_the_epoch_is_no_reason_to_panic() {
    let headers = one(b"Thu, 01 Jan 1970 00:00:30 GMT");
    let now = SystemTime::UNIX_EPOCH - Duration::from_secs(30);
    assert_eq!(outcome(&asked(&headers, now)), "60s");
}

#[test]
fn the_header_that_decided_is_quoted_as_seen() {
    let cases = [
        ("Retry-After: 120", "Retry-After: 120"),
        ("retry-after: 5|Retry-After: 60", "Retry-After: 60"),
        ("Retry-After: 1|retry-after-ms: 350", "retry-after-ms: 350"),
        ("Retry-After: 4|retry-after-ms: x", "Retry-After: 4"),
        ("Retry-After: x|retry-after-ms: y", "Retry-After: x"),
        ("Retry-After: first|Retry-After: 2nd", "Retry-After: first"),
        ("Retry-After: -3", "Retry-After: -3"),
        ("Retry-After: ", "Retry-After: "),
    ];
    for (heads, quote) in cases {
        match asked(&headers(heads), our_clock()) {
            Asked::Wait { header, .. } | Asked::Nonsense { header } => assert_eq!(header, quote),
            Asked::Nothing => panic!("nothing in {heads:?}"),
        }
    }
}

#[test]
fn a_hostile_header_is_cut_and_made_printable() {
    let Asked::Nonsense { header } = asked(&one("é\tx".as_bytes()), our_clock()) else {
        panic!("taken for sense");
    };
    assert_eq!(header, "Retry-After: ???x");

    for byte in (0..=u8::MAX).filter(|byte| HeaderValue::from_bytes(&[*byte]).is_ok()) {
        match asked(&one(&[byte; 8_000]), our_clock()) {
            Asked::Nonsense { header } => {
                assert_eq!(header.len(), 80);
                assert!(header.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            }
            other => panic!("{byte}: {other:?}"),
        }
    }
}

#[test]
fn only_429_and_503_can_be_a_refusal_to_come_now() {
    let wait = asked(&one(b"1"), our_clock());
    let nonsense = asked(&one(b"x"), our_clock());
    for status in 0..=u16::MAX {
        assert_eq!(is_throttle(status, &Asked::Nothing), status == 429);
        for spoken in [&wait, &nonsense] {
            assert_eq!(is_throttle(status, spoken), matches!(status, 429 | 503));
        }
    }
}
