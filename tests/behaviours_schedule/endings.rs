//! What counts as an attempt, where a task goes on after a redirect, and how it is called off.

use std::time::Duration;

use serde_json::json;
use tidegate::admission::{Chosen, Operator};
use tidegate::audit::Event;
use tidegate::budget::Cause;
use tidegate::outcome::{End, Outcome};
use tidegate::schedule::{Cancelled, TaskState};

use crate::support::driven::Driven;
use crate::support::gate::{Setup, counted, rate, task, until};
use crate::support::loopback::{Answer, Script, Target};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

// 17
#[tokio::test(start_paused = true)]
async fn after_fifteen_hundred_deferrals_a_failure_is_the_first() {
    const DEFERRALS: u32 = 1500;
    let time = Driven::new();
    let script = Script::list(vec![Answer::CloseAfterRequest, Answer::status(200).into()]);
    let target = Target::start(script);
    let gate = time.setup().open();
    let chosen = Chosen::Target(target.origin().parse().unwrap());
    let operator = || Operator {
        by: "ada".into(),
        note: "a test".into(),
    };
    gate.admission.hold(&chosen, None, operator()).unwrap();
    let mut run = gate.start();
    run.submit(vec![task(
        &json!({"url": target.url("/"), "max_attempts": 2}),
    )])
    .await;
    // Whatever an operator says makes the schedule ask again.
    while run.handle.list().await.unwrap()[0].deferrals < DEFERRALS {
        gate.admission.hold(&chosen, None, operator()).unwrap();
    }
    assert!(target.arrivals().is_empty());
    gate.admission.release(&chosen, operator()).unwrap();
    until("it goes out", || target.arrivals().len() == 1).await;
    time.still(&run).await;
    let [view] = run.handle.list().await.unwrap().try_into().unwrap();
    let TaskState::Backoff { until } = view.state else {
        panic!("{view:?}");
    };
    assert!(
        until <= time.now().after(SECOND),
        "the first step of its back-off"
    );
    time.pass(SECOND).await;
    let result = run.next().await;
    assert_eq!((result.outcome, result.attempts), (Outcome::Succeeded, 2));
    assert!(result.deferrals >= DEFERRALS);
    let calls = gate.calls().await;
    let attempts: Vec<_> = calls.iter().map(|call| call.intent.attempt).collect();
    assert_eq!(attempts, [1, 2]);
}

// 19
#[tokio::test(start_paused = true)]
async fn a_redirect_to_an_exhausted_target_waits_there_and_not_where_it_came_from() {
    let time = Driven::new();
    let there = Target::start(Script::always(Answer::status(200).body("there")));
    let location = there.url("/there");
    let here = Target::start(Script::always(
        Answer::status(302).header("location", &location),
    ));
    let setup = time
        .setup()
        .rule(&here.origin(), vec![counted()])
        .rule(&there.origin(), vec![counted(), rate("1/min", 1)]);
    let gate = setup.open();
    let sent = gate.send("GET", &there.url("/first")).await;
    assert!(
        matches!(sent, tidegate::egress::Sent::Answered(_)),
        "{sent:?}"
    );
    drop(sent);
    let run = gate.start();
    run.submit(vec![task(
        &json!({"url": here.url("/here"), "agent": "scout"}),
    )])
    .await;
    let snapshot = time.still(&run).await;
    let spent =
        || [&here, &there].map(|target| (target.arrivals().len(), gate.spent(&target.origin())));
    assert_eq!(
        spent(),
        [(1, 1), (1, 1)],
        "one charge here; there, the caller's alone"
    );
    let lane = snapshot
        .lanes
        .iter()
        .find(|lane| lane.waiting == 1)
        .unwrap();
    assert_eq!(lane.target.origin.as_str(), there.origin());
    let ready = time.now().after(MINUTE);
    assert_eq!(lane.blocked, Some((Cause::BudgetEmpty, Some(ready))));

    // A restart in between repeats nothing.
    run.stop().await;
    let gate = setup.open_in(gate.into_folder());
    let mut run = gate.start();
    time.pass(MINUTE - Duration::from_millis(1)).await;
    time.still(&run).await;
    assert_eq!((here.arrivals().len(), there.arrivals().len()), (1, 1));
    time.pass(Duration::from_millis(1)).await;
    let result = run.next().await;
    assert_eq!((result.outcome, result.attempts), (Outcome::Succeeded, 1));
    assert_eq!(result.final_url, Some(location));
    assert_eq!(result.target, Some(there.origin()));
    assert!(result.deferrals >= 1);
    assert_eq!((here.arrivals().len(), there.arrivals().len()), (1, 2));
    assert_eq!(gate.spent(&here.origin()), 1);
    assert_eq!(gate.spent(&there.origin()), 2);
    let calls = gate.calls().await;
    let hops: Vec<_> = calls
        .iter()
        .filter(|call| &*call.intent.step.agent == "scout")
        .map(|call| (call.intent.hop, call.intent.attempt, call.settlement.end))
        .collect();
    assert_eq!(hops, [(0, 1, End::Answered), (1, 1, End::Answered)]);
}

#[tokio::test]
async fn a_cost_that_can_never_be_paid_is_refused_and_holds_up_nobody() {
    let target = Target::start(Script::always(Answer::status(200)));
    let setup = Setup::default().rule(&target.origin(), vec![rate("1000/s", 4), counted()]);
    let gate = setup.open();
    let of = |id: &str, cost: u32| {
        task(&json!({"id": id, "url": target.url(&format!("/{id}")), "cost": cost}))
    };
    let results = gate.run(vec![of("a", 5), of("b", 4), of("c", 1)]).await;
    let outcomes: Vec<_> = results.iter().map(|result| result.outcome).collect();
    use Outcome::{Refused, Succeeded};
    assert_eq!(outcomes, [Refused, Succeeded, Succeeded]);
    let error = results[0].error.as_deref().unwrap();
    assert!(error.contains("cost_too_large"), "{error}");
    assert_eq!(target.arrivals().len(), 2);
    assert_eq!(gate.spent(&target.origin()), 5, "each call at its own cost");
}

#[tokio::test]
async fn a_task_that_is_called_off_is_never_sent() {
    let slow = Duration::from_millis(500);
    let target = Target::start(Script::always(Answer::status(200).after(slow)));
    let setup = Setup::default().ruled(&target.origin(), vec![counted()], |conduct| {
        conduct.concurrency = 1.try_into().unwrap();
    });
    let gate = setup.open();
    let run = gate.start();
    let tasks = ["a", "b", "c"].map(|name| {
        let url = target.url(&format!("/{name}"));
        task(&json!({"id": name, "url": url, "agent": "scout"}))
    });
    run.submit(tasks.into()).await;
    until("the first is under way", || target.arrivals().len() == 1).await;
    let cancel = async |number| run.handle.cancel(run.task(number)).await.unwrap();
    assert_eq!(cancel(0).await, Cancelled::Running);
    assert_eq!(cancel(1).await, Cancelled::Done);
    assert_eq!(cancel(1).await, Cancelled::Unknown);
    assert_eq!(cancel(99).await, Cancelled::Unknown);
    let results = run.finish().await;
    let outcomes: Vec<_> = results.iter().map(|result| result.outcome).collect();
    use Outcome::{Cancelled as CalledOff, Succeeded};
    assert_eq!(outcomes, [Succeeded, CalledOff, Succeeded]);
    assert_eq!(results[1].attempts, 0);
    let paths: Vec<_> = target
        .arrivals()
        .into_iter()
        .map(|seen| seen.path)
        .collect();
    assert_eq!(paths, ["/a", "/c"]);
    assert_eq!(gate.spent(&target.origin()), 2);
    let events = gate.events().await;
    let cancelled = events.iter().filter_map(|event| match event {
        Event::Task { id, what, step, .. } => Some((&**id, &**what, &*step.agent)),
        _ => None,
    });
    assert_eq!(cancelled.collect::<Vec<_>>(), [("b", "cancelled", "scout")]);
}
