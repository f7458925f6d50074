//! Paths without what names a person or opens a door.
//!
//! A path is kept in the record for months, and it is where e-mail addresses, card numbers and
//! session tokens end up when an API puts them into its URLs. Masking works by the look of a
//! segment and rather masks one too many: an identifier that is lost costs a reviewer little.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Escaped text is sometimes escaped again on its way; deeper nesting is not met in practice.
const MAX_DECODINGS: usize = 3;
/// From this length on a mix of letters and digits is taken for a token.
const TOKEN_LENGTH: usize = 24;
/// The length of an MD5 digest in hex, the shortest that is used as a secret.
const HEX_LENGTH: usize = 32;
/// ISO/IEC 7812 allows up to 19 digits; cards of 13 are still about.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;
/// Local numbers have seven digits; E.164 allows fifteen.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// The path with every segment that looks like an e-mail address, a card or phone number, or a
/// token replaced by `{email}`, `{card}`, `{phone}` or `{token}`; escaped spellings are seen
/// through. The other segments are as they were.
#[must_use]
pub fn masked_path(path: &str) -> String {
    let mut masked = String::with_capacity(path.len());
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            masked.push('/');
        }
        masked.push_str(mask(&decoded(segment)).unwrap_or(segment));
    }
    masked
}

fn mask(text: &str) -> Option<&'static str> {
    if has_email(text) {
        Some("{email}")
    } else if has_token(text) {
        Some("{token}")
    } else if has_card_number(text) {
        Some("{card}")
    } else if text.split([':', ';', '=', ',']).any(is_phone_number) {
        Some("{phone}")
    } else {
        None
    }
}

fn decoded(segment: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(segment);
    for _ in 0..MAX_DECODINGS {
        if !text.contains('%') {
            break;
        }
        text = Cow::Owned(percent_decode_str(&text).decode_utf8_lossy().into_owned());
    }
    text
}

fn has_email(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let local = text.get(..at).and_then(|before| before.chars().next_back());
        let domain = text.get(at + 1..).unwrap_or_default();
        let is_local = |c: char| !c.is_whitespace() && c != '@' && c != '/';
        local.is_some_and(is_local) && begins_with_domain(domain)
    })
}

/// At least two labels, the last of which begins with a letter: `react@18.2.0` is no address.
fn begins_with_domain(text: &str) -> bool {
    let outside = |c: char| !c.is_alphanumeric() && c != '.' && c != '-';
    let domain = text.split(outside).next().unwrap_or_default();
    let domain = domain.trim_end_matches(['.', '-']);
    domain.rsplit_once('.').is_some_and(|(rest, last)| {
        !rest.is_empty() && last.len() > 1 && last.starts_with(char::is_alphabetic)
    })
}

fn has_token(text: &str) -> bool {
    is_jwt(text)
        || text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
            .any(is_token)
}

fn is_token(word: &str) -> bool {
    let letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    (letter && digit && word.len() >= TOKEN_LENGTH) || (hex && word.len() >= HEX_LENGTH)
}

/// RFC 7519: base64url parts between dots, the first a JSON object, so that it begins with `{"`.
fn is_jwt(text: &str) -> bool {
    let base64url = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    text.starts_with("eyJ") && text.split('.').count() >= 3 && text.split('.').all(base64url)
}

/// Digits in one run, or in groups parted by single spaces or dashes.
fn has_card_number(text: &str) -> bool {
    let mut digits = 0;
    let mut parted = false;
    for c in text.chars().chain(['/']) {
        match c {
            '0'..='9' => {
                digits += 1;
                parted = false;
            }
            ' ' | '-' if digits > 0 && !parted => parted = true,
            _ => {
                if CARD_DIGITS.contains(&digits) {
                    return true;
                }
                digits = 0;
                parted = false;
            }
        }
    }
    false
}

fn is_phone_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let marks = text.bytes().filter(|byte| b"+-()".contains(byte)).count();
    let others = text.len() - digits - marks;
    let spaces = text.bytes().filter(|byte| b" .".contains(byte)).count();
    PHONE_DIGITS.contains(&digits) && marks > 0 && others == spaces && !is_date(text)
}

/// Dates have a phone number's look, are common in paths and name nobody.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next_is = |length: usize, max: u16| {
        parts.next().is_some_and(|part| {
            part.len() == length && part.parse::<u16>().is_ok_and(|n| (1..=max).contains(&n))
        })
    };
    next_is(4, 9999) && next_is(2, 12) && next_is(2, 31) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_names_a_person_or_opens_a_door_is_masked() {
        for (segment, masked) in [
            ("bob@example.com", "{email}"),
            ("bob%40example.com", "{email}"),
            ("bob%2540example.com", "{email}"),
            ("mailto:bob.o'neil+x@mail.example.co.uk;v=1", "{email}"),
            ("m%C3%BCller@b%C3%BCcher.example", "{email}"),
            ("bob@example.com.", "{email}"),
            ("%22bob%20x%22@example.com", "{email}"),
            ("+491701234567", "{phone}"),
            ("%2B49%20170%201234567", "{phone}"),
            ("(555)123-4567", "{phone}"),
            ("555-1234", "{phone}"),
            ("tel:+49-170-1234567", "{phone}"),
            ("v;phone=%2B491701234567", "{phone}"),
            ("+1.555.123.4567", "{phone}"),
            ("4111111111111111", "{card}"),
            ("4111-1111-1111-1111", "{card}"),
            ("4111%201111%201111%201111", "{card}"),
            ("card:4222222222222.pdf", "{card}"),
            ("6304000000000000000", "{card}"),
            ("ghp_16C7e42F292c6912E7710c83", "{token}"),
            ("550e8400-e29b-41d4-a716-446655440000", "{token}"),
            ("d41d8cd98f00b204e9800998ecf8427e", "{token}"),
            ("abcdefabcdefabcdefabcdefabcdefab", "{token}"),
            ("app.d41d8cd98f00b204e9800998ecf8427e.js", "{token}"),
            ("token=sk-live1234567890abcdefgh", "{token}"),
            ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.", "{token}"),
            ("eyJhbGciOiJub25lIn0%2EeyJzdWIiOiJ4In0%2Ec2ln", "{token}"),
        ] {
            assert_eq!(masked_path(segment), masked, "{segment}");
        }
    }

    #[test]
    fn ordinary_segments_stay_as_they_are() {
        for path in [
            "",
            "/",
            "/users/42",
            "/a//b/",
            "/repos/rust-lang/rust/issues/1234567",
            "/2026-12-01/report",
            "/2026-12-01,2026-12-31",
            "/@types/node",
            "/a%2F@scope.example",
            "/npm/react@18.2.0/umd/react.min.js",
            "/user@localhost",
            "/%7E/a%2Fb/100%25",
            "/a-perfectly-ordinary-but-long-title",
            "/internationalization-and-localization",
            "/123456789012",
            "/12345678901234567890",
            "/192.168.100.200",
            "/v1.2.3-4",
            "/eyJ.x",
            "/deadbeef",
            "/(1)-+",
        ] {
            assert_eq!(masked_path(path), path);
        }
    }

    #[test]
    fn only_the_segment_concerned_is_masked() {
        assert_eq!(
            masked_path("/users/bob%40example.com/cards/4111111111111111/%7Ex"),
            "/users/{email}/cards/{card}/%7Ex"
        );
    }

    proptest! {
        #[test]
        fn masking_keeps_the_number_of_segments_and_is_final(path in "(/|@|%40|%2[5bB]|[0-9]{1,9}|[a-z.+-]|\\PC){0,40}") {
            let masked = masked_path(&path);
            prop_assert_eq!(masked.matches('/').count(), path.matches('/').count());
            prop_assert_eq!(masked_path(&masked), masked);
        }
    }
}
