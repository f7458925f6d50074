//! Kills in the first moments of a store's life, each time of another one.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::neighbour::{Neighbour, Tolerated};
use crate::storm::Chance;
use crate::support::site::Site;
use crate::witness::Witness;

const KILLS: u64 = 25;
const TASKS: usize = 40;

#[test]
fn a_store_that_was_killed_while_it_was_made_opens_and_loses_nothing() {
    let mut chance = Chance::new("first steps");
    for _ in 0..KILLS {
        let neighbours = [Neighbour::new(
            Tolerated::Rate {
                per_second: 100,
                burst: 60,
            },
            Duration::from_millis(40),
        )];
        let site = Site::new(&format!(
            "paths = \"full\"\n[defaults]\nconcurrency = 8\n{}",
            neighbours[0].rule()
        ));
        site.tasks((0..TASKS).map(|number| {
            json!({
                "url": neighbours[0].target.url(&format!("/f/{number}")), "agent": "a",
                "trajectory": "r", "step": "s",
            })
        }));
        let run = site.run();
        sleep(Duration::from_micros(1_000 + chance.below(120_000)));
        assert!(run.kill(), "the work ran out before the kill came");
        site.run().end().with(0);
        let results = site.results();
        assert_eq!(results.len(), TASKS);
        Witness::read(&site.store()).testify(&neighbours, &results);
    }
}
