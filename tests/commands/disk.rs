//! A disk without room: said clearly, nothing is sent that is not on record, and the run goes on
//! when there is room again.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, text};
use crate::{arrived, rule};

/// A file system of its own, in memory; gone when dropped.
struct SmallDisk<'s>(&'s Path);

impl<'s> SmallDisk<'s> {
    /// None where this user may not mount.
    fn mount(folder: &'s Path, size: &str) -> Option<Self> {
        fs::create_dir(folder).unwrap();
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size}"),
                "tidegate-test",
            ])
            .arg(folder)
            .output();
        let mounted = mounted.is_ok_and(|mounted| mounted.status.success());
        if !mounted {
            println!("not tried: this user may not mount a file system");
        }
        mounted.then(|| Self(folder))
    }
}

impl SmallDisk<'_> {
    /// Somebody makes room.
    fn grow(&self) {
        let grown = Command::new("mount")
            .args(["-o", "remount,size=64m"])
            .arg(self.0)
            .status();
        assert!(grown.unwrap().success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// A target with large answers, and tasks for it.
fn site(min_free: &str, tasks: usize) -> (Site, Target) {
    let answer = Answer::status(200).body(vec![b'.'; 4_000]);
    let target = Target::start(Script::always(answer));
    let site = Site::new("");
    configure(&site, &target, min_free);
    site.tasks(
        (0..tasks).map(
            |number| json!({"url": target.url(&format!("/{number}")), "goal": "g".repeat(500)}),
        ),
    );
    (site, target)
}

fn configure(site: &Site, target: &Target, min_free: &str) {
    site.configure("");
    let file = fs::read_to_string(site.path("tidegate.toml")).unwrap();
    let file = file.replace("\"0B\"", &format!("\"{min_free}\"")) + &rule(target, "2000/s", 50);
    site.write("tidegate.toml", &file);
}

/// The calls on record that may have arrived.
fn recorded(site: &Site, store: &str) -> usize {
    let rows = site.rows(&["audit", "events", "--store", store]);
    rows.iter()
        .filter(|row| text(row, "kind") == "call")
        .count()
}

#[test]
fn below_min_free_nothing_is_granted() {
    let (site, target) = site("1000TB", 5);
    let said = site.run().end().with(1);
    assert!(said.err.contains("min_free"), "{}", said.err);
    assert!(arrived(&target).is_empty());
    assert_eq!(site.row(&["status"])["jobs"][0]["pending"], 5);
    configure(&site, &target, "0B");
    site.run().end().with(0);
    assert_eq!(arrived(&target).len(), 5);
}

#[test]
fn a_run_that_meets_min_free_stops_and_goes_on_when_there_is_room() {
    let (site, target) = site("8MB", 3_000);
    let folder = site.path("small");
    let Some(disk) = SmallDisk::mount(&folder, "14m") else {
        return;
    };
    let run = [
        "run",
        "tasks.jsonl",
        "--out",
        "out",
        "--store",
        "small/store",
    ];
    let said = site.say(&run).with(1);
    assert!(said.err.contains("min_free"), "{}", said.err);
    let before = arrived(&target).len();
    assert!(before < 3_000);
    assert_eq!(recorded(&site, "small/store"), before);
    let said = site.say(&run).with(1);
    assert!(said.err.contains("min_free"), "{}", said.err);
    assert_eq!(arrived(&target).len(), before);

    configure(&site, &target, "0B");
    disk.grow();
    site.say(&run).with(0);
    assert_eq!(site.results().len(), 3_000);
    assert_eq!(arrived(&target).len(), 3_000);
    assert_eq!(recorded(&site, "small/store"), 3_000);
}

#[test]
fn a_disk_that_is_full_under_the_record_ends_the_run_and_nothing_leaves_unrecorded() {
    let (site, target) = site("0B", 3_000);
    let folder = site.path("small");
    let Some(disk) = SmallDisk::mount(&folder, "8m") else {
        return;
    };
    let run = [
        "run",
        "tasks.jsonl",
        "--out",
        "out",
        "--store",
        "small/store",
    ];
    let said = site.say(&run).with(1);
    for part in ["cannot be written", "No space left"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    let before = arrived(&target).len();
    assert!(before < 3_000);
    for args in [&run[..], &["status", "--store", "small/store"]] {
        let said = site.say(args).with(1);
        assert!(said.err.contains("No space left"), "{}", said.err);
        assert!(!said.err.contains("another --store"), "{}", said.err);
    }
    assert_eq!(arrived(&target).len(), before);

    disk.grow();
    site.say(&run).with(0);
    assert_eq!(site.results().len(), 3_000);
    assert!(recorded(&site, "small/store") >= arrived(&target).len());
}

#[test]
fn a_disk_that_is_full_under_the_results_ends_the_run_and_the_store_keeps_them() {
    let (site, target) = site("0B", 2_000);
    let folder = site.path("small");
    let Some(disk) = SmallDisk::mount(&folder, "1m") else {
        return;
    };
    let run = ["run", "tasks.jsonl", "--out", "small/out"];
    let said = site.say(&run).with(1);
    assert!(said.err.contains("small/out"), "{}", said.err);
    assert!(arrived(&target).len() < 2_000);
    disk.grow();
    let said = site.say(&run);
    let lines = fs::read_to_string(folder.join("out/results.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2_000, "{}", said.err);
    for line in lines.lines() {
        let result: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(text(&result, "outcome"), "succeeded", "{line}");
    }
    said.with(0);
    assert!(recorded(&site, "store") >= arrived(&target).len());
}
