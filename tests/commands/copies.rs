//! A copy of the record is whole or no store at all, whatever goes on meanwhile.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::support::site::{Site, text};
use crate::{patient, prompt, rule};

fn by_number(rows: &[Value]) -> HashMap<u64, Value> {
    let numbered = rows
        .iter()
        .map(|row| (row["number"].as_u64().unwrap(), row.clone()));
    numbered.collect()
}

#[test]
fn copies_of_a_run_that_goes_on_open_and_hold_the_front_of_its_record() {
    let target = patient(Duration::from_millis(5));
    let site = Site::new(&rule(&target, "500/s", 500));
    site.tasks((0..3_000).map(|number| target.url(&format!("/{number}"))));
    let mut run = site.run();
    site.until_open(&mut run);
    let copies: Vec<String> = (0..10).map(|number| format!("copy-{number}")).collect();
    for copy in &copies {
        let row = site.row(&["store", "copy", copy]);
        assert!(text(&row, "copy").ends_with(copy), "{row}");
    }
    assert!(run.is_running(), "the copies were made beside it");
    assert_eq!(run.end().code, Some(0));
    let whole = site.rows(&["audit", "events"]);
    let known = by_number(&whole);
    let mut last = 0;
    for copy in &copies {
        let read = site.rows(&["audit", "events", "--store", copy]);
        let numbers: HashSet<_> = by_number(&read).into_keys().collect();
        let front: HashSet<_> = by_number(&whole[..read.len()]).into_keys().collect();
        assert_eq!(numbers, front, "{copy}");
        let same = |row: &Value| known.get(&row["number"].as_u64().unwrap()) == Some(row);
        assert!(read.iter().all(same), "{copy} says something else");
        assert!(read.len() >= last, "a later copy holds as much");
        last = read.len();
        for asked in ["decisions", "windows", "who", "envelopes"] {
            site.rows(&["audit", asked, "--store", copy]);
        }
        assert!(site.rows(&["tasks", "--list", "--store", copy]).is_empty());
    }
    let row = site.row(&["store", "copy", "afterwards"]);
    assert_eq!(row["open"], 0, "{row}");
    assert_eq!(
        site.rows(&["audit", "events", "--store", "afterwards"]),
        whole
    );
}

#[test]
fn a_copy_goes_nowhere_but_into_an_empty_folder() {
    let target = prompt();
    let site = Site::new(&rule(&target, "50/s", 50));
    site.tasks((0..5).map(|number| target.url(&format!("/{number}"))));
    assert_eq!(site.run().end().code, Some(0));
    fs::create_dir(site.path("taken")).unwrap();
    fs::write(site.path("taken/notes"), "mine").unwrap();
    fs::create_dir(site.path("empty")).unwrap();
    for (to, code) in [("taken", 1), ("store", 1), ("empty", 0), ("empty", 1)] {
        let said = site.say(&["store", "copy", to]);
        assert_eq!(said.code, Some(code), "{to}: {}", said.err);
        assert!(
            code == 0 || said.err.contains("missing or empty"),
            "{}",
            said.err
        );
    }
    assert_eq!(fs::read_dir(site.path("taken")).unwrap().count(), 1);
}

#[test]
fn a_copy_that_was_killed_is_no_store_and_can_be_made_again() {
    let target = prompt();
    let site = Site::new(&rule(&target, "5000/s", 5000));
    site.tasks((0..2_000).map(|number| target.url(&format!("/{number}"))));
    assert_eq!(site.run().end().code, Some(0));
    let whole = site.rows(&["audit", "events"]);
    for round in 0..12 {
        let to = format!("copy-{round}");
        let copying = site.start(&["store", "copy", &to]);
        std::thread::sleep(Duration::from_millis(7 * round));
        copying.kill();
        if !site.path(&to).join("tidegate-store").exists() {
            let said = site.say(&["audit", "events", "--store", &to]);
            assert_eq!(said.code, Some(1), "half a copy was taken for a store");
            // At the last moment: all is there but for the marker.
            fs::create_dir_all(site.path(&to)).unwrap();
            fs::write(site.path(&to).join("head"), "{").unwrap();
            fs::write(site.path(&to).join("tidegate-store.new"), "").unwrap();
            site.row(&["store", "copy", &to]);
        }
        assert_eq!(site.rows(&["audit", "events", "--store", &to]), whole);
    }
}
