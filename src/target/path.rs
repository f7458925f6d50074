//! The normal form of a path, for matching only.
//!
//! Two spellings of one resource must fall into one class, or an agent that escapes a letter would
//! find another budget. The form is the one of RFC 3986 section 6.2.2, plus merged and dropped
//! slashes; applying it twice changes nothing.

use percent_encoding::percent_encode_byte;

/// The normal form: dot segments resolved, unreserved characters decoded, everything that is not a
/// `pchar` of RFC 3986 encoded (a stray `%` too), hex upper case, slashes merged, none at the end.
pub(super) fn normalized_path(raw: &str) -> String {
    if is_normal(raw) {
        return raw.to_owned();
    }
    let mut normal = String::with_capacity(raw.len() + 1);
    for segment in raw.split('/').filter(|segment| !segment.is_empty()) {
        let parent_end = normal.len();
        normal.push('/');
        push_normal(segment, &mut normal);
        match normal.get(parent_end..) {
            Some("/.") => normal.truncate(parent_end),
            Some("/..") => {
                normal.truncate(parent_end);
                let grandparent_end = normal.rfind('/').unwrap_or(0);
                normal.truncate(grandparent_end);
            }
            _ => {}
        }
    }
    if normal.is_empty() {
        normal.push('/');
    }
    normal
}

/// Appends the normal form of text that holds no slash.
pub(super) fn push_normal(text: &str, normal: &mut String) {
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%'
            && let Some((value, after)) = hex_pair(tail)
        {
            rest = after;
            if is_unreserved(value) {
                normal.push(char::from(value));
            } else {
                normal.push_str(percent_encode_byte(value));
            }
        } else if is_pchar(byte) {
            normal.push(char::from(byte));
        } else {
            normal.push_str(percent_encode_byte(byte));
        }
    }
}

/// True only for what normalisation would leave alone; most paths are, and need one pass.
fn is_normal(path: &str) -> bool {
    let mut previous = 0;
    for byte in path.bytes() {
        let fits = match byte {
            b'/' => previous != b'/',
            // A segment that begins with a dot may be a dot segment.
            b'.' => previous != b'/',
            _ => is_pchar(byte),
        };
        if !fits {
            return false;
        }
        previous = byte;
    }
    path.starts_with('/') && (previous != b'/' || path.len() == 1)
}

fn hex_pair(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, after @ ..] = bytes else {
        return None;
    };
    let value = hex_digit(*high)? << 4 | hex_digit(*low)?;
    Some((value, after))
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// RFC 3986 section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986 section 3.3, without the percent-encoded ones.
fn is_pchar(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'!' | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_path_meet_in_one_form() {
        for (raw, normal) in [
            ("", "/"),
            ("/", "/"),
            ("///", "/"),
            ("/a/b", "/a/b"),
            ("/a/b/", "/a/b"),
            ("//a///b//", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/../../a", "/a"),
            ("/a/%2e%2E/b", "/b"),
            ("/.well-known/x", "/.well-known/x"),
            ("/...", "/..."),
            ("/%7e%41%2d%2E%5F", "/~A-._"),
            ("/a%2fb", "/a%2Fb"),
            ("/%21!", "/%21!"),
            ("/100%", "/100%25"),
            ("/%%34%31", "/%2541"),
            ("/%zz%4", "/%25zz%254"),
            ("/a|b^c[d]", "/a%7Cb%5Ec%5Bd%5D"),
            ("/bücher x", "/b%C3%BCcher%20x"),
        ] {
            assert_eq!(normalized_path(raw), normal, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn the_normal_form_is_its_own_normal_form(raw in "(/|[.]|%|%2[eE5fF]|%3[0-9]|[a-f0-9]|\\PC){0,24}") {
            let once = normalized_path(&raw);
            prop_assert_eq!(normalized_path(&once), once.clone());
            prop_assert!(is_normal(&once) || once.contains('%') || once.contains("/."));
        }
    }
}
