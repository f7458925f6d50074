//! 12 and 14. Work that waits costs nothing while it does: the process sleeps until the earliest
//! instant at which there is something to do, and has one alarm for each target that waits.

use std::time::Duration;

use serde_json::json;
use tidegate::audit::Event;
use tidegate::budget::Cause;
use tidegate::schedule::Snapshot;
use tokio::runtime;

use crate::support::alone::{Place, alone, cpu_ticks, status};
use crate::support::gate::{Run, Setup, names, rate, stopwatch, task};

const TARGETS: usize = 200;
const TASKS: usize = 20_000;

/// All budgets are spent, and the next token of any of them is an hour away.
fn exhausted() -> Setup {
    let mut setup = Setup::default();
    setup.wire.lookup = names([]);
    for target in 0..TARGETS {
        setup = setup.rule(&format!("http://{target}.test"), vec![rate("1/h", 1)]);
    }
    setup
}

async fn at_rest(run: &Run) -> Snapshot {
    loop {
        let snapshot = run.handle.look(TARGETS).await.unwrap();
        let blocked = |lane: &&_| {
            let lane: &tidegate::schedule::LaneView = lane;
            matches!(lane.blocked, Some((Cause::BudgetEmpty, Some(_))))
        };
        if snapshot.running == 0 && snapshot.lanes.iter().filter(blocked).count() == TARGETS {
            return snapshot;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn twenty_thousand_deferred_tasks_are_no_timers_no_threads_and_no_work() {
    if alone(
        "asleep::twenty_thousand_deferred_tasks_are_no_timers_no_threads_and_no_work",
        &[],
    ) == Place::Outside
    {
        return;
    }
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let gate = exhausted().open();
        for target in 0..TARGETS {
            // Another agent's call has taken the one token there is, and is still under way.
            let url = format!("http://{target}.test/");
            let route = gate.admission.route(&url, "GET", &<_>::default()).unwrap();
            let step = Default::default();
            let ask = tidegate::admission::Ask::new("GET", "/", &step);
            let line = tidegate::budget::Line::Join;
            let verdict = gate.admission.admit(&route.lane, &ask, line).unwrap();
            let tidegate::admission::Verdict::Granted(mut permit) = verdict else {
                panic!("{verdict:?}");
            };
            permit.dial().unwrap().mark();
            drop(permit);
        }
        let threads = status("Threads");
        let run = gate.start();
        let tasks = (0..TASKS).map(|number| {
            let url = format!("http://{}.test/{number}", number % TARGETS);
            task(&json!({"url": url, "agent": format!("agent-{}", number % 5)}))
        });
        run.submit(tasks.collect()).await;
        let snapshot = at_rest(&run).await;
        assert_eq!(snapshot.queued, TASKS as u64);
        assert_eq!(snapshot.alarms, TARGETS, "one for each that waits");
        let futures = runtime.metrics().num_alive_tasks();
        assert!(futures <= 4, "{futures} futures");
        assert!(
            // The database starts and ends threads of its own; none is a task's.
            status("Threads") <= threads + 16,
            "{} threads",
            status("Threads")
        );

        // It says until when, and why.
        let wake = snapshot.wake.expect("an instant");
        let now = gate.admission.clock().now();
        let hour = Duration::from_hours(1);
        assert!(wake.since(now) > hour / 2 && wake.since(now) <= hour);
        let earliest = snapshot
            .lanes
            .iter()
            .filter_map(|lane| lane.blocked?.1)
            .min();
        assert_eq!(earliest, Some(wake));
        let deferred = gate
            .events()
            .await
            .into_iter()
            .filter_map(|event| match event {
                Event::Deferred(deferred) => Some(deferred),
                _ => None,
            });
        let deferred: Vec<_> = deferred.collect();
        assert_eq!(deferred.len(), TARGETS, "one record for each");
        assert!(
            deferred
                .iter()
                .all(|deferred| deferred.ready.is_some() && deferred.count == 1)
        );

        let (before, began) = (cpu_ticks(), stopwatch());
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (used, took) = (cpu_ticks() - before, began());
        println!(
            "{used} ticks of 10 ms in {took:?}, {futures} futures, {} threads",
            status("Threads")
        );
        assert!(used <= 4, "{used} ticks in {took:?}");
        run.stop().await;
    });
}
