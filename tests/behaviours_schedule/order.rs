//! Who goes first. An exhausted target delays its own work only, and one agent's crowd does not
//! delay another's few.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::outcome::Outcome;
use tidegate::schedule::TaskState;

use crate::support::driven::Driven;
use crate::support::gate::{Setup, counted, rate, stopwatch, task, until};
use crate::support::loopback::{Answer, Script, Target};

fn answered() -> Target {
    Target::start(Script::always(Answer::status(200)))
}

fn paths(target: &Target) -> Vec<String> {
    let arrivals = target.arrivals().into_iter();
    arrivals
        .map(|seen| seen.path.trim_start_matches('/').to_owned())
        .collect()
}

/// One call at a time, in the order in which the schedule grants them.
fn one_by_one() -> Setup {
    let mut setup = Setup::default();
    setup.settings.concurrency = 1;
    setup
}

async fn order_of(lines: &[Value], target: &Target) -> Vec<String> {
    let tasks = lines.iter().map(|line| {
        let mut line = line.clone();
        line["url"] = json!(target.url(&format!("/{}", line["id"].as_str().unwrap())));
        task(&line)
    });
    one_by_one().open().run(tasks.collect()).await;
    paths(target)
}

// 11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_tasks_of_a_free_target_are_done_at_once_behind_a_thousand_of_an_exhausted_one() {
    let (exhausted, free) = (answered(), answered());
    let mut setup = Setup::default()
        .rule(&exhausted.origin(), vec![rate("1/h", 1)])
        .rule(&free.origin(), vec![counted()]);
    setup.settings.concurrency = 16;
    let gate = setup.open();
    let run = gate.start();
    let of =
        |target: &Target, number: usize| task(&json!({"url": target.url(&format!("/{number}"))}));
    let mut tasks: Vec<_> = (0..1000).map(|number| of(&exhausted, number)).collect();
    tasks.extend((0..10).map(|number| of(&free, number)));
    run.submit(tasks).await;
    let began = stopwatch();
    until("the ten are done", || free.arrivals().len() == 10).await;
    assert!(began() < Duration::from_secs(1), "{:?}", began());
    let snapshot = run.handle.look(2).await.unwrap();
    assert_eq!((exhausted.arrivals().len(), snapshot.queued), (1, 999));
    run.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_holds_all_its_calls_leaves_room_for_the_others() {
    let silent = Target::start(Script::always(Answer::Silence));
    let free = answered();
    let mut setup = Setup::default()
        .ruled(&silent.origin(), vec![counted()], |conduct| {
            conduct.concurrency = 4.try_into().unwrap();
            conduct.timeout = Duration::from_secs(3);
        })
        .rule(&free.origin(), vec![counted()]);
    setup.settings.concurrency = 16;
    let gate = setup.open();
    let run = gate.start();
    let of = |target: &Target, number: usize| {
        task(&json!({"url": target.url(&format!("/{number}")), "max_attempts": 1}))
    };
    let mut tasks: Vec<_> = (0..40).map(|number| of(&silent, number)).collect();
    tasks.extend((0..100).map(|number| of(&free, number)));
    let began = stopwatch();
    run.submit(tasks).await;
    until("the free ones are done", || free.arrivals().len() == 100).await;
    assert!(began() < Duration::from_secs(3), "{:?}", began());
    assert_eq!(silent.arrivals().len(), 4);
    run.stop().await;
}

// 20
#[tokio::test]
async fn two_agents_on_one_target_take_turns() {
    let target = answered();
    let of = |agent: &str, number: usize| {
        let id = format!("{agent}{number}");
        task(&json!({"id": id, "url": target.url(&format!("/{agent}")), "agent": agent}))
    };
    let mut tasks: Vec<_> = (0..100).map(|number| of("a", number)).collect();
    tasks.extend((0..100).map(|number| of("b", number)));
    let gate = one_by_one().open();
    let run = gate.start();
    run.submit(tasks).await;
    let results = run.finish().await;
    assert!(
        results
            .iter()
            .all(|result| result.outcome == Outcome::Succeeded)
    );
    let seen = paths(&target);
    assert_eq!(seen.len(), 200);
    for pair in seen.chunks(2) {
        assert_ne!(pair[0], pair[1], "{seen:?}");
    }
}

#[tokio::test]
async fn the_few_of_an_agent_that_comes_late_do_not_wait_for_the_many_of_another() {
    let target = Target::start(Script::always(
        Answer::status(200).after(Duration::from_millis(5)),
    ));
    let of = |agent: &str, number: usize| {
        task(&json!({"url": target.url(&format!("/{agent}?{number}")), "agent": agent}))
    };
    let gate = one_by_one().open();
    let run = gate.start();
    run.submit((0..300).map(|number| of("many", number)).collect())
        .await;
    until("some are done", || target.arrivals().len() >= 10).await;
    run.submit((0..5).map(|number| of("few", number)).collect())
        .await;
    let before = target.arrivals().len();
    let few = || {
        paths(&target)
            .iter()
            .filter(|path| path.starts_with("few"))
            .count()
    };
    until("the few are done", || few() == 5).await;
    let after = target.arrivals().len();
    assert!(after - before <= 60, "{before} before, {after} after");
    run.stop().await;
}

#[tokio::test]
async fn the_higher_priority_goes_first_whoever_asked_before() {
    let target = answered();
    let lines: Vec<_> = [
        ("low", -1),
        ("plain", 0),
        ("high", 9),
        ("higher", 10),
        ("same", 9),
    ]
    .map(|(id, priority)| json!({"id": id, "priority": priority}))
    .into();
    let order = order_of(&lines, &target).await;
    assert_eq!(order, ["higher", "high", "same", "plain", "low"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_before_its_time() {
    let time = Driven::new();
    let target = answered();
    let gate = time.setup().open();
    let mut run = gate.start();
    let mut tasks = ["now", "later"].map(|id| task(&json!({"id": id, "url": target.url("/")})));
    let hour = Duration::from_hours(1);
    tasks[1].task.not_before = Some(time.now().after(hour));
    run.submit(tasks.into()).await;
    assert_eq!(&*run.next().await.id, "now");
    let snapshot = time.still(&run).await;
    assert_eq!(
        (snapshot.backoff, snapshot.wake),
        (1, Some(time.now().after(hour)))
    );
    let [view] = run.handle.list().await.unwrap().try_into().unwrap();
    let until = time.now().after(hour);
    assert_eq!(view.state, TaskState::Backoff { until });
    time.pass(hour - Duration::from_millis(1)).await;
    time.still(&run).await;
    assert_eq!(target.arrivals().len(), 1);
    time.pass(Duration::from_millis(1)).await;
    assert_eq!(&*run.next().await.id, "later");
}
