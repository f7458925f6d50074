use std::collections::BTreeSet;
use std::time::Duration;

use super::{EXAMPLE, faults, parsed};
use crate::admission::{PathRecording, StepPolicy};
use crate::budget::{Frequency, Limit, PauseScope, Reset, Scope, Terms, Tier};
use crate::target::locate;

/// The reference of the format, but for the keys that are honoured later.
const REFERENCE: &str = r#"
store = "/var/lib/tidegate"
contact = "ops@example.org"
allow_private = []
paths = "masked"
require_step = false
min_free = "500MB"

[defaults]
rate = "1/s"
burst = 1
concurrency = 2
arrival_margin = "25ms"
timeout = "60s"
max_redirects = 5
max_body = "1GiB"

[[target]]
match = "https://api.github.com"
max = "5000/h"
burst = 50
concurrency = 100
pool = "github"
source = "https://docs.github.com/rest"
as_of = "2026-12-01"
note = "agreed with their operator"

  [[target.class]]
  name = "search"
  path = "/search/{*rest}"
  methods = ["GET"]
  limits = [{ max = "30/min", burst = 5 }, { quota = "1000/day", reset = "UTC" }]

[[pool]]
name = "github"
max = "900/min"
"#;

/// The terms of a GET.
fn terms(text: &str, url: &str) -> Terms {
    let book = parsed(text).rulebook;
    let located = locate(url).unwrap();
    let class = book.class(&located.origin, "GET", &located.path, &located.query);
    book.terms(&located.origin, &class)
}

fn scopes(terms: &Terms) -> Vec<String> {
    terms
        .tiers
        .iter()
        .map(|tier| tier.scope.to_string())
        .collect()
}

fn max(frequency: &str, burst: u32) -> Limit {
    Limit::max(frequency.parse().unwrap(), burst.try_into().unwrap()).unwrap()
}

fn rate(frequency: &str, burst: u32) -> Limit {
    Limit::rate(frequency.parse().unwrap(), burst.try_into().unwrap()).unwrap()
}

fn quota(frequency: &str, reset: Reset) -> Limit {
    Limit::quota(frequency.parse::<Frequency>().unwrap(), reset)
}

#[test]
fn the_reference_gives_the_terms_it_states() {
    let config = parsed(REFERENCE);
    assert_eq!(config.store.to_str(), Some("/var/lib/tidegate"));
    assert_eq!(config.contact.as_deref(), Some("ops@example.org"));
    assert_eq!(
        (config.paths, config.steps),
        (PathRecording::Masked, StepPolicy::Optional)
    );
    assert_eq!(config.min_free, 500_000_000);

    let search = terms(REFERENCE, "https://api.github.com/search/code?q=x");
    let [pool, host, class]: [Tier; 3] = search.tiers.try_into().unwrap();
    assert_eq!(pool.scope, Scope::Pool("github".into()));
    assert_eq!(pool.limits, [max("900/min", 1)]);
    assert_eq!(pool.arrival_margin, Duration::from_millis(25));
    assert_eq!(host.scope.to_string(), "host:https://api.github.com");
    assert_eq!(host.limits, [max("5000/h", 50)]);
    assert_eq!(host.concurrency.map(u32::from), Some(100));
    assert_eq!(&*host.provenance.author, "file:tidegate.toml");
    assert_eq!(host.provenance.as_of.as_deref(), Some("2026-12-01"));
    assert_eq!(
        host.provenance.source.as_deref(),
        Some("https://docs.github.com/rest")
    );
    assert_eq!(
        host.provenance.note.as_deref(),
        Some("agreed with their operator")
    );
    assert_eq!(
        class.scope.to_string(),
        "class:https://api.github.com#search"
    );
    assert_eq!(
        class.limits,
        [max("30/min", 5), quota("1000/day", Reset::Utc)]
    );
    assert_eq!(search.pause, PauseScope::Host);
    assert_eq!(search.conduct.timeout, Duration::from_secs(60));
    assert_eq!(search.conduct.max_body, 1 << 30);

    let other = terms(REFERENCE, "https://api.github.com/users/ada");
    assert_eq!(
        scopes(&other),
        ["pool:github", "host:https://api.github.com"]
    );
    let stranger = terms(REFERENCE, "http://www.example.org:8080/");
    assert_eq!(
        scopes(&stranger),
        ["group:example.org", "host:http://www.example.org:8080"]
    );
    assert_eq!(stranger.tiers[0].limits, [rate("1/s", 1)]);
    assert_eq!(&*stranger.tiers[0].provenance.author, "file:tidegate.toml");
}

#[test]
fn a_file_for_a_host_by_its_address_and_port() {
    let text = "allow_private = [\"127.0.0.0/8\"]\n\n[[target]]\nmatch = \"http://127.0.0.2:18080\"\nrate = \"20/s\"\nburst = 20\nconcurrency = 64\n\n[[target]]\nmatch = \"http://127.0.0.7:18080\"\nrate = \"150/min\"\nburst = 5\nconcurrency = 64\n";
    let config = parsed(text);
    assert_eq!(config.allow_private[0].to_string(), "127.0.0.0/8");
    let terms = terms(text, "http://127.0.0.2:18080/p/u0_1");
    assert_eq!(scopes(&terms), ["host:http://127.0.0.2:18080"]);
    assert_eq!(terms.tiers[0].limits, [rate("20/s", 20)]);
    assert_eq!(terms.tiers[0].concurrency.map(u32::from), Some(64));
}

#[test]
fn what_a_block_does_not_say_comes_from_the_defaults() {
    let text = r#"
[defaults]
limits = [{ rate = "2/s", burst = 4 }, { quota = "50/day", reset = "rolling" }]
concurrency = 7
arrival_margin = "40ms"
timeout = "9s"
max_redirects = 0
max_body = "2MB"
[[target]]
match = "https://a.test"
timeout = "3s"
pool = "p"
[[target]]
match = "https://b.test"
arrival_margin = "0s"
[[pool]]
name = "p"
rate = "1/3s"
"#;
    let a = terms(text, "https://a.test/");
    assert_eq!(a.conduct.timeout, Duration::from_secs(3));
    assert_eq!(
        (a.conduct.concurrency.get(), a.conduct.max_redirects),
        (7, 0)
    );
    assert_eq!(a.conduct.max_body, 2_000_000);
    assert_eq!(a.tiers[0].arrival_margin, Duration::from_millis(40));
    assert!(a.tiers[1].limits.is_empty());

    let b = terms(text, "https://b.test/");
    assert_eq!(b.tiers[0].arrival_margin, Duration::ZERO);
    assert_eq!(
        b.tiers[0].limits,
        [rate("2/s", 4), quota("50/day", Reset::Rolling)]
    );
    assert_eq!(&*b.tiers[0].provenance.author, "file:tidegate.toml");

    let built_in = terms("[defaults]\ntimeout = \"9s\"", "https://a.test/");
    assert_eq!(built_in.tiers[0].limits, [rate("1/s", 1)]);
    assert_eq!(&*built_in.tiers[0].provenance.author, "default");
}

#[test]
fn hosts_of_a_pattern_share_a_budget_unless_they_have_one_each() {
    let text = |pattern: &str, per: &str| {
        format!(
            "[[target]]\nmatch = \"{pattern}\"\nrate = \"1/s\"\n{per}\n\
             [[target.class]]\nname = \"s\"\npath = \"/s\"\nrate = \"1/min\""
        )
    };
    for (pattern, per, name) in [
        ("*.example.org", "", "group://*.example.org"),
        ("*.example.org", "per = \"host\"", "group://a.example.org"),
        ("a.example.org", "", "group://a.example.org"),
    ] {
        let text = text(pattern, per);
        for url in ["https://a.example.org/s", "http://a.example.org:81/s"] {
            let terms = terms(&text, url);
            let scopes = scopes(&terms);
            assert_eq!(scopes[..2], [name.to_owned(), format!("{name}#s")]);
            assert_eq!(terms.tiers[1].limits, [rate("1/min", 1)]);
            assert!(scopes[2].starts_with("host:") && scopes[3].starts_with("class:"));
            assert!(terms.tiers[2].limits.is_empty() && terms.tiers[3].limits.is_empty());
            assert!(terms.tiers.is_sorted_by_key(|tier| &tier.scope));
        }
    }
    let each = text("*.example.org", "per = \"host\"");
    assert_eq!(
        scopes(&terms(&each, "https://b.example.org/"))[0],
        "group://b.example.org"
    );
}

#[test]
fn a_rule_for_a_domain_does_not_share_a_budget_with_hosts_it_does_not_name() {
    let text = "[[target]]\nmatch = \"example.org\"\nrate = \"9/s\"";
    let named = terms(text, "https://example.org/");
    let stranger = terms(text, "https://www.example.org/");
    assert_eq!(scopes(&stranger)[0], "group:example.org");
    assert_eq!(scopes(&named)[0], "group://example.org");
}

#[test]
fn rules_of_two_ports_or_schemes_have_two_budgets_for_one_host() {
    let block = |pattern: &str| {
        format!("[[target]]\nmatch = \"{pattern}\"\nper = \"host\"\nrate = \"1/s\"\n")
    };
    let patterns = [
        "http://*.a.test",
        "https://*.a.test",
        "*.a.test:81",
        "*.a.test",
    ];
    let text = patterns.map(block).concat();
    let urls = [
        "http://b.a.test",
        "https://b.a.test",
        "http://b.a.test:81",
        "http://b.a.test:82",
    ];
    let budgets: BTreeSet<String> = urls
        .iter()
        .map(|url| scopes(&terms(&text, url)).swap_remove(0))
        .collect();
    assert_eq!(budgets.len(), urls.len(), "{budgets:?}");
}

#[test]
fn another_block_of_a_class_adds_calls_to_it() {
    let text = r#"
[[target]]
match = "https://a.test"
[[target.class]]
name = "search"
path = "/search"
rate = "1/s"
pause = "class"
[[target.class]]
name = "search"
path = "/v2/search"
query = ["q"]
"#;
    for url in ["https://a.test/search", "https://a.test/v2/search?q="] {
        let terms = terms(text, url);
        assert_eq!(scopes(&terms)[1], "class:https://a.test#search");
        assert_eq!(terms.tiers[1].limits, [rate("1/s", 1)]);
        assert_eq!(terms.pause, PauseScope::Class);
    }
    let other = terms(text, "https://a.test/v2/search");
    assert_eq!((scopes(&other).len(), other.pause), (1, PauseScope::Host));
}

#[test]
fn the_example_is_valid() {
    let config = parsed(EXAMPLE);
    assert_eq!(config.resolve["intranet.example.org"].len(), 2);
    let search = terms(EXAMPLE, "https://api.example.org/search/a?type=code");
    assert_eq!(search.tiers.len(), 3);
    assert_eq!(search.pause, PauseScope::Class);
    let mirror = terms(EXAMPLE, "https://a.mirror.example.org/");
    assert_eq!(
        scopes(&mirror)[..2],
        ["pool:example", "group://a.mirror.example.org"]
    );
    let data = terms(EXAMPLE, "https://data.example.net/");
    assert_eq!(data.tiers[0].limits, [quota("10000/7day", Reset::Rolling)]);
}

/// An unknown key far from all others is answered with all keys there are;
/// this asks every block for them.
#[test]
fn the_example_shows_every_key_there_is() {
    let blocks = [
        "[strange_unknown_key]\n",
        "[defaults]\nstrange_unknown_key = 1\n",
        "[[target]]\nstrange_unknown_key = 1\n",
        "[[target]]\n[[target.class]]\nstrange_unknown_key = 1\n",
        "[[target]]\nlimits = [{ strange_unknown_key = 1 }]\n",
        "[[pool]]\nstrange_unknown_key = 1\n",
    ];
    let shown: BTreeSet<&str> = EXAMPLE
        .lines()
        .flat_map(|line| line.split(['{', ',', '#']))
        .filter_map(|part| part.split_once('=').map(|(key, _)| key.trim()))
        .chain(EXAMPLE.lines().filter_map(|line| {
            let header = line.trim().trim_start_matches('[').split_once(']')?.0;
            header.rsplit('.').next()
        }))
        .collect();
    let mut asked = 0;
    for block in blocks {
        let found = faults(block);
        let known = found
            .iter()
            .find_map(|fault| fault.split_once("here; there are: "));
        let (_, known) = known.unwrap_or_else(|| panic!("{block}\n{found:?}"));
        for key in known.split(", ") {
            assert!(shown.contains(key), "the example lacks `{key}` of {block}");
            asked += 1;
        }
    }
    assert_eq!(asked, 69, "a key came or went: say so in the example too");
}
