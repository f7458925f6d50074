//! A burst that was spent before a kill is spent after it.

use std::time::Duration;

use crate::neighbour::{Neighbour, Tolerated};
use crate::support::site::{Site, eventually};

#[test]
fn a_burst_is_given_once_however_often_the_gate_is_killed_and_started_again() {
    let quick = Duration::from_millis(1);
    let neighbours = [
        Neighbour::new(
            Tolerated::Rate {
                per_second: 1,
                burst: 5,
            },
            quick,
        ),
        Neighbour::new(
            Tolerated::Max {
                most: 8,
                seconds: 60,
                burst: 5,
            },
            quick,
        ),
        Neighbour::new(
            Tolerated::Quota {
                most: 5,
                seconds: 3_600,
            },
            quick,
        ),
    ];
    let rules: String = neighbours.iter().map(Neighbour::rule).collect();
    let site = Site::new(&format!("[defaults]\nconcurrency = 10\n{rules}"));
    site.tasks(
        (0..300)
            .zip(neighbours.iter().cycle())
            .map(|(number, neighbour)| neighbour.target.url(&format!("/{number}"))),
    );
    let arrived = |number: usize| neighbours[number].target.arrivals().len();

    let run = site.run();
    eventually("every burst is spent", || {
        arrived(0) >= 4 && arrived(1) >= 4 && arrived(2) == 5
    });
    assert!(run.kill());
    for _ in 0..10 {
        let mut run = site.run();
        site.until_open(&mut run);
        // Long enough for a burst, if there were one.
        std::thread::sleep(Duration::from_millis(150));
        assert!(run.kill());
    }
    neighbours.iter().for_each(|neighbour| {
        neighbour.arrivals();
    });
    assert!(
        arrived(1) <= 6,
        "of a burst of 5 that takes 15 s for each to come back"
    );
    assert_eq!(arrived(2), 5);
}
