//! Folders that are no store, or none that can be used: said clearly, and left as they are.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::site::{Said, Site};
use crate::{arrived, prompt, rule};

/// Every file below a folder, with its size.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), entry.metadata().unwrap().len()));
        }
    }
    found.sort();
    found
}

/// What a run and a question say of a store that cannot be used.
fn refused(site: &Site) -> [Said; 2] {
    let run = site.run().end().with(1);
    let question = site.say(&["status"]).with(1);
    assert!(question.out.is_empty(), "{}", question.out);
    [run, question]
}

#[test]
fn somebody_elses_folder_is_no_store() {
    let site = Site::new("");
    site.tasks(["http://127.0.0.1:9/"]);
    fs::create_dir(site.store()).unwrap();
    site.write("store/thesis.tex", "mine");
    for said in refused(&site) {
        assert!(said.err.contains("is not a tidegate store"), "{}", said.err);
    }
    assert_eq!(files(&site.store()).len(), 1);
}

#[test]
fn a_store_of_another_format_is_left_alone() {
    let site = Site::new("");
    site.tasks(["http://127.0.0.1:9/"]);
    fs::create_dir(site.store()).unwrap();
    site.write("store/tidegate-store", "format 99\n");
    for said in refused(&site) {
        assert!(
            said.err.contains("format 99") && said.err.contains("format 3"),
            "{}",
            said.err
        );
    }
    assert_eq!(files(&site.store()).len(), 1);
}

#[test]
fn a_place_that_cannot_be_a_folder_is_said_by_name() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([target.url("/1")]);
    site.write("plain", "a file");
    for args in [
        ["run", "tasks.jsonl", "--out", "out", "--store", "plain"],
        [
            "run",
            "tasks.jsonl",
            "--out",
            "out",
            "--store",
            "plain/below",
        ],
        ["run", "tasks.jsonl", "--out", "plain", "--store", "store"],
        [
            "run",
            "tasks.jsonl",
            "--out",
            "plain/below",
            "--store",
            "store",
        ],
    ] {
        let said = site.say(&args).with(1);
        assert!(said.err.contains("plain"), "{args:?}: {}", said.err);
    }
    for store in ["plain", "plain/below"] {
        let said = site.say(&["status", "--store", store]).with(1);
        assert!(said.err.contains("plain"), "{}", said.err);
    }
    assert_eq!(fs::read_to_string(site.path("plain")).unwrap(), "a file");
    assert!(arrived(&target).is_empty());
}

/// A store in which a burst of five was spent, and which then lost some of its bytes.
fn damaged(damage: impl Fn(&Path)) -> (Site, crate::Target, Said) {
    let target = prompt();
    let site = Site::new(&rule(&target, "1/h", 5));
    site.tasks((0..20).map(|number| target.url(&format!("/{number}"))));
    let run = ["run", "tasks.jsonl", "--out", "out", "--deadline", "1s"];
    site.say(&run).with(75);
    damage(&site.store());
    let said = site.say(&run);
    (site, target, said)
}

#[test]
fn a_database_that_is_damaged_is_an_error_and_no_new_beginning() {
    let noise = |path: &Path| {
        let length = fs::metadata(path).unwrap().len();
        let noise: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        fs::write(path, noise).unwrap();
    };
    let (_, target, said) = damaged(|store| noise(&store.join("db/db")));
    let said = said.with(1);
    assert!(said.err.contains("store"), "{}", said.err);
    assert!(arrived(&target).len() <= 5);

    let (_, target, said) = damaged(|store| fs::remove_file(store.join("db/db")).unwrap());
    let said = said.with(1);
    assert!(said.err.contains("store"), "{}", said.err);
    assert!(arrived(&target).len() <= 5);
}

#[test]
fn what_may_not_be_read_or_written_is_said_by_name() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([target.url("/1")]);
    fs::copy(site.path("tidegate.toml"), site.path("other.toml")).unwrap();
    for folder in ["shut", "fixed"] {
        fs::create_dir(site.path(folder)).unwrap();
    }
    let set = |name: &str, mode| {
        fs::set_permissions(site.path(name), Permissions::from_mode(mode)).unwrap();
    };
    set("tasks.jsonl", 0o000);
    if File::open(site.path("tasks.jsonl")).is_ok() {
        println!("not tried: this user may read and write everything");
        return;
    }
    let said = site.run().end().with(2);
    assert!(
        said.err.contains("tasks.jsonl: Permission denied"),
        "{}",
        said.err
    );
    set("tasks.jsonl", 0o600);
    set("other.toml", 0o000);
    let said = site.say(&["status", "--config", "other.toml"]).with(2);
    assert!(
        said.err.contains("other.toml") && said.err.contains("Permission denied"),
        "{}",
        said.err
    );
    set("shut", 0o000);
    set("fixed", 0o500);
    for folder in ["shut", "fixed"] {
        for args in [
            ["run", "tasks.jsonl", "--out", "out", "--store", folder],
            ["run", "tasks.jsonl", "--store", "store", "--out", folder],
        ] {
            let said = site.say(&args).with(1);
            assert!(
                said.err.contains(folder) && said.err.contains("Permission denied"),
                "{args:?}: {}",
                said.err
            );
        }
    }
    set("shut", 0o700);
    set("fixed", 0o700);
    assert!(arrived(&target).is_empty());
}
