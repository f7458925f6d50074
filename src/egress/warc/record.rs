//! Records: a head, a block, two line ends, as one gzip member.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ring::rand::{SecureRandom as _, SystemRandom};
use url::{Position, Url};

use super::Payload;
use crate::egress::Request;
use crate::egress::reply::Reply;

/// An exchange without the body of its answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Exchange {
    uri: String,
    date: String,
    address: Option<String>,
    protocol: Option<&'static str>,
    request: Vec<u8>,
    body: Bytes,
    response: Vec<u8>,
}

impl std::fmt::Debug for Exchange {
    /// URL, heads and body may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange")
            .field("date", &self.date)
            .finish_non_exhaustive()
    }
}

impl Exchange {
    pub(super) fn of(
        request: &Request,
        url: &Url,
        reply: &Reply,
        user_agent: &str,
        date: String,
    ) -> Self {
        let version = reply.version();
        Self {
            uri: url.to_string(),
            date,
            address: reply.peer().map(|address| address.to_string()),
            protocol: match version {
                http::Version::HTTP_10 => Some("http/1.0"),
                http::Version::HTTP_11 => Some("http/1.1"),
                http::Version::HTTP_2 => Some("h2"),
                _ => None,
            },
            request: request_head(request, url, user_agent),
            body: request.body.clone(),
            response: response_head(reply.status(), version, reply.headers()),
        }
    }
}

/// The request as it was sent, but for its secrets; what the HTTP library adds by itself is added.
fn request_head(request: &Request, url: &Url, user_agent: &str) -> Vec<u8> {
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let mut head = format!("{} {target} HTTP/1.1\r\nhost: {host}\r\n", request.method).into_bytes();
    let headers = &request.headers;
    if !headers.contains_key(header::USER_AGENT) {
        field(&mut head, "user-agent", user_agent.as_bytes());
    }
    if !headers.contains_key(header::ACCEPT) {
        field(&mut head, "accept", b"*/*");
    }
    for (name, value) in headers {
        if !is_secret(name, value) {
            field(&mut head, name.as_str(), value.as_bytes());
        }
    }
    if !request.body.is_empty() {
        let length = request.body.len().to_string();
        field(&mut head, "content-length", length.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn response_head(status: u16, version: http::Version, headers: &HeaderMap) -> Vec<u8> {
    let version = match version {
        http::Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let reason = http::StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason());
    let reason = reason.unwrap_or_default();
    let mut head = format!("{version} {status} {reason}\r\n").into_bytes();
    for (name, value) in headers {
        // A reader would look for chunks where there are none.
        let name = match name.as_str() {
            "transfer-encoding" => "x-orig-transfer-encoding",
            name => name,
        };
        field(&mut head, name, value.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// Parts of names by which headers carry secrets.
const SECRETIVE: [&str; 10] = [
    "auth",
    "cookie",
    "credential",
    "csrf",
    "passw",
    "secret",
    "session",
    "signature",
    "token",
    "xsrf",
];

fn is_secret(name: &HeaderName, value: &HeaderValue) -> bool {
    let name = name.as_str();
    let is_key = name.ends_with("key") && name != "idempotency-key";
    value.is_sensitive() || is_key || SECRETIVE.iter().any(|part| name.contains(part))
}

/// The response and its request, in this order, as crawlers write them.
pub(super) fn pair<W: Write>(out: W, exchange: &Exchange, payload: &Payload) -> io::Result<W> {
    let (response, request) = (id()?, id()?);
    let Exchange {
        uri,
        date,
        address,
        protocol,
        ..
    } = exchange;
    let mut shared = format!("WARC-Target-URI: {uri}\r\nWARC-Date: {date}\r\n");
    for (name, value) in [
        ("WARC-IP-Address", address.as_deref()),
        ("WARC-Protocol", *protocol),
    ] {
        if let Some(value) = value {
            let _ = write!(shared, "{name}: {value}\r\n");
        }
    }
    let mut own = format!("WARC-Payload-Digest: {}\r\n", digest(payload)?);
    if matches!(payload, Payload::Beginning(_)) {
        own.push_str("WARC-Truncated: length\r\n");
    }
    let head = head(
        "response",
        &response,
        &format!("{shared}{own}"),
        "http; msgtype=response",
    );
    let length = exchange.response.len() as u64 + payload.len();
    let out = member(out, &head, length, |block| {
        block.write_all(&exchange.response)?;
        match payload {
            Payload::Whole(bytes) | Payload::Beginning(bytes) => block.write_all(bytes),
            Payload::File(path, length) => {
                let copied = io::copy(&mut File::open(path)?.take(*length), block)?;
                // The record says how long it is before it begins.
                (copied == *length).then_some(()).ok_or_else(cut_meanwhile)
            }
        }
    })?;
    let own = format!("WARC-Concurrent-To: <{response}>\r\n");
    let head = self::head(
        "request",
        &request,
        &format!("{shared}{own}"),
        "http; msgtype=request",
    );
    let length = (exchange.request.len() + exchange.body.len()) as u64;
    member(out, &head, length, |block| {
        block.write_all(&exchange.request)?;
        block.write_all(&exchange.body)
    })
}

fn cut_meanwhile() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "a body became shorter while it was copied into the archive",
    )
}

/// The record at the beginning of a file.
pub(super) fn info(file: &str, date: &str, user_agent: &str) -> io::Result<Vec<u8>> {
    let version = env!("CARGO_PKG_VERSION");
    let fields = format!(
        "software: tidegate/{version}\r\n\
         format: WARC File Format 1.1\r\n\
         conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
         http-header-user-agent: {user_agent}\r\n\
         description: Heads are rebuilt: names in lower case, HTTP/2 as HTTP/1.1; bodies without \
         transfer-encoding. Request headers that may hold a secret are left out: those taken from \
         the environment, and those named like authorization, cookie, token, key, secret or session.\r\n"
    );
    let own = format!("WARC-Date: {date}\r\nWARC-Filename: {file}\r\n");
    let head = head("warcinfo", &id()?, &own, "warc-fields");
    member(Vec::new(), &head, fields.len() as u64, |block| {
        block.write_all(fields.as_bytes())
    })
}

fn head(kind: &str, id: &str, own: &str, content: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{id}>\r\n{own}\
         Content-Type: application/{content}\r\n"
    )
}

fn member<W: Write>(
    out: W,
    head: &str,
    length: u64,
    block: impl FnOnce(&mut GzEncoder<W>) -> io::Result<()>,
) -> io::Result<W> {
    let mut member = GzEncoder::new(out, Compression::default());
    write!(member, "{head}Content-Length: {length}\r\n\r\n")?;
    block(&mut member)?;
    member.write_all(b"\r\n\r\n")?;
    member.finish()
}

/// SHA-1 in Base32, the one digest that every reader of WARC files knows. It tells damage and
/// repetition, no forgery: for that `body_path` has BLAKE3.
fn digest(payload: &Payload) -> io::Result<String> {
    let mut context = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    match payload {
        Payload::Whole(bytes) | Payload::Beginning(bytes) => context.update(bytes),
        Payload::File(path, length) => {
            let mut file = File::open(path)?.take(*length);
            let mut piece = vec![0; 1 << 16];
            loop {
                let read = file.read(&mut piece)?;
                if read == 0 {
                    break;
                }
                context.update(piece.get(..read).unwrap_or_default());
            }
        }
    }
    Ok(format!("sha1:{}", base32(context.finish().as_ref())))
}

/// RFC 4648, section 6; 20 bytes need no padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let letter = |five: u64| {
        ALPHABET
            .get((five & 31) as usize)
            .map_or('A', |letter| char::from(*letter))
    };
    let five_bytes = bytes.chunks(5).map(|chunk| {
        let padded = chunk.iter().chain(std::iter::repeat(&0)).take(5);
        padded.fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    });
    five_bytes
        .flat_map(|bits| (0..8).rev().map(move |place| bits >> (5 * place)))
        .map(letter)
        .collect()
}

/// A random UUID (RFC 9562, section 5.4).
fn id() -> io::Result<String> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    let bits = u128::from_be_bytes(bytes);
    let bits = bits & !(0xf000_u128 << 64) | 0x4000_u128 << 64;
    let bits = bits & !(0b11_u128 << 62) | 0b10_u128 << 62;
    let digits = format!("{bits:032x}");
    let mut id = "urn:uuid:".to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if matches!(place, 8 | 12 | 16 | 20) {
            id.push('-');
        }
        id.push(digit);
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(
            digest(&Payload::Whole(Bytes::new())).unwrap(),
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
        );
        for (text, encoded) in [("fooba", "MZXW6YTB"), ("1234567890", "GEZDGNBVGY3TQOJQ")] {
            assert_eq!(base32(text.as_bytes()), encoded);
        }
    }

    #[test]
    fn ids_are_random_uuids() {
        let (one, other) = (id().unwrap(), id().unwrap());
        assert_ne!(one, other);
        let parts: Vec<_> = one.strip_prefix("urn:uuid:").unwrap().split('-').collect();
        let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(
            parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']),
            "{one}"
        );
    }

    #[test]
    fn headers_that_may_hold_a_secret_are_left_out() {
        let mut request = Request::get("http://u:p@a.test:8080/x?y#z");
        for (name, kept) in [
            ("accept-language", true),
            ("if-none-match", true),
            ("idempotency-key", true),
            ("authorization", false),
            ("proxy-authorization", false),
            ("cookie", false),
            ("x-api-key", false),
            ("x-goog-iam-authority-selector", false),
            ("x-csrf", false),
            ("private-token", false),
            ("x-amz-signature", false),
        ] {
            let name = HeaderName::from_static(name);
            request
                .headers
                .insert(&name, HeaderValue::from_static("hunter2"));
            let url = Url::parse("http://a.test:8080/x?y").unwrap();
            let head = String::from_utf8(request_head(&request, &url, "me/1")).unwrap();
            assert_eq!(
                head.contains(&format!("{name}: hunter2\r\n")),
                kept,
                "{head}"
            );
            assert!(
                head.starts_with("GET /x?y HTTP/1.1\r\nhost: a.test:8080\r\nuser-agent: me/1\r\n"),
                "{head}"
            );
            let mut named = HeaderValue::from_static("hunter2");
            named.set_sensitive(true);
            assert!(is_secret(&name, &named));
        }
    }
}
