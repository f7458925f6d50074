//! Bodies on disk: whole, by their hash, in bounded memory; nothing is left of one that is not.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tidegate::outcome::{End, Outcome};
use tokio::io::AsyncWriteExt;

use crate::run_one;
use crate::support::alone::{Place, alone, status};
use crate::support::gate::{Gate, Setup, counted, task, until};
use crate::support::handmade::{hear, raw};
use crate::support::loopback::{Answer, Script, Target};

/// Every file below a folder, by its path in it, with its length.
fn files(folder: &Path) -> Vec<(String, u64)> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<(String, u64)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push((name, path.metadata().unwrap().len()));
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

/// A gate that takes bodies of at most so many bytes from a target.
fn taking(target: &Target, max_body: u64) -> Gate {
    let setup = Setup::default().ruled(&target.origin(), vec![counted()], |conduct| {
        conduct.max_body = max_body;
        conduct.timeout = Duration::from_secs(2);
    });
    setup.open()
}

#[tokio::test]
async fn equal_bodies_are_one_file_named_by_its_hash() {
    let target = Target::start(Script::new(|request, _| {
        let text = if request.path.starts_with("/same") {
            "same"
        } else {
            "other"
        };
        Answer::status(200).body(text)
    }));
    let gate = taking(&target, 1000);
    let tasks = ["/same1", "/same2", "/other", "/same3"];
    let tasks = tasks.map(|path| task(&json!({"id": path, "url": target.url(path)})));
    let results = gate.run(tasks.into()).await;
    let place = |text: &[u8]| {
        let hash = blake3::hash(text).to_hex();
        let (front, rest) = hash.split_at(2);
        format!("bodies/{front}/{}/{hash}", rest.split_at(2).0)
    };
    let paths: Vec<_> = results
        .iter()
        .map(|result| result.body_path.clone().unwrap())
        .collect();
    let same = place(b"same");
    assert_eq!(
        paths,
        [place(b"other"), same.clone(), same.clone(), same.clone()]
    );
    assert_eq!(std::fs::read(gate.out().join(&same)).unwrap(), b"same");
    let mut expected = vec![(place(b"other"), 5), (same, 4)];
    expected.sort();
    assert_eq!(files(&gate.out()), expected);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_its_limit_and_not_kept() {
    // Says its length, and is not read at all.
    let declared = Target::start(Script::always(Answer::HugeBody(2 << 30)));
    // Does not, and is read until it is too much.
    let chunked = raw("http", |mut tcp, log, _| async move {
        hear(&mut tcp, &log).await?;
        tcp.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await?;
        loop {
            tcp.write_all(format!("1000\r\n{}\r\n", "z".repeat(0x1000)).as_bytes())
                .await?;
        }
    });
    for (target, method) in [(&declared, "GET"), (&declared, "POST"), (&chunked, "GET")] {
        let gate = taking(target, 100_000);
        let line = json!({"url": target.url("/"), "method": method, "max_attempts": 5});
        let result = run_one(&gate, &line).await;
        assert_eq!(
            (result.outcome, result.attempts),
            (Outcome::Answered, 1),
            "{method}"
        );
        let error = result.error.unwrap();
        assert!(error.contains("larger than max_body = 100000"), "{error}");
        assert_eq!((result.status, result.body_path), (Some(200), None));
        assert_eq!(files(&gate.out()), []);
        assert_eq!(gate.ends(&target.origin()).await, [End::Answered]);
        let again = || {
            target
                .arrivals()
                .iter()
                .filter(|seen| seen.method == method)
                .count()
        };
        assert_eq!(
            again(),
            1,
            "an answer that is too large is not asked for again"
        );
    }
}

#[tokio::test]
async fn a_body_of_just_the_limit_is_kept() {
    for (length, outcome, kept) in [
        (1000, Outcome::Succeeded, true),
        (1001, Outcome::Answered, false),
    ] {
        let target = Target::start(Script::always(Answer::HugeBody(length)));
        let gate = taking(&target, 1000);
        let result = run_one(&gate, &json!({"url": target.url("/")})).await;
        assert_eq!(
            (result.outcome, result.body_path.is_some()),
            (outcome, kept),
            "{length}"
        );
        assert_eq!(files(&gate.out()).len(), usize::from(kept));
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_body_that_did_not_arrive_whole() {
    for fault in [
        Answer::CutBody {
            declared: 100_000,
            sent: 50_000,
        },
        Answer::CutChunked,
        Answer::Drip {
            total: 100,
            every: Duration::from_secs(60),
            chunk: 50,
        },
    ] {
        let target = Target::start(Script::always(fault.clone()));
        let gate = taking(&target, 1 << 30);
        let result = run_one(&gate, &json!({"url": target.url("/"), "max_attempts": 1})).await;
        assert_eq!(
            (result.outcome, result.body_path),
            (Outcome::Failed, None),
            "{fault:?}"
        );
        assert_eq!(result.status, Some(200), "its head is known: {fault:?}");
        assert_eq!(files(&gate.out()), [], "{fault:?}");
        assert_eq!(
            gate.ends(&target.origin()).await,
            [End::Partial],
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn what_a_gate_left_unfinished_is_gone_after_the_next_start() {
    let target = Target::start(Script::always(Answer::status(200).body("whole")));
    let gate = taking(&target, 1000);
    let unfinished = gate.out().join("bodies/unfinished");
    std::fs::create_dir_all(&unfinished).unwrap();
    std::fs::write(unfinished.join("0"), "half of a bo").unwrap();
    run_one(&gate, &json!({"url": target.url("/")})).await;
    let [(path, length)] = files(&gate.out()).try_into().unwrap();
    assert!(path.contains(&*blake3::hash(b"whole").to_hex()), "{path}");
    assert_eq!(length, 5);
}

#[tokio::test]
async fn a_body_may_take_longer_than_its_target_may_be_silent_if_it_keeps_coming() {
    // Three seconds in all: at eight kilobytes a second, and at ten bytes.
    for (chunk, outcome) in [(4096, Outcome::Succeeded), (5, Outcome::Failed)] {
        let every = Duration::from_millis(500);
        let drip = Answer::Drip {
            total: 6 * chunk,
            every,
            chunk,
        };
        let target = Target::start(Script::always(drip));
        let gate = taking(&target, 1 << 20);
        let result = run_one(&gate, &json!({"url": target.url("/"), "max_attempts": 1})).await;
        assert_eq!(result.outcome, outcome, "{chunk}: {:?}", result.error);
    }
}

#[test]
fn a_hundred_megabytes_pass_through_a_few() {
    const NAME: &str = "bodies::a_hundred_megabytes_pass_through_a_few";
    const LENGTH: u64 = 100 << 20;
    if alone(NAME, &[]) == Place::Outside {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let target = Target::start(Script::new(|request, _| match &*request.path {
            "/warm" => Answer::HugeBody(1 << 20),
            "/huge" => Answer::HugeBody(2 << 30),
            _ => Answer::HugeBody(LENGTH),
        }));
        let gate = taking(&target, 1 << 30);
        run_one(&gate, &json!({"id": "warm", "url": target.url("/warm")})).await;
        let before = status("VmHWM");
        let result = run_one(&gate, &json!({"id": "large", "url": target.url("/")})).await;
        let huge = run_one(&gate, &json!({"id": "huge", "url": target.url("/huge")})).await;
        let grown = status("VmHWM") - before;
        println!("{grown} kB more");
        assert_eq!(
            (result.outcome, result.bytes),
            (Outcome::Succeeded, Some(LENGTH))
        );
        let body = gate.out().join(result.body_path.unwrap());
        assert_eq!(body.metadata().unwrap().len(), LENGTH);
        assert_eq!((huge.outcome, huge.bytes), (Outcome::Answered, Some(0)));
        assert!(grown < 30_000, "{grown} kB");
        until("the connection of the one not read is over", || {
            target.connections() >= 1
        })
        .await;
    });
}
