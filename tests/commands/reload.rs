//! SIGHUP: a run reads its configuration anew.

use crate::support::loopback::Target;
use crate::support::site::{Process, Site, eventually, text};
use crate::{arrived, prompt, rule};

const SLOW: &str = "1/day";

fn site_of(target: &Target, rules: &str, tasks: usize) -> Site {
    let site = Site::new(rules);
    site.tasks((0..tasks).map(|number| target.url(&format!("/x/{number}"))));
    site
}

/// Sends the signal and waits until the run has said what it made of it.
fn reload(run: &mut Process, answer: &str) {
    let before = run.said_so_far().matches(answer).count();
    run.signal("HUP");
    eventually(answer, || {
        assert!(run.is_running(), "{}", run.said_so_far());
        run.said_so_far().matches(answer).count() > before
    });
}

const IN_FORCE: &str = "is in force";

fn stop(run: Process) {
    run.signal("INT");
    run.end().with(130);
}

#[test]
fn a_tighter_file_holds_from_now_on_and_a_looser_one_too() {
    let target = prompt();
    let site = site_of(&target, &rule(&target, "20/s", 1), 40);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("calls go out", || arrived(&target).len() >= 3);
    site.configure(&rule(&target, SLOW, 1));
    reload(&mut run, IN_FORCE);
    let budget = site.row(&["budget", &target.origin()]);
    assert_eq!(text(&budget["limits"][0], "limit"), SLOW);
    assert_eq!(text(&budget, "state"), "budget_empty", "spent stays spent");
    let running = ["tasks", "--list", "--state", "running"];
    eventually("what was granted before has ended", || {
        site.rows(&running).is_empty()
    });
    let before = arrived(&target).len();
    assert!(before < 40);

    // What waits for tomorrow is woken.
    site.configure(&rule(&target, "50/s", 1));
    reload(&mut run, IN_FORCE);
    run.end().with(0);
    assert_eq!(arrived(&target).len(), 40);
    let events = site.rows(&["audit", "events"]);
    let reloads = events.iter().filter(|row| text(row, "kind") == "reloaded");
    assert_eq!(reloads.count(), 2);
    let revisions = events.iter().filter(|row| text(row, "kind") == "revised");
    assert!(revisions.count() >= 3, "{events:?}");
}

#[test]
fn a_file_with_errors_changes_nothing_and_all_of_them_are_told() {
    let target = prompt();
    let site = site_of(&target, &rule(&target, SLOW, 1), 3);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("a call goes out", || arrived(&target).len() == 1);
    // Who asks reads a file too.
    let good = std::fs::read_to_string(site.path("tidegate.toml")).unwrap();
    site.write("good.toml", &good);
    let ask = |words: &[&str]| site.rows(&[words, &["--config", "good.toml"]].concat());
    let limit = || {
        let budget = ask(&["budget", &target.origin()]).remove(0);
        text(&budget["limits"][0], "limit").to_owned()
    };
    let bad = format!(
        "{}burts = 3\n[[target]]\nrate = \"no\"\n",
        rule(&target, "99/s", 1)
    );
    site.configure(&bad);
    reload(&mut run, "what was in force still is");
    eventually("both errors are told", || {
        let said = run.said_so_far();
        said.contains("burts") && said.contains("`no`")
    });
    assert_eq!(limit(), SLOW);
    let failed = || {
        let mut rows = ask(&["audit", "events"]);
        rows.retain(|row| text(row, "kind") == "reload_failed");
        rows
    };
    eventually("it is on record", || failed().len() == 1);
    let faults = failed()[0]["faults"].to_string();
    assert!(
        faults.contains("burts") && faults.contains("`no`"),
        "{faults}"
    );

    std::fs::remove_file(site.path("tidegate.toml")).unwrap();
    reload(&mut run, "what was in force still is");
    assert_eq!(limit(), SLOW, "no file is no permission");
    eventually("it is on record", || failed().len() == 2);
    assert_eq!(arrived(&target).len(), 1);
    stop(run);
}

#[test]
fn calls_that_wait_obey_a_class_that_is_new_to_them() {
    let target = prompt();
    let slow = rule(&target, "1/s", 1);
    let site = site_of(&target, &slow, 30);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("a call goes out", || arrived(&target).len() >= 2);
    let class = "[[target.class]]\nname = \"x\"\npath = \"/x/{*rest}\"\nmax = \"1/day\"\n";
    site.configure(&format!("{}{class}", rule(&target, "50/s", 1)));
    reload(&mut run, IN_FORCE);
    let key = format!("{}#x", target.origin());
    eventually("all wait for the class", || {
        let rows = site.rows(&["targets"]);
        let mut of_class = rows.iter().filter(|row| text(row, "target") == key);
        of_class.any(|row| row["tasks_waiting"].as_u64() >= Some(26))
    });
    assert!(arrived(&target).len() <= 4, "{:?}", arrived(&target));
    stop(run);
}

#[test]
fn what_waits_for_a_restart_is_named_and_private_ranges_are_followed() {
    let target = prompt();
    let site = site_of(&target, &rule(&target, SLOW, 1), 2);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("a call goes out", || arrived(&target).len() == 1);
    let file = format!(
        "store = \"store\"\ncontact = \"ops@example.org\"\npaths = \"full\"\nmin_free = \"0B\"\n{}",
        rule(&target, "50/s", 1)
    );
    site.write("tidegate.toml", &file);
    reload(&mut run, "contact, paths");
    // The task that waited finds its address closed.
    let said = run.end().with(3);
    assert!(said.err.contains("start the run again"), "{}", said.err);
    assert_eq!(arrived(&target).len(), 1);
    let results = site.results();
    assert!(
        results
            .iter()
            .any(|row| text(row, "error").contains("address_blocked"))
    );
}
