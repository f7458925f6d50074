//! 18. A target that refuses for ever: its tasks neither spin nor hang, and end with their history.

use std::time::Duration;

use serde_json::json;
use tidegate::audit::Event;
use tidegate::outcome::Outcome;
use tidegate::schedule::NewTask;

use crate::support::driven::Driven;
use crate::support::gate::{Gate, Run, Setup, task, until};
use crate::support::loopback::{Answer, Script, Target};

const MINUTE: Duration = Duration::from_mins(1);

fn gate(time: &Driven, stall_limit: Duration) -> Gate {
    let mut setup: Setup = time.setup();
    setup.settings.stall_limit = stall_limit;
    setup.open()
}

/// Refuses for a minute each time, and takes this long to say so.
fn for_ever(latency: Duration) -> Target {
    let refusal = Answer::status(429).header("retry-after", "60");
    Target::start(Script::always(refusal.after(latency)))
}

fn tasks(target: &Target, names: &[&str]) -> Vec<NewTask> {
    let of = |name: &&str| task(&json!({"id": name, "url": target.url(&format!("/{name}"))}));
    names.iter().map(of).collect()
}

/// How many tasks are left once the schedule has come to rest.
async fn left(time: &Driven, run: &Run) -> u64 {
    let snapshot = time.still(run).await;
    snapshot.queued + snapshot.backoff
}

#[tokio::test(start_paused = true)]
async fn the_stall_limit_ends_them_with_their_history() {
    let time = Driven::new();
    let target = for_ever(Duration::ZERO);
    let gate = gate(&time, 10 * MINUTE);
    let mut run = gate.start();
    run.submit(tasks(&target, &["a"])).await;
    time.still(&run).await;
    run.submit(tasks(&target, &["b", "c"])).await;
    for minute in 1..10 {
        time.pass(MINUTE).await;
        let asked = || target.arrivals().len() == minute + 1;
        until("one asks for all", asked).await;
        assert_eq!(left(&time, &run).await, 3);
        assert!(asked(), "one a minute");
    }
    time.pass(MINUTE).await;
    let results = [run.next().await, run.next().await, run.next().await];
    let arrivals = target.arrivals().len();
    for result in &results {
        assert_eq!(result.outcome, Outcome::Expired);
        assert_eq!((result.attempts, result.status), (0, None));
        let why = result.error.as_deref().unwrap();
        assert!(why.contains("stall limit"), "{why}");
    }
    let deferrals: u32 = results.iter().map(|result| result.deferrals).sum();
    assert!(deferrals >= 9, "{deferrals}");
    let events = gate.events().await;
    let expired = events
        .iter()
        .filter(|event| matches!(event, Event::Task { what, .. } if &**what == "expired"));
    assert_eq!(expired.count(), 3);
    time.pass(60 * MINUTE).await;
    let rest = time.still(&run).await;
    assert_eq!((rest.queued, rest.alarms, rest.wake), (0, 0, None));
    assert_eq!(
        target.arrivals().len(),
        arrivals,
        "and nobody asks any more"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_at_the_limit_does_not_escape_it() {
    let time = Driven::new();
    let target = for_ever(Duration::from_millis(300));
    let gate = gate(&time, 10 * MINUTE);
    let mut run = gate.start();
    run.submit(tasks(&target, &["a"])).await;
    until("the first arrives", || target.arrivals().len() == 1).await;
    time.still(&run).await;
    time.pass(MINUTE).await;
    until("the probe arrives", || target.arrivals().len() == 2).await;
    // The limit comes before the refusal does.
    time.pass(10 * MINUTE).await;
    for _ in 0..12 {
        time.still(&run).await;
        time.pass(MINUTE).await;
    }
    assert_eq!(left(&time, &run).await, 0, "it goes on for ever");
    assert_eq!(run.next().await.outcome, Outcome::Expired);
    assert_eq!(target.arrivals().len(), 12, "one limit more at most");
}

#[tokio::test(start_paused = true)]
async fn tasks_that_come_after_a_stall_have_a_limit_too() {
    let time = Driven::new();
    let target = for_ever(Duration::ZERO);
    let gate = gate(&time, 3 * MINUTE);
    let mut run = gate.start();
    for round in ["first", "second"] {
        run.submit(tasks(&target, &[round])).await;
        for _ in 0..2 {
            assert_eq!(
                left(&time, &run).await,
                1,
                "{round} is not given up at once"
            );
            time.pass(MINUTE).await;
        }
        for _ in 0..3 {
            time.still(&run).await;
            time.pass(MINUTE).await;
        }
        assert_eq!(left(&time, &run).await, 0, "{round} goes on for ever");
        assert_eq!(run.next().await.outcome, Outcome::Expired);
    }
}

#[tokio::test(start_paused = true)]
async fn one_answer_starts_the_count_anew() {
    let time = Driven::new();
    let target = Target::start(Script::new(|request, earlier| {
        let served = request.path == "/b" && earlier == 3;
        let refusal = Answer::status(429).header("retry-after", "60");
        if served { Answer::status(200) } else { refusal }
    }));
    let mut setup = time.setup();
    setup.settings.stall_limit = 5 * MINUTE;
    setup.settings.concurrency = 1;
    let gate = setup.open();
    let mut run = gate.start();
    let lines = [("b", 1), ("a", 0)].map(|(name, priority)| {
        let url = target.url(&format!("/{name}"));
        task(&json!({"id": name, "url": url, "priority": priority}))
    });
    run.submit(lines.into()).await;
    time.still(&run).await;
    let mut ends = Vec::new();
    for minute in 1..=10 {
        time.pass(MINUTE).await;
        let gone = 2 - ends.len() as u64 - left(&time, &run).await;
        ends.extend((0..gone).map(|_| minute));
    }
    assert_eq!(run.next().await.outcome, Outcome::Succeeded);
    assert_eq!(run.next().await.outcome, Outcome::Expired);
    // The first refusal of the one may be heard before the answer to the other is.
    assert!(ends == [3, 8] || ends == [3, 9], "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_task_in_the_middle_of_a_pause() {
    let time = Driven::new();
    let target = for_ever(Duration::ZERO);
    let gate = gate(&time, 600 * MINUTE);
    let mut run = gate.start();
    let mut lines = tasks(&target, &["a", "b"]);
    lines[0].task.deadline = Some(time.now().after(MINUTE + MINUTE / 2));
    run.submit(lines).await;
    time.still(&run).await;
    time.pass(MINUTE).await;
    assert_eq!(left(&time, &run).await, 2);
    time.pass(MINUTE / 2 - Duration::from_millis(1)).await;
    assert_eq!(left(&time, &run).await, 2);
    let asked = target.arrivals().len();
    time.pass(Duration::from_millis(1)).await;
    let result = run.next().await;
    assert_eq!((&*result.id, result.outcome), ("a", Outcome::Expired));
    assert!(result.error.unwrap().contains("deadline"));
    let rest = time.still(&run).await;
    assert_eq!((rest.backoff, target.arrivals().len()), (1, asked));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_a_call_is_under_way_waits_for_its_end() {
    let time = Driven::new();
    let target = Target::start(Script::new(|request, _| {
        let slow = Duration::from_millis(300);
        match &*request.path {
            "/refused" => Answer::status(429).header("retry-after", "60").after(slow),
            _ => Answer::status(200).after(slow),
        }
    }));
    let gate = gate(&time, 600 * MINUTE);
    let mut run = gate.start();
    let mut lines = tasks(&target, &["answered", "refused"]);
    for line in &mut lines {
        line.task.deadline = Some(time.now().after(Duration::from_secs(1)));
    }
    run.submit(lines).await;
    until("both are under way", || target.arrivals().len() == 2).await;
    time.pass(Duration::from_secs(1)).await;
    let (one, other) = (run.next().await, run.next().await);
    let mut outcomes = [(one.id, one.outcome), (other.id, other.outcome)];
    outcomes.sort();
    assert_eq!(outcomes[0], ("answered".into(), Outcome::Succeeded));
    assert_eq!(outcomes[1], ("refused".into(), Outcome::Expired));
    assert_eq!(target.arrivals().len(), 2, "nothing is sent after it");
}
