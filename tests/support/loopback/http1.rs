//! HTTP/1.1 (RFC 9112) as text. Strict: what two readers could read in two ways is malformed, for a
//! judge must not guess.

use super::log::Request;

/// How long the body of a request is (RFC 9112 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many bytes.
    Length(u64),
    /// Until the terminal chunk.
    Chunked,
}

/// What becomes of the connection after the response (RFC 9112 §9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It stays open.
    KeepAlive,
    /// It is closed.
    Close,
}

/// A request's head and what it says about the bytes that follow.
#[derive(Debug)]
pub struct Head {
    /// The head as the script and the log see it.
    pub request: Request,
    /// The extent of the body.
    pub framing: Framing,
    /// The client's wish for the connection.
    pub persistence: Persistence,
}

impl Head {
    /// Reads a head, its empty line included. `None` if it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
        let mut request_line = lines.next()?.split(' ');
        let (method, path) = (request_line.next()?, request_line.next()?);
        let version = request_line.next()?;
        if method.is_empty() || path.is_empty() || request_line.next().is_some() {
            return None;
        }
        let headers = lines.map(header).collect::<Option<Vec<_>>>()?;
        Some(Self {
            framing: framing(&headers)?,
            persistence: persistence(version, &headers)?,
            request: Request::now(method, path, headers),
        })
    }
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let well_formed = !name.is_empty() && !name.contains(char::is_whitespace);
    well_formed.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
}

fn values<'a>(headers: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    headers
        .iter()
        .filter(|(header, _)| header == name)
        .map(|(_, value)| value.as_str())
        .collect()
}

fn framing(headers: &[(String, String)]) -> Option<Framing> {
    let lengths = values(headers, "content-length");
    let encodings = values(headers, "transfer-encoding");
    match (lengths.as_slice(), encodings.as_slice()) {
        ([], []) => Some(Framing::Length(0)),
        ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().ok().map(Framing::Length)
        }
        ([], [encoding]) if encoding.eq_ignore_ascii_case("chunked") => Some(Framing::Chunked),
        _ => None,
    }
}

fn persistence(version: &str, headers: &[(String, String)]) -> Option<Persistence> {
    let options = values(headers, "connection");
    let says = |wanted: &str| {
        options
            .iter()
            .flat_map(|value| value.split(','))
            .any(|option| option.trim().eq_ignore_ascii_case(wanted))
    };
    match version {
        "HTTP/1.1" if says("close") => Some(Persistence::Close),
        "HTTP/1.1" => Some(Persistence::KeepAlive),
        "HTTP/1.0" if says("keep-alive") => Some(Persistence::KeepAlive),
        "HTTP/1.0" => Some(Persistence::Close),
        _ => None,
    }
}

/// The length that a chunk's first line gives, extensions ignored (RFC 9112 §7.1). `None` if it is
/// malformed.
pub fn chunk_length(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?;
    let digits = line.split(';').next()?.trim_end();
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

/// A response's head, its empty line included.
pub fn response_head<'a>(
    status: u16,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    persistence: Persistence,
) -> Vec<u8> {
    let reason = http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or_default();
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if persistence == Persistence::Close {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}
