//! 22, at a tenth: a long queue does not delay the first call after a restart; and what a kill
//! interrupted is taken up once, beside what was waiting.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tidegate::outcome::{End, Outcome};
use tidegate::schedule::{Cancelled, Job, NewTask};
use tokio::runtime::Runtime;

use crate::support::alone::{Place, alone, killed, status};
use crate::support::gate::{Setup, counted, stopwatch, task, until};
use crate::support::loopback::{Answer, Script, Target};

const TASKS: u64 = 200_000;
const TARGETS: u64 = 1_000;
const PIECE: u64 = 5_000;
/// One in so many is of a target that is there; the others wait.
const EVERY: u64 = 20_000;
const CALLED: usize = 10;

fn tasks(here: &Target, from: u64) -> Vec<NewTask> {
    let plain = task(&json!({"url": "http://0.test/", "agent": "scout"}));
    let one = |number: u64| {
        let mut new = plain.clone();
        let url = if number.is_multiple_of(EVERY) {
            here.url(&format!("/{number}"))
        } else {
            format!("http://{}.test/{number}", number % TARGETS)
        };
        new.task.id = format!("{number:06}").into();
        new.task.call.url = url.into();
        new
    };
    (from..from + PIECE).map(one).collect()
}

#[test]
fn two_hundred_thousand_queued_tasks_do_not_delay_the_first_call() {
    let name = "restart::two_hundred_thousand_queued_tasks_do_not_delay_the_first_call";
    if alone(name, &[]) == Place::Outside {
        return;
    }
    Runtime::new().unwrap().block_on(async {
        let target = Target::start(Script::always(Answer::status(200)));
        let setup = Setup::default().rule(&target.origin(), vec![counted()]);
        let gate = setup.open();
        let store = gate.admission.store().clone();
        let job = Job::of(store.clone(), &gate.out()).unwrap();
        let began = stopwatch();
        let mut written = None;
        for from in (0..TASKS).step_by(PIECE.try_into().unwrap()) {
            let accepted = job.accept(tasks(&target, from), gate.admission.clock().now());
            written = Some(accepted.unwrap().durable);
        }
        written.unwrap().wait().await.unwrap();
        println!("accepted after {:?}", began());
        drop((job, store));
        let folder = gate.into_folder();

        let before = status("VmRSS");
        let began = stopwatch();
        let gate = setup.open_in(folder);
        let run = gate.start();
        until("the first call", || !target.arrivals().is_empty()).await;
        let took = began();
        let queued = run.handle.look(0).await.unwrap().queued;
        println!("first call after {took:?}, {queued} queued");
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert!(queued > TASKS - 20_000, "{queued}: all of them are counted");
        until("the last call", || target.arrivals().len() == CALLED).await;
        let grown = status("VmRSS").saturating_sub(before);
        println!("last call after {:?}, {grown} kB more", began());
        assert!(grown < 300_000, "{grown} kB");
        run.stop().await;
    });
}

/// More than are read at a time.
const WAITING: usize = 700;

fn interrupted(origin: &str, folder: &Path) {
    Runtime::new().unwrap().block_on(async {
        let mut setup = Setup::default();
        setup.settings.concurrency = 2;
        let gate = setup.open_at(folder);
        let run = gate.start();
        let slow = ["GET", "POST"].map(|method| {
            let url = format!("{origin}/slow/{method}");
            task(&json!({"id": method, "url": url, "method": method, "priority": 1}))
        });
        let more = (0..WAITING).map(|number| {
            let url = format!("{origin}/{number}");
            task(&json!({"id": format!("waiting-{number}"), "url": url, "method": "POST"}))
        });
        run.submit(slow.into_iter().chain(more).collect()).await;
        // It kills itself from outside the loop, at an instant that nobody has prepared for.
        until("both are under way", || folder.join("go").exists()).await;
        std::process::abort();
    });
}

#[test]
fn what_a_kill_interrupted_is_taken_up_once_beside_what_was_waiting() {
    let name = "restart::what_a_kill_interrupted_is_taken_up_once_beside_what_was_waiting";
    if let (Ok(origin), Ok(folder)) = (std::env::var("ORIGIN"), std::env::var("FOLDER")) {
        return interrupted(&origin, folder.as_ref());
    }
    let target = Target::start(Script::new(|request, earlier| {
        if request.path.starts_with("/slow") && earlier < 2 {
            Answer::Silence
        } else {
            Answer::status(200).into()
        }
    }));
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let origin = target.origin();
            let variables = [
                ("ORIGIN", &*origin),
                ("FOLDER", folder.path().to_str().unwrap()),
            ];
            killed(name, &variables);
        });
        let waited = stopwatch();
        while target.arrivals().len() < 2 && waited() < crate::support::gate::PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(folder.path().join("go"), "").unwrap();
    });
    Runtime::new().unwrap().block_on(async {
        let gate = Setup::default().open_at(folder.path());
        let results = gate.start().finish().await;
        let arrived = |path: &str| {
            let arrivals = target.arrivals().into_iter();
            arrivals.filter(|seen| seen.path == path).count()
        };
        assert_eq!((arrived("/slow/GET"), arrived("/slow/POST")), (2, 1));
        assert_eq!(results.len(), WAITING + 2);
        let (get, post) = (&results[0], &results[1]);
        assert_eq!(
            (&*get.id, get.outcome, get.attempts),
            ("GET", Outcome::Succeeded, 2)
        );
        assert_eq!(
            (&*post.id, post.outcome, post.attempts),
            ("POST", Outcome::Ambiguous, 1)
        );
        assert!(
            results[2..]
                .iter()
                .all(|result| result.outcome == Outcome::Succeeded)
        );
        assert_eq!(target.arrivals().len(), WAITING + 3, "everything else once");
        let ends = gate.ends(&target.origin()).await;
        let interrupted = ends.iter().filter(|end| **end == End::Interrupted).count();
        assert_eq!((interrupted, ends.len()), (2, WAITING + 3));
        assert_eq!(gate.spent(&target.origin()), ends.len() as u64);
    });
}

#[tokio::test]
async fn a_task_that_is_not_read_yet_can_be_called_off() {
    let target = Target::start(Script::always(Answer::status(200)));
    let gate = Setup::default().open();
    let job = Job::of(gate.admission.store().clone(), &gate.out()).unwrap();
    let tasks = (0..WAITING).map(|number| task(&json!({"url": target.url(&format!("/{number}"))})));
    let accepted = job.accept(tasks.collect(), gate.admission.clock().now());
    accepted.unwrap().durable.wait().await.unwrap();
    drop(job);
    let run = gate.start();
    // Nothing has been awaited: nothing has been read.
    let last = run.task(WAITING as u64 - 1);
    assert_eq!(run.handle.cancel(last).await, Ok(Cancelled::Done));
    assert_eq!(run.handle.cancel(last).await, Ok(Cancelled::Unknown));
    assert_eq!(
        run.handle.cancel(run.task(9_999)).await,
        Ok(Cancelled::Unknown)
    );
    let results = run.finish().await;
    let cancelled = |result: &&tidegate::schedule::ResultLine| result.outcome == Outcome::Cancelled;
    assert_eq!(results.iter().filter(cancelled).count(), 1);
    assert_eq!(
        (results.len(), target.arrivals().len()),
        (WAITING, WAITING - 1)
    );
}
