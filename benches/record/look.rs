//! Asking the record.

use std::time::{Duration, Instant};

use tidegate::audit::{By, Filter, Who, Windows, events};
use tidegate::store::{Space, Store};

use crate::{START, Shape, fill};

const DAY: Duration = Duration::from_hours(24);

pub(crate) fn sizes(store: &Store, shape: &Shape) {
    for (space, what) in [
        (Space::Block, "blocks"),
        (Space::Name, "names"),
        (Space::Bucket, "buckets"),
    ] {
        let began = Instant::now();
        let (mut count, mut bytes) = (0_u64, 0_u64);
        for stored in store.scan_bytes(space, ..) {
            let (key, value) = stored.expect("a value");
            count += 1;
            bytes += (key.len() + value.len()) as u64;
        }
        println!(
            "{what}: {count} of {bytes} bytes, {:.1} bytes a call; read through in {:.1} s",
            bytes as f64 / shape.calls as f64,
            began.elapsed().as_secs_f64()
        );
    }
}

pub(crate) fn questions(store: &Store, shape: &Shape) {
    let days = shape.span.as_secs() / DAY.as_secs();
    let day = |n: u64| Filter {
        from: Some(START.after(DAY * n as u32)),
        to: Some(START.after(DAY * (n as u32 + 1))),
        ..Filter::default()
    };
    for n in [days / 2, 0, days - 1] {
        for target in [shape.targets / 3, shape.targets - 1, 0] {
            let filter = Filter {
                target: Some(fill::url(target).parse().expect("a target")),
                ..day(n)
            };
            let what = format!("day {n} of {}", fill::url(target));
            ask(&what, || {
                events(store, filter.clone()).expect("a record").count()
            });
        }
    }
    let filter = Filter {
        target: Some(fill::url(shape.targets / 3).parse().expect("a target")),
        ..Filter::default()
    };
    ask("all days of a target", || {
        events(store, filter.clone()).expect("a record").count()
    });
    let middle = shape.calls / 2;
    let filter = Filter {
        trajectory: Some(fill::trajectory(middle)),
        ..Filter::default()
    };
    ask("a trajectory, no time given", || {
        events(store, filter.clone()).expect("a record").count()
    });
    let filter = Filter {
        agent: Some(format!("scout-{}", fill::agent(middle))),
        ..day(days / 2)
    };
    ask("an agent's day", || {
        events(store, filter.clone()).expect("a record").count()
    });
    let hour = Filter {
        from: Some(START.after(DAY * (days / 2) as u32)),
        to: Some(START.after(DAY * (days / 2) as u32 + DAY / 24)),
        ..Filter::default()
    };
    ask("windows of a minute, one hour, all targets", || {
        let mut windows = Windows::new(Duration::from_mins(1)).within(&hour);
        for found in events(store, hour.clone()).expect("a record") {
            windows.add(&found.expect("an event"));
        }
        windows.iter().count()
    });
    ask("who, by trajectory, one hour", || {
        let mut who = Who::new(By::Trajectory);
        for found in events(store, hour.clone()).expect("a record") {
            who.add(&found.expect("an event"));
        }
        who.groups().len()
    });
}

/// The first time as it comes, and again.
fn ask(what: &str, mut question: impl FnMut() -> usize) {
    let mut times = Vec::new();
    let mut found = 0;
    for _ in 0..3 {
        let began = Instant::now();
        found = question();
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    println!(
        "{what}: {found} found in {:.1} ms, then {:.1} ms",
        times[0],
        times[1..].iter().copied().fold(f64::MAX, f64::min)
    );
}
