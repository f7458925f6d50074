//! `status`, `budget` and `targets`, asked of a store that no gate holds.

use serde_json::Value;

use crate::support::site::{Site, text};
use crate::{prompt, rule};

#[test]
fn what_is_left_is_told_per_limit_and_asking_takes_nothing() {
    let target = prompt();
    let site = Site::new(&format!(
        "[[target]]\nmatch = \"{}\"\nlimits = [{{ rate = \"1/min\", burst = 10 }}, {{ quota = \"100/day\", reset = \"UTC\" }}]\n",
        target.origin()
    ));
    site.tasks((0..4).map(|number| target.url(&format!("/{number}"))));
    site.run().end().with(0);
    for _ in 0..4 {
        let rows = site.rows(&["budget", &target.origin(), &target.url("/deep/below?x=1")]);
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(text(&row, "target"), target.origin());
            assert_eq!(
                (text(&row, "state"), row["envelope_revision"].as_u64()),
                ("open", Some(1))
            );
            let limits = row["limits"].as_array().unwrap();
            let left = |limit: &str| {
                let found = limits.iter().find(|row| text(row, "limit") == limit);
                found.and_then(|row| row["left"].as_u64())
            };
            // The margin may keep the last one back.
            assert!(matches!(left("1/min"), Some(5 | 6)), "{row}");
            assert_eq!(left("100/day"), Some(96));
            let dated = limits
                .iter()
                .all(|row| text(row, "refill_at").ends_with('Z'));
            assert!(dated && text(&row, "ready_at").ends_with('Z'), "{row}");
        }
    }
    let all = site.rows(&["budget"]);
    assert_eq!(all.len(), 1, "{all:?}");
    let said = site.say(&["budget", "nonsense"]).with(1);
    assert!(said.err.contains("nonsense"), "{}", said.err);
    let table = site.say(&["budget"]).with(0);
    assert!(
        table.out.starts_with("TARGET") && table.out.contains("left)"),
        "{}",
        table.out
    );
}

#[test]
fn a_target_of_the_file_is_listed_before_its_first_call_and_others_while_they_have_spent() {
    let (named, other) = (prompt(), prompt());
    let site = Site::new(&rule(&named, "100/s", 10));
    site.tasks([other.url("/1")]);
    site.run().end().with(0);
    let rows = site.rows(&["targets"]);
    let names: Vec<_> = rows.iter().map(|row| text(row, "target")).collect();
    assert!(names.contains(&&*named.origin()), "{names:?}");
    for row in &rows {
        assert!(
            row["limits"]
                .as_array()
                .is_some_and(|limits| !limits.is_empty()),
            "{row}"
        );
        assert_eq!(
            (row["tasks_waiting"].as_u64(), text(row, "state")),
            (Some(0), "open"),
            "{row}"
        );
    }
    let table = site.say(&["targets"]).with(0);
    assert!(
        table.out.starts_with("TARGET") && table.out.contains(&named.origin()),
        "{}",
        table.out
    );
}

#[test]
fn a_status_tells_of_every_job_of_the_store() {
    let target = prompt();
    let site = Site::new(&rule(&target, "20/s", 1));
    site.tasks((0..40).map(|number| target.url(&format!("/{number}"))));
    site.say(&["run", "tasks.jsonl", "--out", "one", "--deadline", "600ms"])
        .with(75);
    site.write("few.jsonl", &(target.url("/few") + "\n"));
    site.say(&["run", "few.jsonl", "--out", "two"]).with(0);

    let status = site.row(&["status"]);
    assert_eq!(
        (&status["running"], &status["wakes_at"]),
        (&false.into(), &Value::Null)
    );
    let jobs = status["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    let (one, two) = (&jobs[0], &jobs[1]);
    assert!(text(one, "out").ends_with("/one") && text(two, "out").ends_with("/two"));
    let count = |name: &str| one[name].as_u64().unwrap();
    assert_eq!(
        (count("tasks"), count("complete") + count("pending")),
        (40, 40)
    );
    assert!(count("complete") > 0 && count("pending") > 0, "{one}");
    assert_eq!(one["outcomes"]["succeeded"], one["complete"]);
    assert_eq!((&two["tasks"], &two["pending"]), (&1.into(), &0.into()));
    let words = site.say(&["status"]).with(0);
    for part in [
        "nothing runs on it",
        "40 tasks: ",
        "1 tasks: 1 complete (1 succeeded), 0 left",
    ] {
        assert!(words.out.contains(part), "{part}: {}", words.out);
    }
}

#[test]
fn a_store_that_is_not_there_is_said_so_and_not_made() {
    let site = Site::new("");
    let questions: [&[&str]; 7] = [
        &["status"],
        &["budget"],
        &["targets"],
        &["tasks"],
        &["hold", "http://a.example"],
        &["release", "http://a.example"],
        &["audit", "events"],
    ];
    for args in questions {
        let said = site.say(args).with(1);
        assert!(
            said.err.contains("there is no store at"),
            "{args:?}: {}",
            said.err
        );
        assert!(said.out.is_empty());
    }
    assert!(!site.store().exists());
}

#[test]
fn a_store_may_be_named_on_the_command_line_and_in_the_environment() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([target.url("/1")]);
    site.say(&["run", "tasks.jsonl", "--out", "out", "--store", "elsewhere"])
        .with(0);
    assert!(!site.store().exists());
    assert_eq!(
        site.row(&["status", "--store", "elsewhere"])["jobs"][0]["tasks"],
        1
    );
    let mut command = site.command(&["--store", "elsewhere", "status", "--json"]);
    command.env("TIDEGATE_STORE", "nowhere");
    let row = site.launch(command).end().with(0).rows().remove(0);
    assert_eq!(
        row["jobs"][0]["tasks"], 1,
        "a flag is stronger than the environment"
    );
    let mut command = site.command(&["status", "--json"]);
    command.env("TIDEGATE_STORE", site.path("elsewhere"));
    let row = site.launch(command).end().with(0).rows().remove(0);
    assert_eq!(row["jobs"][0]["tasks"], 1);
}
