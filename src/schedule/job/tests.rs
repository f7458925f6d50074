use super::*;
use crate::outcome::Outcome;
use crate::schedule::task::{Answer, Repeat, Task, TaskCall};
use crate::step::Step;
use crate::store::IfMissing;
use std::num::NonZeroU32;

fn new_task(id: &str) -> NewTask {
    let call = TaskCall {
        url: "http://a.example/".into(),
        method: "GET".into(),
        payload: [].into(),
    };
    let task = Task {
        id: id.into(),
        call,
        step: Step::default(),
        priority: 0,
        not_before: None,
        deadline: None,
        max_attempts: NonZeroU32::MIN,
        cost: NonZeroU32::MIN,
        repeat: Repeat::Safe,
    };
    NewTask {
        task,
        content: [0; 16],
    }
}

fn open(folder: &Path) -> (Arc<Store>, Job) {
    let store = Arc::new(Store::open(folder, IfMissing::Create, 0).unwrap());
    let job = Job::of(store.clone(), Path::new("/out")).unwrap();
    (store, job)
}

/// What the next process finds: tasks accepted, tasks that wait, results by the count and by the list.
fn found(folder: &Path) -> (u64, usize, u64, usize) {
    let (store, job) = open(folder);
    let listed = results(&store, job.number()).count();
    let record = job.record();
    (
        record.accepted(),
        job.pending().count(),
        record.results,
        listed,
    )
}

#[test]
fn a_kill_between_the_end_of_a_task_and_the_arrival_of_others_loses_none_of_them() {
    for last_is_durable in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, job) = open(folder.path());
        let first = job.accept(vec![new_task("first")], Moment::ZERO).unwrap();
        let (task, record) = first.new[0].clone();
        first.durable.wait_blocking().unwrap();

        // A call ends; before its end is handed to the writer, others are accepted.
        let mut end = Changes::default();
        let answer = Answer::default();
        let outcome = Outcome::Succeeded;
        let line = ResultLine::new(&record, None, outcome, &answer, Moment::ZERO, 0);
        job.complete(&mut end, task, &line, None);
        let more = vec![new_task("second"), new_task("third")];
        let more = job.accept(more, Moment::ZERO).unwrap();
        more.durable.wait_blocking().unwrap();
        if last_is_durable {
            store.write(end).wait_blocking().unwrap();
        }
        drop((job, store));

        let expected = if last_is_durable {
            (3, 2, 1, 1)
        } else {
            (3, 3, 0, 0)
        };
        assert_eq!(found(folder.path()), expected);
    }
}
