//! `explain`: what holds for a URL, told without sending anything and without a store.

use serde_json::Value;

use crate::support::site::{Site, text};
use crate::{arrived, prompt, rule};

const RULES: &str = r#"
[defaults]
rate = "2/s"
burst = 3

[[target]]
match = "https://api.example.com"
max = "5000/h"
burst = 50
concurrency = 100
pool = "both"
source = "https://docs.example.com/limits"
as_of = "2026-12-01"
note = "agreed"

  [[target.class]]
  name = "search"
  path = "/search/{*rest}"
  methods = ["GET"]
  limits = [{ max = "30/min", burst = 5 }, { quota = "1000/day", reset = "UTC" }]

[[pool]]
name = "both"
max = "900/min"
"#;

#[test]
fn a_url_has_the_key_of_whose_machine_it_reaches_or_is_refused() {
    let site = Site::new(RULES);
    for (url, expected) in [
        ("HTTP://EXAMPLE.com/", Ok("http://example.com")),
        ("http://example.com:080/", Ok("http://example.com")),
        ("https://example.com:80/", Ok("https://example.com:80")),
        ("http://example.com./a", Ok("http://example.com")),
        (
            "http://user:pw@example.com/?key=s",
            Ok("http://example.com"),
        ),
        ("http://bücher.example/", Ok("http://xn--bcher-kva.example")),
        ("http://0x7f.1/", Ok("http://127.0.0.1")),
        ("http://[2001:DB8::A]/", Ok("http://[2001:db8::a]")),
        ("http://[::ffff:127.0.0.1]/", Ok("http://127.0.0.1")),
        ("wss://example.com:443/s", Ok("https://example.com")),
        (
            "https://api.example.com/search/code",
            Ok("https://api.example.com#search"),
        ),
        (
            "https://api.example.com/users",
            Ok("https://api.example.com"),
        ),
        ("http://localhost:65536/", Err("invalid_target")),
        ("http://example.com../", Err("invalid_target")),
        ("http://256.256.256.256/", Err("invalid_target")),
        ("http://[fe80::1%25eth0]/", Err("invalid_target")),
        ("ftp://example.com/", Err("unsupported_scheme")),
        ("file:///etc/passwd", Err("unsupported_scheme")),
    ] {
        let said = site.say(&["explain", url, "--json"]);
        assert!(!said.err.contains("pw"), "{}", said.err);
        match expected {
            Ok(key) => {
                let rows = said.with(0).rows();
                assert_eq!((rows.len(), text(&rows[0], "target")), (1, key), "{url}");
            }
            Err(reason) => {
                let said = said.with(1);
                assert!(
                    said.err.contains(reason) && said.out.is_empty(),
                    "{url}: {}",
                    said.err
                );
            }
        }
    }
    assert!(!site.store().exists(), "a question makes no store");
}

#[test]
fn every_limit_in_force_is_told_with_where_it_came_from() {
    let site = Site::new(RULES);
    let row = site.row(&["explain", "https://api.example.com/search/code?q=1"]);
    let told = ["scheme", "host", "class", "path"].map(|name| text(&row, name));
    assert_eq!(told, ["https", "api.example.com", "search", "/search/code"]);
    assert_eq!((&row["port"], &row["blocked"]), (&443.into(), &Value::Null));
    assert_eq!(
        (
            row["concurrency"].as_u64(),
            row["envelope_revision"].as_u64()
        ),
        (Some(100), Some(1))
    );
    let limits = row["limits"].as_array().unwrap();
    let limit = |scope: &str, limit: &str| {
        let found = limits
            .iter()
            .find(|row| text(row, "scope") == scope && text(row, "limit") == limit);
        found.unwrap_or_else(|| panic!("no {limit} of a {scope}: {limits:?}"))
    };
    assert_eq!(limits.len(), 4, "{limits:?}");
    assert_eq!(limit("class", "30/min")["burst"], 5);
    assert_eq!(text(limit("class", "1000/day"), "kind"), "quota");
    assert_eq!(text(limit("pool", "900/min"), "name"), "both");
    let host = limit("host", "5000/h");
    let told = ["author", "source", "as_of", "note"].map(|name| text(host, name));
    let source = "https://docs.example.com/limits";
    assert_eq!(told, ["file:tidegate.toml", source, "2026-12-01", "agreed"]);

    // Another method is another class; a stranger has the defaults, shared by its whole domain.
    let post = site.row(&[
        "explain",
        "https://api.example.com/search/code",
        "--method",
        "post",
    ]);
    assert_eq!(text(&post, "class"), "default");
    let stranger = site.row(&["explain", "http://a.b.example.co.uk:8080/"]);
    assert_eq!(
        (text(&stranger, "group"), &stranger["port"]),
        ("example.co.uk", &8080.into())
    );
}

#[test]
fn a_call_that_would_be_refused_is_told_why() {
    let site = Site::new("");
    for (url, word) in [
        ("http://169.254.169.254/latest/meta-data", "link-local"),
        ("http://10.0.0.1/", "private"),
        ("http://[::1]/", "loopback"),
    ] {
        let row = site.row(&["explain", url]);
        let blocked = text(&row, "blocked");
        assert!(
            blocked.starts_with("address_blocked: ") && blocked.contains(word),
            "{row}"
        );
    }
    assert_eq!(
        site.row(&["explain", "http://127.0.0.1/"])["blocked"],
        Value::Null
    );
    let table = site.say(&["explain", "http://10.0.0.1/"]).with(0);
    assert!(
        table.out.contains("TARGET") && table.out.contains("address_blocked"),
        "{}",
        table.out
    );
}

#[test]
fn nothing_is_sent_and_nothing_is_taken() {
    let target = prompt();
    let site = Site::new(&rule(&target, "1/s", 5));
    site.tasks([target.url("/1")]);
    site.run().end().with(0);
    let url = target.url("/2");
    for _ in 0..3 {
        site.row(&["explain", &url]);
        site.row(&["budget", &url]);
    }
    assert_eq!(arrived(&target), ["GET /1"]);
}
