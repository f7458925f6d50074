//! A target that cannot be reached rests as a whole. One that was never there takes its tasks with
//! it, so that ten thousand of them do not run into their time-outs one after the other; one that
//! has answered before may be back.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tidegate::audit::Event;
use tidegate::budget::Because;
use tidegate::outcome::Outcome;
use tidegate::schedule::NewTask;
use tokio::net::TcpSocket;

use crate::support::driven::Driven;
use crate::support::gate::{Gate, task, until};
use crate::support::loopback::{Answer, Script, Target};

/// Holds a port on which nobody listens.
fn nobody(at: SocketAddr) -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(at).unwrap();
    let at = socket.local_addr().unwrap();
    (socket, at)
}

fn tasks(at: SocketAddr, count: usize, more: &Value) -> Vec<NewTask> {
    let one = |number: usize| {
        let mut line = more.clone();
        line["url"] = json!(format!("http://{at}/{number}"));
        line["id"] = json!(format!("{number:04}"));
        task(&line)
    };
    (0..count).map(one).collect()
}

/// Passes from pause to pause until nothing is left to do, or `most` pauses are over.
async fn pass_pauses(time: &Driven, run: &crate::support::gate::Run, most: usize) {
    for _ in 0..most {
        let snapshot = time.still(run).await;
        let Some(wake) = snapshot.wake else { return };
        time.pass(wake.since(time.now())).await;
    }
}

async fn unreachable_pauses(gate: &Gate) -> usize {
    let events = gate.events().await;
    let pauses = events.iter().filter(|event| {
        matches!(event, Event::Paused { pause, .. } if pause.because == Because::Unreachable)
    });
    pauses.count()
}

#[tokio::test(start_paused = true)]
async fn a_target_that_was_never_there_fails_its_tasks_together() {
    let time = Driven::new();
    let (_held, at) = nobody("127.0.0.1:0".parse().unwrap());
    let mut setup = time.setup();
    setup.settings.concurrency = 4;
    let gate = setup.open();
    let run = gate.start();
    run.submit(tasks(at, 1000, &json!({"max_attempts": 3})))
        .await;
    pass_pauses(&time, &run, 20).await;
    let results = run.finish().await;
    assert_eq!(results.len(), 1000);
    assert!(
        results
            .iter()
            .all(|result| result.outcome == Outcome::Failed)
    );
    let told = |result: &&tidegate::schedule::ResultLine| {
        result.error.as_deref().unwrap().contains("never reached")
    };
    assert!(results.iter().filter(told).count() >= 990);
    let calls = gate.calls().await.len();
    assert!(calls <= 12, "{calls} dials for 1000 tasks");
    assert!(unreachable_pauses(&gate).await >= 2);
}

#[tokio::test(start_paused = true)]
async fn the_fewest_attempts_of_one_task_do_not_condemn_the_others() {
    let time = Driven::new();
    let (held, at) = nobody("127.0.0.1:0".parse().unwrap());
    let mut setup = time.setup();
    setup.settings.concurrency = 1;
    let gate = setup.open();
    let mut run = gate.start();
    let mut tasks = tasks(at, 20, &json!({"max_attempts": 5}));
    tasks[0].task.max_attempts = 1.try_into().unwrap();
    run.submit(tasks).await;
    let hasty = run.next().await;
    assert_eq!((&*hasty.id, hasty.outcome), ("0000", Outcome::Failed));
    let waiting = time.still(&run).await;
    assert_eq!((waiting.backoff, run.so_far().len()), (19, 0));

    // It was only late.
    drop(held);
    let target = serving(at);
    pass_pauses(&time, &run, 5).await;
    let results = run.finish().await;
    assert!(
        results
            .iter()
            .all(|result| result.outcome == Outcome::Succeeded)
    );
    assert_eq!((results.len(), target.arrivals().len()), (19, 19));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_has_answered_before_is_tried_for_each_of_its_tasks() {
    let time = Driven::new();
    let target = Target::start(Script::always(Answer::status(200)));
    let at = target.addr();
    let mut setup = time.setup();
    setup.settings.concurrency = 1;
    let gate = setup.open();
    let mut run = gate.start();
    run.submit(vec![task(&json!({"id": "first", "url": target.url("/")}))])
        .await;
    assert_eq!(run.next().await.outcome, Outcome::Succeeded);
    drop(target);
    let (held, _) = nobody(at);
    run.submit(tasks(at, 6, &json!({"max_attempts": 2}))).await;
    for _ in 0..3 {
        let wake = time.still(&run).await.wake.expect("a pause");
        time.pass(wake.since(time.now())).await;
    }
    let waiting = time.still(&run).await;
    let failed = usize::try_from(6 - waiting.queued - waiting.backoff).unwrap();
    assert!((1..=2).contains(&failed), "{failed} have failed");
    for _ in 0..failed {
        let result = run.next().await;
        assert_eq!((result.outcome, result.attempts), (Outcome::Failed, 2));
    }

    drop(held);
    let target = serving(at);
    pass_pauses(&time, &run, 5).await;
    until("the rest is served", || {
        target.arrivals().len() == 6 - failed
    })
    .await;
    let rest = run.finish().await;
    assert!(
        rest.iter()
            .all(|result| result.outcome == Outcome::Succeeded)
    );
}

/// A target at an address of the test's choice.
fn serving(at: SocketAddr) -> Target {
    Target::at(at, Script::always(Answer::status(200)))
}
