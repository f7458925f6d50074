//! Where a call may not go: refused before a token is taken where that can be known, and given back
//! where it cannot; on record either way, and nothing arrives. Judged from the other side.

#![cfg(test)]

mod support;

#[path = "addresses/hops.rs"]
mod hops;
#[path = "addresses/literals.rs"]
mod literals;
#[path = "addresses/resolved.rs"]
mod resolved;

use std::sync::Arc;

use serde_json::json;
use tidegate::audit::{Event, Refused};
use tidegate::budget::{Never, Refusal};
use tidegate::egress::Sent;
use tidegate::egress::guard::Guard;
use tidegate::outcome::Outcome;

use support::gate::{Gate, Setup, task};

const URLS: &str = include_str!("cases/addresses.tsv");
const NAMES: &str = include_str!("cases/answers.tsv");

/// What is called, the open ranges, and what comes of it.
fn rows(table: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let rows = table.lines().filter(|row| !row.starts_with('#'));
    rows.map(|row| {
        let cells: Vec<_> = row.split('\t').collect();
        let [what, allowed, expected, _why] = cells[..] else {
            panic!("{row}: {} cells", cells.len());
        };
        (what, allowed, expected)
    })
}

/// A gate that opens these ranges, separated by commas, and no others.
fn opening(ranges: &str) -> Setup {
    let ranges = ranges.split(',').filter(|range| !range.is_empty());
    let mut setup = Setup::default();
    let open = ranges.map(|range| range.parse().expect("a range"));
    setup.wire.guard = Arc::new(Guard::new(open.collect()));
    setup
}

/// Calls directly and by a task: both are refused for this reason, nothing is spent, and both are
/// on record.
async fn is_refused(gate: &Gate, url: &str, why: &str) {
    let before = gate.left(url);
    let Sent::Refused(Refusal { reason, detail, .. }) = gate.send("GET", url).await else {
        panic!("{url} was not refused");
    };
    assert_eq!(reason, Never::AddressBlocked, "{url}");
    assert_eq!(
        detail,
        format!("{why} are not reachable from here"),
        "{url}"
    );

    let results = gate
        .run(vec![task(
            &json!({"id": url, "url": url, "agent": "scout"}),
        )])
        .await;
    let [result] = &results[..] else {
        panic!("{url}: {results:?}");
    };
    assert_eq!(
        (result.outcome, result.attempts),
        (Outcome::Refused, 0),
        "{url}"
    );
    let error = result.error.as_deref().unwrap_or_default();
    assert!(
        error.contains("address_blocked") && error.contains(why),
        "{url}: {error}"
    );

    assert_eq!(gate.left(url), before, "{url}");
    assert_eq!(refused(gate, url).await, ["caller", "scout"], "{url}");
}

/// Whose refusals of a URL's target are on record.
async fn refused(gate: &Gate, url: &str) -> Vec<String> {
    let origin = tidegate::target::locate(url).expect("a target").origin;
    let mut agents = Vec::new();
    for event in gate.events().await {
        match event {
            Event::Refused(Refused {
                target,
                reason,
                step,
                ..
            }) if *target == *origin.as_str() => {
                assert_eq!(&*reason, "address_blocked");
                agents.push(step.agent.to_string());
            }
            Event::Call(call) if call.intent.target.origin == origin => {
                assert!(!call.settlement.end.may_have_arrived(), "{url}: {call:?}");
                assert_eq!(call.settlement.departed, None, "{url}");
            }
            _ => {}
        }
    }
    agents
}
