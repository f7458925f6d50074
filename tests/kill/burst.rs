//! A burst that was spent before a kill is spent after it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::neighbour::{MARGIN, Neighbour, Tolerated};
use crate::support::loopback::{Answer, Script, Target, bucket_violations};
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

/// The arrivals of several targets, as one budget's owner would count them.
fn together(targets: &[Target]) -> Vec<Duration> {
    let mut at: Vec<_> = targets
        .iter()
        .flat_map(Target::arrivals)
        .map(|arrival| arrival.at)
        .collect();
    at.sort_unstable();
    let first = at.first().copied();
    at.into_iter()
        .map(|at| first.map_or(Duration::ZERO, |first| at - first))
        .collect()
}

#[test]
fn a_burst_that_several_targets_share_is_given_once_to_all_of_them() {
    let started = |last| {
        let ip = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        Target::on(ip, Script::always(Answer::status(200)))
    };
    // Neighbours on one address that no rule names, and two that share a pool.
    let strangers = [started(2), started(2), started(2)];
    let pooled = [started(1), started(1)];
    let member = |target: &Target| {
        format!(
            "[[target]]\nmatch = \"{}\"\nrate = \"100/s\"\nburst = 50\npool = \"p\"\n",
            target.origin()
        )
    };
    let members: String = pooled.iter().map(member).collect();
    let site = Site::new(&format!(
        "[defaults]\nrate = \"1/s\"\nburst = 4\nconcurrency = 10\n\
         arrival_margin = \"{MARGIN}\"\n{members}\
         [[pool]]\nname = \"p\"\nrate = \"1/s\"\nburst = 6\n"
    ));
    let all = || strangers.iter().chain(&pooled);
    site.tasks(
        (0..200).flat_map(|number| all().map(move |target| target.url(&format!("/{number}")))),
    );

    for round in 0..6 {
        let mut run = site.run();
        site.until_open(&mut run);
        if round == 0 {
            eventually("both bursts are spent", || {
                together(&strangers).len() >= 3 && together(&pooled).len() >= 5
            });
        }
        std::thread::sleep(Duration::from_millis(150));
        assert!(run.kill());
    }
    for (targets, burst) in [(&strangers[..], 4), (&pooled[..], 6)] {
        let times = together(targets);
        assert_eq!(bucket_violations(&times, 1.0, burst), 0, "{times:?}");
    }
}
