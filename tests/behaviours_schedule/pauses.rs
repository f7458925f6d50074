//! A target that says *not now* is left alone, by everybody and for as long as it asked.

use std::time::Duration;

use serde_json::json;
use tidegate::audit::Event;
use tidegate::budget::{Because, Cause, Pause};
use tidegate::egress::Sent;
use tidegate::outcome::{End, Outcome};
use tidegate::schedule::NewTask;

use crate::support::driven::Driven;
use crate::support::gate::{Gate, counted, rate, task, until};
use crate::support::loopback::{Answer, Reply, Script, Target};

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(1);

/// Of a target that refuses, however many tasks wait for it: the end of its pause, and the stall
/// limit.
const ALARMS: usize = 2;

/// Refuses the first `count` requests like this, after a while in which the others arrive, and
/// serves the rest.
fn refusing(count: usize, refusal: Reply) -> Script {
    Script::new(move |_, earlier| {
        if earlier < count {
            refusal.clone().after(Duration::from_millis(200))
        } else {
            Answer::status(200)
        }
    })
}

fn of_agents(target: &Target, agents: usize, each: usize) -> Vec<NewTask> {
    let one = |agent: usize, number: usize| {
        let url = target.url(&format!("/{agent}/{number}"));
        task(&json!({"url": url, "agent": format!("agent-{agent}")}))
    };
    (0..each)
        .flat_map(|number| (0..agents).map(move |agent| one(agent, number)))
        .collect()
}

fn pause(gate: &Gate, target: &Target) -> Option<Pause> {
    let route = gate
        .admission
        .route(&target.url("/"), "GET", &<_>::default());
    let levels = gate.admission.levels(&route.unwrap().lane);
    levels.into_iter().find_map(|level| level.pause)
}

// 15
#[tokio::test(start_paused = true)]
async fn five_agents_stay_away_for_seven_seconds_and_then_one_asks() {
    let time = Driven::new();
    let refusal = Answer::status(429).header("retry-after", "7");
    let target = Target::start(refusing(5, refusal));
    let gate = time
        .setup()
        .rule(&target.origin(), vec![rate("2/s", 5)])
        .open();
    let run = gate.start();
    run.submit(of_agents(&target, 5, 4)).await;
    let snapshot = time.still(&run).await;
    assert_eq!(target.arrivals().len(), 5, "the burst");
    assert_eq!((snapshot.backoff, snapshot.alarms), (20, ALARMS));
    assert_eq!(snapshot.wake, Some(time.now().after(7 * SECOND)));

    time.pass(7 * SECOND - TICK).await;
    time.still(&run).await;
    assert_eq!(target.arrivals().len(), 5, "nobody is back before");
    time.pass(TICK).await;
    until("the probe arrives", || target.arrivals().len() == 6).await;
    time.still(&run).await;
    assert_eq!(target.arrivals().len(), 6, "one asks for all");
    // From an empty bucket: a token each half second.
    for expected in 7..=20 {
        time.pass(SECOND / 2 - TICK).await;
        time.still(&run).await;
        assert_eq!(target.arrivals().len(), expected - 1);
        time.pass(TICK).await;
        until("the next arrives", || target.arrivals().len() == expected).await;
        time.still(&run).await;
        assert_eq!(target.arrivals().len(), expected, "one at a time");
    }
    assert!(
        target.arrivals()[5..]
            .iter()
            .all(|seen| seen.in_flight == 1)
    );
}

// 15, with nobody's hand on the clock
#[tokio::test]
async fn five_agents_stay_away_for_two_real_seconds() {
    let refusal = Answer::status(429).header("retry-after", "2");
    let probed = Duration::from_millis(300);
    let script = refusing(5, refusal);
    let script = Script::new(
        move |request, earlier| match script.answer(request, earlier) {
            Answer::Reply(reply) if earlier == 5 => Answer::from(reply.after(probed)),
            other => other,
        },
    );
    let target = Target::start(script);
    let setup = crate::support::gate::Setup::default();
    let gate = setup.rule(&target.origin(), vec![rate("8/s", 5)]).open();
    let results = gate.run(of_agents(&target, 5, 2)).await;
    assert!(
        results
            .iter()
            .all(|result| result.outcome == Outcome::Succeeded)
    );
    let at: Vec<_> = target
        .arrivals()
        .iter()
        .map(|seen| seen.since_start)
        .collect();
    assert_eq!(at.len(), 15);
    assert!(
        at[5] >= at[0] + Duration::from_millis(200) + 2 * SECOND,
        "{at:?}"
    );
    // Nobody is behind the probe, and then the bucket is an empty one.
    for (nth, at_nth) in (1..).zip(&at[6..]) {
        assert!(*at_nth >= at[5] + probed + nth * SECOND / 8, "{at:?}");
    }
}

// 16
#[tokio::test(start_paused = true)]
async fn eight_refusals_in_flight_together_are_one_step_of_back_off() {
    let time = Driven::new();
    let target = Target::start(refusing(9, Answer::status(429)));
    let gate = time.setup().open();
    let run = gate.start();
    run.submit(of_agents(&target, 8, 1)).await;
    time.still(&run).await;
    assert_eq!(target.arrivals().len(), 8);
    let first = pause(&gate, &target).expect("a pause");
    assert_eq!((first.streak, first.because), (1, Because::Throttled));
    assert!(
        first.until <= time.now().after(SECOND),
        "the first step, not the eighth"
    );

    time.pass(first.until.since(time.now())).await;
    until("the probe arrives", || target.arrivals().len() == 9).await;
    time.still(&run).await;
    let second = pause(&gate, &target).expect("a longer pause");
    assert_eq!((second.streak, target.arrivals().len()), (2, 9));
    let length = second.until.since(time.now());
    assert!(SECOND <= length && length <= 2 * SECOND, "{length:?}");
    time.pass(length).await;
    until("all are served", || target.arrivals().len() == 17).await;
    time.still(&run).await;
    assert_eq!(pause(&gate, &target), None);
    for call in gate.calls().await {
        let throttled = call.settlement.status == Some(429);
        assert_eq!(throttled, call.settlement.end == End::Throttled);
    }
}

// 13
#[tokio::test(start_paused = true)]
async fn ten_thousand_tasks_on_a_paused_target_are_one_pause() {
    let time = Driven::new();
    let refusal = Answer::status(503).header("retry-after", "60");
    let target = Target::start(refusing(1, refusal));
    let gate = time.setup().open();
    let run = gate.start();
    run.submit(of_agents(&target, 1, 1)).await;
    time.still(&run).await;
    let more = (0..10_000).map(|number| {
        let url = target.url(&format!("/more/{number}"));
        task(&json!({"url": url, "agent": format!("agent-{}", number % 7)}))
    });
    run.submit(more.collect()).await;
    let snapshot = time.still(&run).await;
    assert_eq!((snapshot.backoff, snapshot.alarms), (10_001, ALARMS));
    let [lane] = &snapshot.lanes[..] else {
        panic!("{:?}", snapshot.lanes);
    };
    let ready = time.now().after(60 * SECOND);
    assert_eq!(
        (lane.waiting, lane.blocked),
        (10_001, Some((Cause::Paused, Some(ready))))
    );
    let pauses = |events: Vec<Event>| {
        let paused = events
            .iter()
            .filter(|event| matches!(event, Event::Paused { .. }));
        paused.count()
    };
    assert_eq!(pauses(gate.events().await), 1);
    // Looked at once, for all of them.
    let views = run.handle.list().await.unwrap();
    let told: u32 = views.iter().map(|view| view.deferrals).sum();
    assert!(told <= 2, "{told} deferrals");

    time.pass(59 * SECOND).await;
    time.still(&run).await;
    let told_later: u32 = run
        .handle
        .list()
        .await
        .unwrap()
        .iter()
        .map(|view| view.deferrals)
        .sum();
    assert_eq!(
        (told_later, target.arrivals().len()),
        (told, 1),
        "nobody was woken"
    );
}

// 23
#[tokio::test(start_paused = true)]
async fn an_hour_that_was_asked_for_is_an_hour() {
    let time = Driven::new();
    let target = Target::start(refusing(
        1,
        Answer::status(429).header("retry-after", "3600"),
    ));
    let gate = time.setup().open();
    let mut run = gate.start();
    run.submit(of_agents(&target, 1, 1)).await;
    time.still(&run).await;
    for _ in 0..59 {
        time.pass(60 * SECOND).await;
        time.still(&run).await;
    }
    time.pass(60 * SECOND - TICK).await;
    time.still(&run).await;
    assert_eq!(target.arrivals().len(), 1);
    time.pass(TICK).await;
    until("the hour is over", || target.arrivals().len() == 2).await;
    let result = run.next().await;
    assert_eq!((result.outcome, result.attempts), (Outcome::Succeeded, 1));
}

// 23, the other way round: a shorter word does not shorten it
#[tokio::test(start_paused = true)]
async fn a_later_and_shorter_pause_takes_nothing_back() {
    let time = Driven::new();
    let target = Target::start(Script::new(|request, _| {
        let (wait, after) = match &*request.path {
            "/long" => ("100", 0),
            _ => ("1", 300),
        };
        Answer::status(429)
            .header("retry-after", wait)
            .after(Duration::from_millis(after))
    }));
    let gate = time.setup().open();
    let run = gate.start();
    let of = |path| task(&json!({"url": target.url(path)}));
    run.submit(vec![of("/short"), of("/long")]).await;
    time.still(&run).await;
    let pause = pause(&gate, &target).expect("a pause");
    assert_eq!(pause.until, time.now().after(100 * SECOND));
    assert_eq!(&*pause.reason, "429 Retry-After: 100");
    assert_eq!(target.arrivals().len(), 2);
}

// 24, over an orderly end
#[tokio::test(start_paused = true)]
async fn a_pause_outlives_its_process_and_is_listed_with_its_reason() {
    let time = Driven::new();
    let target = Target::start(refusing(
        3,
        Answer::status(429).header("retry-after", "3600"),
    ));
    let setup = time.setup();
    let gate = setup.open();
    let run = gate.start();
    run.submit(of_agents(&target, 1, 3)).await;
    time.still(&run).await;
    run.stop().await;
    let folder = gate.into_folder();

    time.pass(1800 * SECOND).await;
    let gate = setup.open_in(folder);
    let listed = pause(&gate, &target).expect("a pause");
    assert_eq!(&*listed.reason, "429 Retry-After: 3600");
    assert_eq!(listed.until, time.now().after(1800 * SECOND));
    let run = gate.start();
    time.still(&run).await;
    time.pass(1800 * SECOND - TICK).await;
    time.still(&run).await;
    assert_eq!(target.arrivals().len(), 3);
    time.pass(TICK).await;
    until("it is over", || target.arrivals().len() == 6).await;
}

// 25
#[tokio::test(start_paused = true)]
async fn a_caller_is_told_at_once_and_nothing_sleeps() {
    let time = Driven::new();
    let target = Target::start(refusing(
        1,
        Answer::status(429).header("retry-after", "3600"),
    ));
    let gate = time.setup().rule(&target.origin(), vec![counted()]).open();
    let Sent::Answered(reply) = gate.send("GET", &target.url("/")).await else {
        panic!("the first call goes out");
    };
    drop(reply.discard().await);
    // Time stands: whatever slept would sleep for ever.
    let url = target.url("/");
    let told = tokio::time::timeout(30 * SECOND, gate.send("GET", &url));
    let Ok(Sent::Deferred(deferral)) = told.await else {
        panic!("an answer at once");
    };
    assert_eq!(deferral.cause, Cause::Paused);
    assert_eq!(deferral.ready, Some(time.now().after(3600 * SECOND)));
    assert!(deferral.retry_after() >= Some(3600 * SECOND));
    let json = deferral.to_json(gate.wall_offset());
    assert_eq!(json["decision"], "deferred");
    assert_eq!(json["cause"], "paused");
    assert_eq!(json["sent_upstream"], false);
    assert_eq!(
        (target.arrivals().len(), gate.spent(&target.origin())),
        (1, 1)
    );
}
