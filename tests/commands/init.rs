//! `init`: a first file of rules, made of what was seen.

use crate::support::loopback::{Answer, Request, Script, Target};
use crate::support::site::{Site, text};
use crate::{arrived, prompt, rule};

/// A target that refuses the second call it gets, and no other.
fn touchy() -> Target {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    Target::start(Script::new(move |_: &Request, _| {
        match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            1 => Answer::status(429).header("retry-after", "1"),
            _ => Answer::status(200),
        }
    }))
}

#[test]
fn the_file_holds_what_was_in_force_and_what_was_refused_and_passes_the_check() {
    let (calm, touchy) = (prompt(), touchy());
    let site = Site::new(&format!(
        "{}pool = \"p\"\n[[target]]\nmatch = \"{}\"\nlimits = [{{ max = \"300/min\", burst = 3 }}, {{ quota = \"5000/day\", reset = \"UTC\" }}]\n[[pool]]\nname = \"p\"\nmax = \"3000/min\"\nburst = 9\n",
        rule(&calm, "50/s", 2),
        touchy.origin(),
    ));
    site.tasks((0..4).flat_map(|number| {
        let path = format!("/{number}?key=secret");
        [calm.url(&path), touchy.url(&path)]
    }));
    site.run().end().with(0);
    let made = site.say(&["init"]).with(0).out;
    for line in [
        format!("match = \"{}\"", calm.origin()),
        "rate = \"50/s\"".to_owned(),
        "burst = 2".to_owned(),
        "concurrency = 10".to_owned(),
        "pool = \"p\"".to_owned(),
        "max = \"3000/min\"".to_owned(),
        "limits = [{ max = \"300/min\", burst = 3 }, { quota = \"5000/day\", reset = \"UTC\" }]"
            .to_owned(),
        "# 5 calls, 1 refused for now; envelope".to_owned(),
        "# it said: 429".to_owned(),
        "# It refused in a minute of".to_owned(),
    ] {
        assert!(made.contains(&line), "{line}\n{made}");
    }
    assert!(!made.contains("secret"), "{made}");
    assert_eq!(made.matches("Suggested").count(), 1, "{made}");

    let words = ["init", "--out", "made.toml"];
    let said = site.say(&words).with(0);
    assert!(said.out.is_empty() && said.err.contains("tidegate check"));
    assert_eq!(
        std::fs::read_to_string(site.path("made.toml")).unwrap(),
        made
    );
    let said = site.say(&words).with(2);
    assert!(
        said.err.contains("made.toml") && said.err.contains("already"),
        "{}",
        said.err
    );
    assert_eq!(
        std::fs::read_to_string(site.path("made.toml")).unwrap(),
        made
    );
    site.say(&["check", "--config", "made.toml"]).with(0);

    // The suggestion is a line that can be put in force as it stands.
    let suggested = made
        .replace("# max", "max")
        .replace("limits = [", "# limits = [");
    site.write("suggested.toml", &suggested);
    site.say(&["check", "--config", "suggested.toml"]).with(0);
    let explained = site.row(&["explain", &calm.url("/"), "--config", "made.toml"]);
    let limits = explained["limits"].as_array().unwrap();
    let limits: Vec<_> = limits.iter().map(|limit| text(limit, "limit")).collect();
    assert_eq!(limits, ["3000/min", "50/s"]);
    assert_eq!(site.rows(&["init"]).len(), 2);
}

#[test]
fn neighbours_without_rules_keep_one_budget_together() {
    let one = prompt();
    let site = Site::new("[defaults]\nrate = \"40/s\"\nburst = 4\n");
    let port = one.addr().port();
    site.tasks([
        one.url("/1"),
        format!("http://localhost:{port}/2"),
        format!("http://a.localhost:{port}/3"),
    ]);
    site.run().end();
    assert!(arrived(&one).len() >= 2);
    let made = site.say(&["init"]).with(0).out;
    site.write("made.toml", &made);
    site.say(&["check", "--config", "made.toml"]).with(0);
    assert!(made.contains("rate = \"40/s\"\nburst = 4"), "{made}");
    let top = site.say(&["init", "--top", "1"]).with(0).out;
    assert_eq!(top.matches("[[target]]").count(), 1);
    assert!(top.contains("more hosts"), "{top}");
}

#[test]
fn without_a_store_there_is_nothing_to_tell() {
    let site = Site::new("");
    let said = site.say(&["init"]).with(1);
    assert!(said.err.contains("there is no store"), "{}", said.err);
}
