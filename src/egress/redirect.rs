//! A redirect is a new hop: a new key, a new token.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, LOCATION};
use url::Url;

use super::Request;

/// Headers that go along to another origin. All others may hold a secret that
/// was given to the first one only.
const PUBLIC: [HeaderName; 9] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::RANGE,
    header::USER_AGENT,
    // Without it a repeated call would be executed twice.
    HeaderName::from_static("idempotency-key"),
];

/// Where an answer sends its request, by RFC 9110, section 15.4. None when it
/// is a final answer. Whether the place may be called is for the gate to say.
#[must_use]
pub fn next_hop(request: &Request, status: u16, headers: &HeaderMap) -> Option<Request> {
    let keeps_method = match status {
        301 | 302 => request.method != "POST",
        303 => request.method == "HEAD",
        307 | 308 => true,
        _ => return None,
    };
    let location = String::from_utf8_lossy(headers.get(LOCATION)?.as_bytes());
    let from = Url::parse(&request.url).ok()?;
    let to = from.join(location.trim()).ok()?;
    let mut next = Request {
        url: to.to_string(),
        ..request.clone()
    };
    if !keeps_method {
        "GET".clone_into(&mut next.method);
        next.body = Bytes::new();
        next.headers.remove(header::CONTENT_TYPE);
    }
    if to.origin() != from.origin() {
        next.headers = PUBLIC
            .iter()
            .filter_map(|name| {
                next.headers
                    .get(name)
                    .map(|value| (name.clone(), value.clone()))
            })
            .collect();
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str) -> Request {
        let mut headers = HeaderMap::new();
        for name in [
            "authorization",
            "cookie",
            "x-api-key",
            "accept",
            "content-type",
        ] {
            headers.insert(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                "v".parse().unwrap(),
            );
        }
        Request {
            method: method.into(),
            url: "http://u:p@a.example/x/y?k=1".into(),
            headers,
            body: "b".into(),
        }
    }

    fn hop(method: &str, status: u16, location: &str) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, location.parse().unwrap());
        next_hop(&request(method), status, &headers).unwrap()
    }

    #[test]
    fn the_method_follows_the_status() {
        for (method, status, becomes) in [
            ("GET", 301, "GET"),
            ("POST", 301, "GET"),
            ("POST", 302, "GET"),
            ("PUT", 302, "PUT"),
            ("POST", 303, "GET"),
            ("DELETE", 303, "GET"),
            ("HEAD", 303, "HEAD"),
            ("POST", 307, "POST"),
            ("POST", 308, "POST"),
        ] {
            let next = hop(method, status, "/z");
            assert_eq!(next.method, becomes, "{method} {status}");
            assert_eq!(next.body.is_empty(), becomes != method, "{method} {status}");
        }
    }

    #[test]
    fn what_is_no_redirect_is_a_final_answer() {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, "/z".parse().unwrap());
        for status in [200, 201, 300, 304, 404, 500] {
            assert!(next_hop(&request("GET"), status, &headers).is_none());
        }
        assert!(next_hop(&request("GET"), 302, &HeaderMap::new()).is_none());
    }

    #[test]
    fn secrets_stay_with_the_origin_they_were_given_to() {
        let same = hop("GET", 302, "../z");
        assert_eq!(
            (same.url.as_str(), same.headers.len()),
            ("http://u:p@a.example/z", 5)
        );
        for place in [
            "http://b.example/",
            "https://a.example/x",
            "http://a.example:81/",
            "//b.example/x",
        ] {
            let other = hop("GET", 302, place);
            let mut names: Vec<_> = other.headers.keys().map(HeaderName::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, ["accept", "content-type"], "{place}");
            assert!(!other.url.contains("u:p"), "{place}");
        }
    }
}
