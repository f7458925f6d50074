//! `hold` and `release`: an operator's word, with and without a gate that runs.

use std::time::{Duration, Instant};

use crate::support::loopback::Target;
use crate::support::site::{Site, eventually, text};
use crate::{arrived, prompt, rule};

fn site_of(targets: &[&Target], rate: &str, tasks: usize) -> Site {
    let rules: String = targets.iter().map(|target| rule(target, rate, 1)).collect();
    let site = Site::new(&rules);
    let numbers = (0..tasks).flat_map(|number| targets.iter().map(move |target| (number, target)));
    site.tasks(numbers.map(|(number, target)| target.url(&format!("/{number}"))));
    site
}

/// The row of one target.
fn of(site: &Site, target: &Target) -> serde_json::Value {
    let rows = site.rows(&["targets"]);
    let found = rows
        .into_iter()
        .find(|row| text(row, "target") == target.origin());
    found.expect("a configured target is listed")
}

#[test]
fn a_target_that_was_held_before_the_run_gets_no_request_until_it_is_released() {
    let (held, free) = (prompt(), prompt());
    let site = site_of(&[&held, &free], "50/s", 5);
    // A store must be there to hold anything in.
    site.write("none.jsonl", "");
    site.say(&["run", "none.jsonl", "--out", "none"]).with(0);

    let words = [
        "hold",
        &held.origin(),
        "--by",
        "ana",
        "--note",
        "their operator called",
    ];
    let row = site.row(&words);
    assert_eq!(
        (text(&row, "target"), text(&row, "state")),
        (&*held.origin(), "held")
    );
    for _ in 0..2 {
        site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "800ms"])
            .with(75);
        assert_eq!((arrived(&held).len(), arrived(&free).len()), (0, 5));
    }
    let row = of(&site, &held);
    assert_eq!(
        (text(&row, "state"), row["ready_at"].is_null()),
        ("held", true),
        "{row}"
    );
    assert_eq!(
        (text(&row["hold"], "by"), text(&row["hold"], "note")),
        ("ana", "their operator called")
    );
    assert_eq!(text(&of(&site, &free), "state"), "open");

    let words = ["release", &held.origin(), "--by", "bob", "--note", "agreed"];
    assert_eq!(text(&site.row(&words), "state"), "released");
    assert_eq!(text(&site.row(&words), "state"), "nothing to take back");
    site.run().end().with(0);
    assert_eq!(arrived(&held).len(), 5);
    let events = site.rows(&["audit", "events"]);
    for (kind, by) in [("held", "ana"), ("released", "bob")] {
        let found = events.iter().filter(|row| text(row, "kind") == kind);
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), 1, "{kind}: {found:?}");
        assert!(found[0].to_string().contains(by), "{found:?}");
    }
}

#[test]
fn a_run_that_is_under_way_hears_of_a_hold_and_of_its_release() {
    let (held, free) = (prompt(), prompt());
    let site = site_of(&[&held, &free], "20/s", 40);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("calls go out", || arrived(&held).len() >= 3);
    site.row(&["hold", &held.origin(), "--by", "ana", "--note", "wait"]);
    let running = [
        "tasks",
        "--list",
        "--state",
        "running",
        "--target",
        &held.origin(),
    ];
    eventually("what was granted before has ended", || {
        site.rows(&running).is_empty()
    });
    let before = arrived(&held).len();
    eventually("the other target goes on", || arrived(&free).len() >= 20);
    assert!(before < 40 && arrived(&held).len() == before);
    let row = of(&site, &held);
    assert_eq!(
        (text(&row, "state"), text(&row["hold"], "by")),
        ("held", "ana")
    );
    let waiting = site.rows(&[
        "tasks",
        "--list",
        "--target",
        &held.origin(),
        "--state",
        "backoff",
    ]);
    assert_eq!(waiting.len(), 40 - before);
    let url = held.url("/39");
    assert!(waiting.iter().any(|row| text(row, "url") == url));
    eventually("status counts as tasks does", || {
        site.row(&["status"])["jobs"][0]["backoff"] == waiting.len()
    });
    assert!(
        waiting.iter().all(|row| text(row, "cause") == "held"),
        "{waiting:?}"
    );
    assert!(run.is_running());

    site.row(&["release", &held.origin()]);
    run.end().with(0);
    assert_eq!((arrived(&held).len(), arrived(&free).len()), (40, 40));
}

#[test]
fn a_hold_outlives_a_kill_and_ends_when_it_said() {
    let target = prompt();
    let site = site_of(&[&target], "50/s", 30);
    let mut run = site.run();
    site.until_open(&mut run);
    let begun = Instant::now();
    site.row(&["hold", &target.origin(), "--for", "3s"]);
    // What an operator was told is on disk.
    assert!(run.kill());
    let before = target.arrivals().len();
    site.run().end().with(0);
    let arrivals = target.arrivals();
    let next = arrivals[before].at.saturating_duration_since(begun);
    assert!(next >= Duration::from_secs(3), "{next:?} after the hold");
    assert!(arrivals.len() >= 30);
}

#[test]
fn a_pool_is_held_as_a_whole_and_what_there_is_not_cannot_be() {
    let (one, two) = (prompt(), prompt());
    let site = Site::new(&format!(
        "{}pool = \"p\"\n{}pool = \"p\"\n[[pool]]\nname = \"p\"\nrate = \"100/s\"\n",
        rule(&one, "50/s", 1),
        rule(&two, "50/s", 1)
    ));
    site.tasks([one.url("/1"), two.url("/2")]);
    site.write("none.jsonl", "");
    site.say(&["run", "none.jsonl", "--out", "none"]).with(0);
    assert_eq!(
        text(&site.row(&["hold", "pool:p", "--by", "ana"]), "state"),
        "held"
    );
    site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "500ms"])
        .with(75);
    assert_eq!((arrived(&one).len(), arrived(&two).len()), (0, 0));
    assert_eq!(text(&site.row(&["release", "pool:p"]), "state"), "released");
    site.run().end().with(0);
    assert_eq!((arrived(&one).len(), arrived(&two).len()), (1, 1));

    for name in ["pool:none", "not a target"] {
        let said = site.say(&["hold", name]).with(1);
        assert!(said.err.contains(name), "{}", said.err);
    }
}
