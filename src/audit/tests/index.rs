use std::time::Duration;

use super::bench::*;
use crate::audit::frames::blocks;
use crate::audit::index::BLOCK;
use crate::audit::*;
use crate::budget::{Cause, Scope};
use crate::clock::Moment;

/// Each event in a segment of its own, over some days and some blocks.
fn many(bench: &Bench, segments: u64) {
    for n in 0..segments {
        let target = match n % 7 {
            0 => "https://a.example.org#search".to_owned(),
            1 => "http://b.example.org:8080".to_owned(),
            2 => "https://bbc.co.uk".to_owned(),
            3 => format!("https://h{}.blog.test", n % 300),
            _ => format!("https://site{}.test", n % 400),
        };
        let mut intent = intent(&target, &format!("scout-{}", n % 50), bench.now());
        intent.step.trajectory = format!("run-{}", n / 90).into();
        bench.call(intent, Duration::from_secs(1));
        match n % 101 {
            0 => bench
                .log()
                .defer(deferred(&target, "late", Cause::BudgetEmpty, bench.now())),
            1 => bench
                .log()
                .refuse(refused("http://10.0.0.1", "scout-1", bench.now())),
            2 => drop(bench.log().note(Event::Released {
                scope: Scope::Group("example.org".into()),
                by: "me".into(),
                note: "".into(),
                at: bench.now(),
            })),
            _ => {}
        }
        bench.clock.advance(Duration::from_secs(150));
        bench.log().turn();
    }
}

fn filters(bench: &Bench) -> Vec<Filter> {
    let targets = [
        None,
        Some("https://a.example.org"),
        Some("https://a.example.org#search"),
        Some("https://a.example.org#other"),
        Some("http://b.example.org:8080"),
        Some("https://bbc.co.uk"),
        Some("https://h3.blog.test"),
        Some("https://site12.test"),
        Some("http://10.0.0.1"),
        Some("https://nobody.test"),
    ];
    let sites = [
        None,
        Some("example.org"),
        Some("test"),
        Some("co.uk"),
        Some("blog.test"),
        Some("0.1"),
    ];
    let agents = [None, Some("scout-7"), Some("late"), Some("nobody")];
    let trajectories = [None, Some("run-5"), Some("")];
    let day = Duration::from_hours(24);
    let spans = [
        (None, None),
        (Some(START.after(day)), Some(START.after(2 * day))),
        (Some(START.after(HOUR)), None),
        (None, Some(START.after(3 * day + HOUR))),
        (Some(bench.now()), None),
        (Some(Moment::MAX), Some(Moment::ZERO)),
    ];
    let mut filters = Vec::new();
    for target in targets {
        for site in sites {
            for agent in agents {
                for trajectory in trajectories {
                    for (from, to) in spans {
                        filters.push(Filter {
                            target: target.map(|target| target.parse().unwrap()),
                            site: site.map(Into::into),
                            agent: agent.map(Into::into),
                            trajectory: trajectory.map(Into::into),
                            from,
                            to,
                        });
                    }
                }
            }
        }
    }
    filters
}

#[test]
fn what_the_index_finds_is_what_reading_all_finds() {
    let mut bench = Bench::new();
    many(&bench, 700);
    bench.restart();
    many(&bench, 1700);
    bench.flush();
    let volumes: Vec<_> = frames::volumes(bench.store()).map(Result::unwrap).collect();
    let blocks: usize = volumes
        .iter()
        .map(|(day, _)| blocks(bench.store(), *day).count())
        .sum();
    assert!(volumes.len() > 3 && blocks + 1 >= volumes.len());
    assert!(bench.segments().len() > 2 * BLOCK);
    bench.assert_chained();
    let all = bench.all();
    for filter in filters(&bench) {
        let expected: Vec<_> = all
            .iter()
            .filter(|found| filter.matches(&found.event))
            .collect();
        let read = bench.read(filter.clone());
        assert!(read.iter().eq(expected), "{filter:?}");
    }
}

#[test]
fn a_block_that_is_full_within_a_day_is_indexed_and_goes_on_after_a_restart() {
    let mut bench = Bench::new();
    let calls = 48 * (2 * BLOCK as u64 + 100);
    for n in 0..calls {
        let target = format!("https://site{}.test", n % 5_000);
        bench.call(
            intent(&target, "scout", bench.now()),
            Duration::from_millis(2),
        );
        if n % 40_000 == 39_999 {
            bench.restart();
        }
    }
    bench.flush();
    let (day, _) = reach::Reach::latest(bench.store()).unwrap().unwrap();
    assert_eq!(blocks(bench.store(), day).count(), 2);
    bench.assert_chained();
    for site in [0, 17, 4_999] {
        let target = format!("https://site{site}.test").parse().unwrap();
        let filter = Filter {
            target: Some(target),
            ..Filter::default()
        };
        let made = (0..calls).filter(|n| n % 5_000 == site).count();
        assert_eq!(bench.read(filter).len(), made);
    }
}

#[test]
fn a_damaged_index_hides_nothing() {
    use std::os::unix::fs::FileExt as _;
    let bench = Bench::new();
    for n in 0..48 * (BLOCK as u64 + 10) {
        let target = format!("https://site{}.test", n % 100);
        bench.call(
            intent(&target, "scout", bench.now()),
            Duration::from_millis(2),
        );
    }
    bench.flush();
    let (day, _) = reach::Reach::latest(bench.store()).unwrap().unwrap();
    let block = blocks(bench.store(), day).next().unwrap().unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(bench.volume())
        .unwrap();
    let index = block.ends() - (block.at + block.bytes);
    file.write_all_at(
        &vec![0xFF; usize::try_from(index).unwrap()],
        block.at + block.bytes,
    )
    .unwrap();
    let filter = Filter {
        target: Some("https://site7.test".parse().unwrap()),
        ..Filter::default()
    };
    let made = (0..48 * (BLOCK as u64 + 10))
        .filter(|n| n % 100 == 7)
        .count();
    assert_eq!(bench.read(filter).len(), made);
}
