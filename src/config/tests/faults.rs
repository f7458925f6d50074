use proptest::prelude::*;

use super::{EXAMPLE, faults, parse, parsed};
use crate::config::Place;

/// Asserts that each text has exactly one fault, which begins and reads as
/// told.
fn each_is_one_fault(cases: &[(&str, &str, &str)]) {
    for (text, place, message) in cases {
        let found = faults(text);
        let [fault] = found.as_slice() else {
            panic!("{text}\nshould have one fault, has {found:#?}");
        };
        let expected = format!("tidegate.toml:{place}: ");
        assert!(fault.starts_with(&expected), "{text}\n{fault}\n{expected}");
        assert!(fault.contains(message), "{text}\n{fault}\n{message}");
    }
}

#[test]
fn a_limit_that_cannot_be_kept_is_a_fault_with_its_place() {
    each_is_one_fault(&[
        (
            "[[target]]\nmatch = \"https://a.test\"\nrate = \"0/s\"",
            "3: target[1].rate",
            "would never let anything through",
        ),
        (
            "[defaults]\nmax = \"0/min\"",
            "2: defaults.max",
            "would never let anything through",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\nrate = \"1/s\"\nburst = 0",
            "4: target[1].burst",
            "must be a whole number from 1 to 4294967295",
        ),
        (
            "[defaults]\nrate = \"99999999999/s\"",
            "2: defaults.rate",
            "cannot be kept: at most 4294967295",
        ),
        (
            "[defaults]\nrate = \"1/99999999999999999999day\"",
            "2: defaults.rate",
            "cannot be kept: at most 4294967295",
        ),
        (
            "[defaults]\nrate = \"2000000000/s\"",
            "2: defaults.rate",
            "cannot be kept: more than 1,000,000,000 a second",
        ),
        (
            "[defaults]\nrate = \"1/day\"\nburst = 213505",
            "2: defaults.rate",
            "more than 146 years until the burst is back",
        ),
        (
            "[defaults]\nrate = \"1/s\"\nburst = 4294967296",
            "3: defaults.burst",
            "must be a whole number from 1 to 4294967295",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\nmax = \"30/min\"\nburst = 31",
            "4: target[1].burst",
            "a burst of 31 is more than the 30/min it is part of: lower the burst",
        ),
        (
            "[[target]]\nmatch = \"https://b.test\"\nlimits = [\n  { max = \"9/s\" },\n  { max = \"0/s\" },\n]",
            "5: target[1].limits[2].max",
            "would never let anything through",
        ),
    ]);
}

#[test]
fn a_rule_that_can_match_nothing_is_a_fault_with_its_place() {
    let class = |line: &str| {
        format!(
            "[[target]]\nmatch = \"https://a.test\"\n[[target.class]]\nname = \"c\"\nrate = \"1/s\"\n{line}"
        )
    };
    for (line, place, message) in [
        (
            "path = \"search\"",
            "6: target[1].class[1].path",
            "begins with `/`",
        ),
        (
            "path = \"/a?b\"",
            "6: target[1].class[1].path",
            "no `?` and no `#`",
        ),
        (
            "path = \"/{*rest}/a\"",
            "6: target[1].class[1].path",
            "nothing can follow",
        ),
        (
            "path = \"/\"\nmethods = []",
            "7: target[1].class[1].methods",
            "allows no call",
        ),
        (
            "path = \"/\"\nmethods = [\"G T\"]",
            "3: target[1].class[1]",
            "`G T` is not a method",
        ),
        (
            "path = \"/\"\nquery = []",
            "7: target[1].class[1].query",
            "names no parameter",
        ),
        (
            "path = \"/\"\nquery = \"page\"",
            "7: target[1].class[1].query",
            "write query = [\"page\"]",
        ),
    ] {
        each_is_one_fault(&[(&class(line), place, message)]);
    }
    for (pattern, message) in [
        ("https://a.test/path", "a path belongs to a class"),
        ("https://a.test/", "a path belongs to a class"),
        ("ftp://a.test", "cannot be called"),
        ("a..test", "empty label"),
        ("a.*.test", "a star stands for whole labels"),
        ("*.10.0.0.1", "an address has no subdomains"),
        ("", "matches no host"),
        ("*", "a star stands for"),
        ("http://a.test:99999", "invalid port"),
    ] {
        let text = format!("[[target]]\nmatch = \"{pattern}\"\nrate = \"1/s\"");
        each_is_one_fault(&[(&text, "2: target[1].match", message)]);
    }
    each_is_one_fault(&[
        (
            "[[target]]\nmatch = \"a.test:8080\"\nrate = \"1/s\"\n[[target]]\nmatch = \"http://a.test:8080\"\nrate = \"1/s\"\n[[target]]\nmatch = \"https://a.test:8080\"\nrate = \"1/s\"",
            "2: target[1].match",
            "can match nothing",
        ),
        (
            "[[pool]]\nname = \"idle\"\nrate = \"1/s\"",
            "2: pool[1].name",
            "no target draws from the pool `idle`",
        ),
    ]);
}

#[test]
fn a_key_that_is_not_known_is_a_fault_and_the_nearest_is_named() {
    each_is_one_fault(&[
        ("conact = \"a@b.c\"", "1: conact", "did you mean `contact`?"),
        (
            "min-free = \"1GB\"",
            "1: min-free",
            "did you mean `min_free`?",
        ),
        (
            "[defaults]\nrate = \"1/s\"\nbrust = 2",
            "3: defaults.brust",
            "did you mean `burst`?",
        ),
        (
            "[[targets]]\nmatch = \"https://a.test\"",
            "1: targets",
            "did you mean `target`?",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\nrates = \"1/s\"",
            "3: target[1].rates",
            "did you mean `rate`?",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\nlimits = [{ max = \"9/s\", Burst = 2 }]",
            "3: target[1].limits[1].Burst",
            "did you mean `burst`?",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\n[[target.class]]\nname = \"c\"\npath = \"/\"\nmethod = [\"GET\"]\nrate = \"1/s\"",
            "6: target[1].class[1].method",
            "did you mean `methods`?",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\npool = \"p\"\n[[pool]]\nname = \"p\"\nrate = \"1/s\"\nconcurrency = 3",
            "7: pool[1].concurrency",
            "there are: name, rate, max, quota, burst, reset, limits, arrival_margin, source, as_of, note",
        ),
        ("\"a b\" = 1", "1: \"a b\"", "there is no such key"),
        ("\"\" = 1", "1: \"\"", "there is no such key"),
    ]);
}

#[test]
fn keys_that_this_build_does_not_honour_are_unknown() {
    for key in [
        "max_wait = \"10s\"",
        "[[agent]]\nname = \"scout\"",
        "[[via]]\nname = \"a\"",
        "[[health]]\nname = \"chat\"",
        "[[chain]]\nmodel = \"m\"",
        "[defaults]\nlearn = \"both\"",
        "[defaults]\nceiling = \"200/s\"",
        "[defaults]\nper = \"host\"",
        "[[target]]\nmatch = \"https://a.test\"\ntunnel = true",
        "[[target]]\nmatch = \"https://a.test\"\nvia = [\"a\"]",
    ] {
        let found = faults(key);
        assert_eq!(found.len(), 1, "{key}: {found:#?}");
        assert!(found[0].contains("there is no such key here"), "{found:?}");
    }
}

#[test]
fn all_faults_are_reported_at_once_in_the_order_of_the_file() {
    let text = r#"contact = "a\nb"
paths = "plain"
require_step = "yes"
min_free = 500
allow_private = ["10.0.0.1/8", "here"]
stroe = "/x"

[resolve]
"10.0.0.1" = ["10.0.0.2"]
"a.test" = ["b.test"]

[defaults]
rate = "1/s"
quota = "9/day"
concurrency = 0
arrival_margin = "10s"
timeout = "0s"
max_redirects = 51
max_body = "0B"

[[pool]]
rate = "1/s"

[[target]]
match = "https://a.test"
pool = "nowhere"
burst = 5
reset = "UTC"
as_of = "1.12.2026"
per = "hosts"

[[target]]
max = "30/min"

  [[target.class]]
  name = "a b"
  path = "x"
  pause = "target"
"#;
    let places: Vec<String> = faults(text)
        .iter()
        .map(|fault| fault.split(": ").take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        places,
        [
            "tidegate.toml:1 contact",
            "tidegate.toml:2 paths",
            "tidegate.toml:3 require_step",
            "tidegate.toml:4 min_free",
            "tidegate.toml:5 allow_private[1]",
            "tidegate.toml:5 allow_private[2]",
            "tidegate.toml:6 stroe",
            "tidegate.toml:9 resolve.\"10.0.0.1\"",
            "tidegate.toml:10 resolve.\"a.test\"[1]",
            "tidegate.toml:14 defaults.quota",
            "tidegate.toml:15 defaults.concurrency",
            "tidegate.toml:16 defaults.arrival_margin",
            "tidegate.toml:17 defaults.timeout",
            "tidegate.toml:18 defaults.max_redirects",
            "tidegate.toml:19 defaults.max_body",
            "tidegate.toml:21 pool[1]",
            "tidegate.toml:27 target[1].burst",
            "tidegate.toml:28 target[1].reset",
            "tidegate.toml:29 target[1].as_of",
            "tidegate.toml:30 target[1].per",
            "tidegate.toml:32 target[2]",
            "tidegate.toml:36 target[2].class[1].name",
            "tidegate.toml:37 target[2].class[1].path",
            "tidegate.toml:38 target[2].class[1].pause",
        ]
    );
}

#[test]
fn one_way_to_write_a_limit_at_a_time() {
    let target = |lines: &str| format!("[[target]]\nmatch = \"https://a.test\"\n{lines}");
    for (lines, place, message) in [
        (
            "rate = \"1/s\"\nmax = \"1/s\"",
            "4: target[1].max",
            "write limits = [{ rate = … }, { max = … }]",
        ),
        (
            "rate = \"1/s\"\nlimits = [{ max = \"9/min\" }]",
            "4: target[1].limits",
            "stands beside `rate`",
        ),
        (
            "burst = 1\nlimits = [{ max = \"9/min\" }]",
            "4: target[1].limits",
            "stands beside `burst`",
        ),
        (
            "burst = 2",
            "3: target[1].burst",
            "belongs to a `rate` or a `max`",
        ),
        (
            "reset = \"UTC\"",
            "3: target[1].reset",
            "belongs to a `quota`",
        ),
        (
            "quota = \"9/day\"",
            "3: target[1].quota",
            "Add reset = \"UTC\" or reset = \"rolling\"",
        ),
        (
            "quota = \"9/day\"\nreset = \"utc\"",
            "4: target[1].reset",
            "write \"UTC\" or \"rolling\"",
        ),
        (
            "quota = \"9/day\"\nreset = \"UTC\"\nburst = 2",
            "5: target[1].burst",
            "belongs to a `rate` or a `max`",
        ),
        (
            "rate = \"9/s\"\nreset = \"UTC\"",
            "4: target[1].reset",
            "belongs to a `quota`",
        ),
        ("limits = []", "3: target[1].limits", "limits nothing"),
        (
            "limits = \"9/s\"",
            "3: target[1].limits",
            "must be a list in brackets",
        ),
        (
            "limits = [\"9/s\"]",
            "3: target[1].limits[1]",
            "must be a table",
        ),
        (
            "limits = [{}]",
            "3: target[1].limits[1]",
            "write `rate`, `max` or `quota`",
        ),
        (
            "limits = [{ max = \"9/s\" },\n{ max = \"8/s\" }]",
            "4: target[1].limits[2]",
            "as `9/s` before it",
        ),
        (
            "rate = 5",
            "3: target[1].rate",
            "`5` is not a frequency: write N/s",
        ),
        (
            "rate = \"1/s\"\nburst = \"5\"",
            "4: target[1].burst",
            "without quotes",
        ),
        (
            "rate = \"1/s\"\nburst = 1.5",
            "4: target[1].burst",
            "a whole number",
        ),
    ] {
        each_is_one_fault(&[(&target(lines), place, message)]);
    }
}

#[test]
fn a_block_that_changes_nothing_is_a_fault() {
    each_is_one_fault(&[
        (
            "[[target]]\nmatch = \"https://a.test\"",
            "1: target[1]",
            "changes nothing",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\nsource = \"https://a.test/x\"\nas_of = \"2026-12-01\"\nnote = \"n\"",
            "1: target[1]",
            "changes nothing",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\n\n[[target.class]]\nname = \"c\"\npath = \"/\"",
            "4: target[1].class[1]",
            "give the class a limit, or pause = \"class\"",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\n\n[[target.class]]\nname = \"c\"\npath = \"/\"\npause = \"host\"",
            "4: target[1].class[1]",
            "give the class a limit, or pause = \"class\"",
        ),
        (
            "\n[[pool]]\nname = \"p\"\n[[target]]\nmatch = \"a.test\"\npool = \"p\"",
            "2: pool[1]",
            "without limits",
        ),
    ]);
}

#[test]
fn rules_that_contradict_each_other_are_reported_at_the_later_one() {
    let first = "[[target]]\nmatch = \"https://a.test\"\nrate = \"1/s\"\n";
    let class = |name: &str, lines: &str| {
        format!("[[target.class]]\nname = \"{name}\"\npath = \"/x\"\n{lines}\n")
    };
    let limited = |name: &str| class(name, "rate = \"1/s\"");
    let with = |rest: &str| format!("{first}{rest}");
    for (rest, place, message) in [
        (
            "[[target]]\nmatch = \"HTTPS://A.test:443\"\nrate = \"2/s\"".to_owned(),
            "5: target[2].match",
            "`https://a.test` is ruled twice",
        ),
        (
            "[[target]]\nmatch = \"b.test\"\npool = \"p\"".to_owned(),
            "6: target[2].pool",
            "there is no pool `p`",
        ),
        (
            limited("c") + &limited("d"),
            "8: target[1].class[2]",
            "fits the same calls as the class `c` on line 4, and no more closely",
        ),
        (
            limited("c") + &class("c", "methods = [\"PUT\"]\nrate = \"2/s\""),
            "8: target[1].class[2]",
            "limits or a pause in an earlier block",
        ),
        (
            class("c", "rate = \"1/s\"\nquery = { a = \"1\", b = 2 }"),
            "8: target[1].class[1].query.b",
            "write it in quotes: \"2\"",
        ),
        (
            class("default", "rate = \"1/s\""),
            "5: target[1].class[1].name",
            "choose another name",
        ),
        (
            "pool = \"p\"\n[[pool]]\nname = \"p\"\nrate = \"1/s\"\n[[pool]]\nname = \"p\"\nrate = \"1/s\"".to_owned(),
            "9: pool[2].name",
            "there are two pools `p`",
        ),
    ] {
        each_is_one_fault(&[(&with(&rest), place, message)]);
    }
}

#[test]
fn a_fault_that_follows_from_another_is_not_reported_beside_it() {
    for text in [
        "[[target]]\nmatch = \"https://a.test/x\"\npool = \"p\"\n[[pool]]\nname = \"p\"\nrate = \"1/s\"",
        "[[target]]\nmatch = \"https://a.test\"\npool = \"p\"\n[[pool]]\nname = \" p\"\nrate = \"1/s\"",
        "[[target]]\nmatch = \"https://a.test\"\npol = \"p\"",
        "[[target]]\nmatch = \"https://a.test\"\npool = 5\n[[pool]]\nname = \"p\"\nrate = \"1/s\"",
        "[[target]]\nmatch = \"https://a.test\"\n[[target.class]]\nname = \"c\"\npath = \"x\"\nrate = \"1/s\"\n[[target.class]]\nname = \"c\"\npath = \"/\"",
        "[[target]]\nmatch = \"https://a.test\"\nmax = \"9/fortnight\"",
        "[[target]]\nmatch = \"https://a.test\"\n[[target.class]]\nname = \"c\"\npath = \"/\"\npause = \"all\"",
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text}\n{found:#?}");
    }
}

#[test]
fn a_value_of_the_wrong_type_says_what_belongs_there() {
    each_is_one_fault(&[
        ("contact = 5", "1: contact", "write it in quotes: \"5\""),
        (
            "contact = [\"a\"]",
            "1: contact",
            "must be text in quotes, not a list",
        ),
        ("min_free = 500", "1: min_free", "such as 500MB"),
        (
            "retention = \"12h\"",
            "1: retention",
            "`12h` is less than a day, and whole days are let go: write such as 90d",
        ),
        (
            "require_step = \"true\"",
            "1: require_step",
            "must be true or false",
        ),
        (
            "allow_private = \"10.0.0.0/8\"",
            "1: allow_private",
            "must be a list in brackets",
        ),
        (
            "allow_private = [10]",
            "1: allow_private[1]",
            "such as 127.0.0.0/8",
        ),
        (
            "[defaults]\ntimeout = 60",
            "2: defaults.timeout",
            "such as 25ms, 60s",
        ),
        (
            "[[defaults]]\nrate = \"1/s\"",
            "1: defaults",
            "write [defaults], in single brackets",
        ),
        ("defaults = 1", "1: defaults", "must be a table"),
        (
            "\n[target]\nmatch = \"https://a.test\"",
            "2: target",
            "write [[target]], in double brackets",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\nrate = \"1/s\"\n[target.class]\nname = \"c\"",
            "4: target[1].class",
            "write [[target.class]], in double brackets",
        ),
        (
            "[[target]]\nmatch = \"https://a.test\"\nrate = \"1/s\"\nas_of = 2026-12-01",
            "4: target[1].as_of",
            "write it in quotes: \"2026-12-01\"",
        ),
        (
            "[resolve]\n\"a.test\" = \"10.0.0.1\"",
            "2: resolve.\"a.test\"",
            "must be a list",
        ),
        (
            "[resolve]\n\"a.test\" = []",
            "2: resolve.\"a.test\"",
            "pins the name to nothing",
        ),
        (
            "[resolve]\n\"A.test\" = [\"10.0.0.1\"]\n\"a.test.\" = [\"10.0.0.1\"]",
            "3: resolve.\"a.test.\"",
            "`a.test` is pinned twice",
        ),
        (
            "defaults.rate = \"1/s\"\ndefaults.timeout = \"0s\"",
            "2: defaults.timeout",
            "a timeout of zero",
        ),
    ]);
}

#[test]
fn a_text_that_is_not_toml_is_reported_by_line() {
    for (text, place, message) in [
        ("store = /var", "1", "string values must be quoted"),
        ("\n\nstore", "3", "key with no value"),
        ("paths = \"full\"\npaths = \"full\"", "2", "duplicate key"),
        ("[defaults]\nrate = \"1/s", "2", "invalid basic string"),
        ("[defaults]\n[defaults]", "2", "duplicate key"),
    ] {
        let found = faults(text);
        let expected = format!("tidegate.toml:{place}: ");
        assert!(found[0].starts_with(&expected), "{text}\n{found:?}");
        assert!(found[0].contains(message), "{text}\n{found:?}");
    }
    let both = faults("store = /var\n[defaults]\nrate = 'x\n");
    assert!(
        both[0].starts_with("tidegate.toml:1: ") && both.len() > 1,
        "{both:?}"
    );
    assert!(both[1].starts_with("tidegate.toml:3: "), "{both:?}");
}

#[test]
fn a_fault_never_repeats_a_password() {
    for text in [
        "[[target]]\nmatch = \"https://ada:hunter2@a.test\"\nrate = \"1/s\"",
        "[[target]]\nmatch = \"ada:hunter2@a.test\"\nrate = \"1/s\"",
        "[[target]]\nmatch = \"https://a.test?key=hunter2\"\nrate = \"1/s\"",
        "[[target]]\nmatch = \"https://a.test\"\nrate = \"1/s\"\nhunter = \"hunter2",
        "contact = \"hunter2\\n\"",
    ] {
        let found = faults(text);
        assert!(!found.is_empty(), "{text}");
        assert!(!found.join("\n").contains("hunter2"), "{found:?}");
    }
}

#[test]
fn an_empty_text_and_a_byte_order_mark_are_no_faults() {
    assert!(parse("").is_ok());
    assert_eq!(
        parsed("\u{feff}contact = \"a@b.c\"").contact.as_deref(),
        Some("a@b.c")
    );
}

proptest! {
    #[test]
    fn whatever_is_cut_or_put_in_the_answer_names_lines_of_the_file(
        from in 0..EXAMPLE.len(),
        length in 0..200_usize,
        put in "[\\[\\]{}=\"',.#\n a-z0-9]{0,6}",
    ) {
        let to = (from + length).min(EXAMPLE.len());
        let (before, after) = (EXAMPLE.get(..from).unwrap(), EXAMPLE.get(to..).unwrap());
        let text = format!("{before}{put}{after}");
        if let Err(errors) = parse(&text) {
            let lines = text.split('\n').count();
            prop_assert!(errors.iter().count() > 0);
            for error in errors.iter() {
                prop_assert!(!error.message().is_empty());
                match error.place() {
                    Place::Line { line, .. } => prop_assert!((1..=lines).contains(line)),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
    }
}
