//! Slow answers, so that every kill cuts calls; reads, writes and redirects; tolerances of every
//! kind.

use std::time::Duration;

use serde_json::json;

use crate::neighbour::{Neighbour, Tolerated};
use crate::storm::{Chance, Storm};
use crate::support::loopback::{Answer, Request, Script};
use crate::support::site::Site;
use crate::witness::Witness;

const TASKS: usize = 1_000;
const KILLS: usize = 25;

#[test]
fn calls_that_are_cut_are_repeated_where_that_is_safe_and_never_where_it_is_not() {
    let quick = Duration::from_millis(5);
    let landing = Neighbour::new(
        Tolerated::Rate {
            per_second: 20,
            burst: 10,
        },
        quick,
    );
    let onward = landing.target.origin();
    let redirecting = Script::new(move |request: &Request, _| {
        let place = format!("{onward}{}", request.path);
        Answer::status(302)
            .header("location", &place)
            .after(Duration::from_millis(30))
    });
    let neighbours = [
        Neighbour::playing(
            Tolerated::Rate {
                per_second: 20,
                burst: 20,
            },
            redirecting,
        ),
        Neighbour::new(
            Tolerated::Rate {
                per_second: 30,
                burst: 30,
            },
            Duration::from_millis(300),
        ),
        Neighbour::new(
            Tolerated::Max {
                most: 60,
                seconds: 3,
                burst: 10,
            },
            Duration::from_millis(150),
        ),
        Neighbour::new(
            Tolerated::Quota {
                most: 80,
                seconds: 4,
            },
            Duration::from_millis(50),
        ),
        landing,
    ];
    let rules: String = neighbours.iter().map(Neighbour::rule).collect();
    let site = Site::new(&format!(
        "paths = \"full\"\n[defaults]\nconcurrency = 20\n{rules}"
    ));
    site.tasks((0..TASKS).zip(neighbours[..4].iter().cycle()).map(|(number, neighbour)| {
        // Redirected writes would become reads; they have a test of their own.
        let method = if number % 4 > 0 && number % 3 == 0 { "POST" } else { "GET" };
        json!({
            "url": neighbour.target.url(&format!("/m/{number}")), "method": method,
            "agent": format!("a{}", number % 5), "trajectory": "r1", "step": number.to_string(),
        })
    }));
    let mut storm = Storm::over(&site, Chance::new("mixed"));
    let mut before: Option<Witness> = None;
    for _ in 0..KILLS {
        storm.strike();
        // A kill may come before there is a store.
        if site.store().join("tidegate-store").exists() {
            let now = Witness::read(&site.store());
            before.iter().for_each(|before| now.remembers(before));
            before = Some(now);
        }
    }
    storm.clear_up(3);

    let results = site.results();
    assert_eq!(results.len(), TASKS);
    let witness = Witness::read(&site.store());
    before.iter().for_each(|before| witness.remembers(before));
    let (arrived, doubles) = witness.testify(&neighbours, &results);
    assert!(doubles > 0, "no kill cut a read: nothing was tried here");
    let ambiguous = results
        .iter()
        .filter(|result| result["outcome"] == "ambiguous")
        .count();
    assert!(ambiguous > 0, "no kill cut a write: nothing was tried here");
    println!("{KILLS} kills, {arrived} arrivals, {doubles} doubles, {ambiguous} ambiguous");
}
