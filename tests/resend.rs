//! A fault, and what becomes of the call that met it: how often the target saw it, what was paid,
//! what is on record. Judged from the target's log.

#![cfg(test)]

mod support;

#[path = "resend/faults.rs"]
mod faults;
#[path = "resend/unsure.rs"]
mod unsure;
#[path = "resend/warm.rs"]
mod warm;

use std::collections::HashMap;

use serde_json::json;
use tidegate::audit::Call;
use tidegate::outcome::Outcome;
use tidegate::schedule::{NewTask, ResultLine};

use faults::Faulty;
use support::gate::{Gate, Setup, counted, task};
use support::loopback::Target;
use support::tls::TestCa;

const KEY: &str = "one-of-a-kind";

/// One row, for one method.
struct Case {
    place: String,
    faulty: Faulty,
    method: String,
    keyed: bool,
    tries: u32,
    expected: Seen,
}

/// What there is to see of a task once it is over.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    outcome: String,
    arrivals: usize,
    attempts: u32,
    tokens: u64,
    ends: String,
}

fn cases(ca: &TestCa) -> Vec<Case> {
    let rows = include_str!("cases/resend.tsv").lines().enumerate();
    let rows = rows.filter(|(_, row)| !row.starts_with('#'));
    let of_row = |(number, row): (usize, &str)| {
        let cells: Vec<_> = row.split('\t').collect();
        let [
            fault,
            methods,
            tries,
            outcome,
            arrivals,
            attempts,
            tokens,
            ends,
            _why,
        ] = cells[..]
        else {
            panic!("line {}: {} cells", number + 1, cells.len());
        };
        let case = |method: &str| Case {
            place: format!("line {}: {fault}, {method}", number + 1),
            faulty: Faulty::named(fault, ca).unwrap_or_else(|| panic!("no fault is {fault}")),
            method: method.trim_end_matches("+key").to_owned(),
            keyed: method.ends_with("+key"),
            tries: tries.parse().unwrap(),
            expected: Seen {
                outcome: outcome.to_owned(),
                arrivals: arrivals.parse().unwrap(),
                attempts: attempts.parse().unwrap(),
                tokens: tokens.parse().unwrap(),
                ends: ends.to_owned(),
            },
        };
        methods.split(' ').map(case).collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

impl Case {
    fn task(&self, id: usize) -> NewTask {
        let mut line = json!({
            "id": format!("{id:03}"),
            "url": self.faulty.origins[0],
            "method": self.method,
            "max_attempts": self.tries,
        });
        if !matches!(&*self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE") {
            line["body"] = json!("b".repeat(20_000));
        }
        if self.keyed {
            line["idempotency_key"] = json!(KEY);
        }
        task(&line)
    }

    fn seen(&self, gate: &Gate, result: &ResultLine, calls: &HashMap<&str, Vec<&Call>>) -> Seen {
        let origins = || self.faulty.origins.iter();
        let targets = || self.faulty.targets.iter();
        let mut calls: Vec<_> = origins()
            .filter_map(|origin| calls.get(&**origin))
            .flatten()
            .collect();
        calls.sort_by_key(|call| call.settlement.ended);
        let ends: Vec<_> = calls
            .iter()
            .map(|call| call.settlement.end.as_str())
            .collect();
        Seen {
            outcome: result.outcome.to_string(),
            arrivals: targets().map(|target| target.arrivals().len()).sum(),
            attempts: result.attempts,
            tokens: origins().map(|origin| gate.spent(origin)).sum(),
            ends: ends.join(" "),
        }
    }

    /// What holds whatever the row says.
    fn check(&self, seen: &Seen, result: &ResultLine) {
        let place = &self.place;
        let targets = || self.faulty.targets.iter();
        let connections: usize = targets().map(Target::connections).sum();
        assert!(
            connections as u64 <= seen.tokens,
            "{place}: {connections} connections, of which each is dialled for a call"
        );
        let answered = matches!(result.outcome, Outcome::Succeeded | Outcome::Answered);
        assert_eq!(
            result.error.is_none(),
            answered,
            "{place}: {:?}",
            result.error
        );
        for arrival in targets().flat_map(Target::arrivals) {
            let key = self.keyed.then_some(KEY);
            assert_eq!(arrival.header("idempotency-key"), key, "{place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_with_every_method() {
    let ca = TestCa::new();
    let cases = cases(&ca);
    assert!(cases.len() > 110, "{} cases", cases.len());
    let mut setup = Setup::default().trusting(&ca);
    for case in &cases {
        for origin in &case.faulty.origins {
            setup = setup.ruled(origin, vec![counted()], |conduct| {
                conduct.timeout = case.faulty.timeout;
            });
        }
    }
    let gate = setup.open();
    let tasks = cases.iter().enumerate().map(|(id, case)| case.task(id));
    let results = gate.run(tasks.collect()).await;
    let calls = gate.calls().await;
    let mut by_origin: HashMap<&str, Vec<&Call>> = HashMap::new();
    for call in &calls {
        let origin = call.intent.target.origin.as_str();
        by_origin.entry(origin).or_default().push(call);
    }

    let mut wrong = Vec::new();
    for (case, result) in cases.iter().zip(&results) {
        let seen = case.seen(&gate, result, &by_origin);
        case.check(&seen, result);
        if seen != case.expected {
            wrong.push(format!("{}: {seen:?} ({:?})", case.place, result.error));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
