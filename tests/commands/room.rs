//! `max_store`: bodies take no more room than they may.

use std::fs;
use std::path::Path;

use crate::rule;
use crate::support::loopback::{Answer, Request, Script, Target};
use crate::support::site::{Site, eventually, text};

fn held(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.map(|entry| {
        let entry = entry.unwrap();
        match entry.metadata() {
            Ok(found) if found.is_dir() => held(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        }
    });
    sizes.sum()
}

#[test]
fn the_oldest_bodies_go_when_there_is_no_more_room_and_that_is_on_record() {
    let answer = |request: &Request, _| {
        let mut body = request.path.clone().into_bytes();
        body.resize(10_000, b'.');
        Answer::status(200).body(body)
    };
    let target = Target::start(Script::new(answer));
    let site = Site::new("");
    let tasks = |from: usize, to: usize| (from..to).map(|n| target.url(&format!("/{n}"))).collect();
    let run = |max_store: &str, tasks: Vec<String>| {
        site.configure(&format!(
            "max_store = \"{max_store}\"\n{}",
            rule(&target, "500/s", 50)
        ));
        site.tasks(tasks);
        site.run().end().with(0);
    };
    run("1MB", tasks(0, 40));
    assert!(held(&site.path("out/bodies")) >= 400_000);
    let went = || {
        let rows = site.rows(&["audit", "events"]);
        let rows = rows
            .into_iter()
            .filter(|row| text(row, "kind") == "bodies_let_go");
        rows.map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(went(), 0);

    // They are old by now.
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for row in site.results() {
        let body = site.path("out").join(text(&row, "body_path"));
        let file = fs::File::options().write(true).open(body).unwrap();
        file.set_modified(hour_ago).unwrap();
    }
    // As soon as a run begins, there is room again; what it brings itself stays.
    site.configure(&format!(
        "max_store = \"300kB\"\n{}",
        rule(&target, "5/s", 1)
    ));
    site.tasks(tasks(40, 45));
    let run = site.run();
    eventually("there is room", || {
        held(&site.path("out/bodies")) <= 300_000
    });
    run.end().with(0);
    assert_eq!(went(), 400_000, "those of one minute go together");
    let results = site.results();
    let is_there =
        |row: &&serde_json::Value| site.path("out").join(text(row, "body_path")).exists();
    assert_eq!(results.iter().filter(is_there).count(), 5);
}
