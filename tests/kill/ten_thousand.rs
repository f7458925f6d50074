//! Fifty kills while ten thousand tasks run.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;

use crate::neighbour::{Neighbour, Tolerated};
use crate::storm::{Chance, Storm};
use crate::support::site::{Site, text};
use crate::witness::Witness;

const TASKS: usize = 10_000;
const KILLS: u64 = 50;

#[test]
fn ten_thousand_tasks_are_all_accounted_for_after_fifty_kills() {
    let tolerated = Tolerated::Rate {
        per_second: 50,
        burst: 40,
    };
    let neighbours: Vec<_> = (0..8)
        .map(|number| Neighbour::new(tolerated, Duration::from_millis(number * 3)))
        .collect();
    let rules: String = neighbours.iter().map(Neighbour::rule).collect();
    let site = Site::new(&format!(
        "paths = \"full\"\n[defaults]\nconcurrency = 8\n{rules}"
    ));
    site.tasks((0..TASKS).zip(neighbours.iter().cycle()).map(|(number, neighbour)| {
        let method = if number % 5 == 4 { "POST" } else { "GET" };
        json!({
            "id": format!("t{number}"), "url": neighbour.target.url(&format!("/w/{number}")),
            "method": method, "body": if method == "POST" { "b" } else { "" },
            "agent": format!("a{}", number % 7), "trajectory": "r1", "step": number.to_string(),
        })
    }));
    let mut storm = Storm::over(&site, Chance::new("ten thousand"));
    let mut accepted = 0;
    for kill in 1..=KILLS {
        storm.strike();
        if kill % 10 == 0 {
            accepted = counted(&site, accepted);
        }
    }
    assert_eq!(accepted, TASKS);
    storm.clear_up(3);

    let results = site.results();
    let ids: HashSet<_> = results.iter().map(|result| text(result, "id")).collect();
    assert_eq!((ids.len(), results.len()), (TASKS, TASKS));
    let witness = Witness::read(&site.store());
    let (arrived, doubles) = witness.testify(&neighbours, &results);
    println!("{KILLS} kills, {arrived} arrivals, {doubles} of them doubles");
}

/// The tasks in any state, as the store alone knows them: all that were ever accepted.
fn counted(site: &Site, before: usize) -> usize {
    let rows = site.rows(&["tasks"]);
    let counted: u64 = rows.iter().map(|row| row["tasks"].as_u64().unwrap()).sum();
    let counted = usize::try_from(counted).unwrap();
    assert_eq!(
        site.row(&["status"])["jobs"][0]["tasks"],
        counted,
        "{rows:?}"
    );
    assert!(counted >= before, "{before} tasks, and now {counted}");
    counted
}
