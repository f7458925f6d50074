//! Filling the record.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidegate::admission::{Admission, Ask, Ending, Lane, Policy, Verdict};
use tidegate::audit::{Call, Intent, Log, Settlement, TaskRef};
use tidegate::budget::{Line, Revision, Rulebook, Scope};
use tidegate::clock::{Clock as _, ManualClock};
use tidegate::outcome::End;
use tidegate::step::Step;
use tidegate::store::Store;
use tidegate::target::TargetKey;

use crate::{Shape, memory};

/// One call in so many goes to the busiest target.
const BUSIEST: u64 = 200;
const AGENTS: u64 = 64;
/// Calls of one trajectory.
const TRAJECTORY: u64 = 2_000;

pub(crate) fn url(target: u64) -> String {
    format!("https://host{target}.example{target}.org")
}

/// Mixes the bits of a number: the same for every run.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// The target of a call: the first is the busiest, the rest are alike.
fn target_of(n: u64, shape: &Shape) -> u64 {
    if n.is_multiple_of(BUSIEST) {
        0
    } else {
        mixed(n) % shape.targets
    }
}

pub(crate) fn agent(n: u64) -> u64 {
    n % AGENTS
}

pub(crate) fn trajectory(n: u64) -> String {
    format!("run-{}-{}", n / (TRAJECTORY * AGENTS), agent(n))
}

fn step_of(n: u64) -> Step {
    let agent = agent(n);
    Step::new(
        &format!("scout-{agent}"),
        &trajectory(n),
        &(n / AGENTS % TRAJECTORY / 10).to_string(),
        &format!("find what was measured at site {agent}"),
    )
}

fn path_of(n: u64) -> String {
    format!("/v2/collections/items/x{}", mixed(n) % 90_000)
}

fn policy() -> Policy {
    Policy {
        user_agent: "tidegate/0.1 (+ops@example.org)".into(),
        ..Policy::default()
    }
}

/// Each of many callers asks, waits for its intent, departs, and settles.
pub(crate) fn as_a_gate(store: &Arc<Store>, clock: &Arc<ManualClock>, shape: &Shape) {
    let admission = Admission::open(store.clone(), clock.clone(), Rulebook::default(), policy())
        .expect("a gate");
    let lane = |target| {
        admission
            .route(&url(target), "GET", &Step::default())
            .expect("a route")
            .lane
    };
    let lanes: Arc<Vec<Arc<Lane>>> = Arc::new((0..shape.targets).map(lane).collect());
    memory("with a lane for each target");
    let (next, deferred) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let began = Instant::now();
    runtime.block_on(async {
        let callers = (0..shape.callers).map(|_| {
            let (admission, clock, shape) = (admission.clone(), clock.clone(), shape.clone());
            let (lanes, next, deferred) = (lanes.clone(), next.clone(), deferred.clone());
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= shape.calls {
                        return;
                    }
                    progress(n, &shape, began);
                    clock.advance(shape.pace());
                    if !one(n, &admission, &lanes, &shape).await {
                        deferred.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("a caller that ends");
        }
        admission.close().wait().await.expect("a close");
    });
    let (took, deferred) = (
        began.elapsed().as_secs_f64(),
        deferred.load(Ordering::Relaxed),
    );
    let calls = (shape.calls - deferred) as f64;
    println!(
        "{:.0} calls/s durable, intent and settlement, {} callers; {took:.0} s, {deferred} deferred",
        calls / took,
        shape.callers
    );
}

async fn one(n: u64, admission: &Arc<Admission>, lanes: &[Arc<Lane>], shape: &Shape) -> bool {
    let (step, path) = (step_of(n), path_of(n));
    let ask = Ask {
        task: Some(TaskRef { job: 1, number: n }),
        cost: NonZeroU32::MIN,
        ..Ask::new("GET", &path, &step)
    };
    let lane = &lanes[target_of(n, shape) as usize];
    let verdict = admission
        .admit(lane, &ask, Line::Watch)
        .expect("a store that writes");
    let Verdict::Granted(mut permit) = verdict else {
        return false;
    };
    permit.on_record().await.expect("an intent on record");
    if let Some(departure) = permit.dial() {
        departure.mark();
    }
    let closing = permit.settle(Ending {
        status: Some(200),
        bytes: 900 + mixed(n) % 150_000,
        peer: Some(std::net::Ipv4Addr::from_bits(mixed(n) as u32).into()),
        ..Ending::of(End::Answered)
    });
    closing
        .commit()
        .wait()
        .await
        .expect("a settlement on record");
    true
}

fn progress(n: u64, shape: &Shape, began: Instant) {
    let tenth = (shape.calls / 10).max(1);
    if n.is_multiple_of(tenth) {
        memory(&format!(
            "after {n} calls, {:.0} s",
            began.elapsed().as_secs_f64()
        ));
    }
}

/// What has ended, in order, without its intents.
pub(crate) fn bulk(store: &Arc<Store>, clock: &Arc<ManualClock>, shape: &Shape) {
    let (log, _) = Log::open(store.clone(), clock.clone()).expect("a log");
    let targets =
        (0..shape.targets).map(|target| url(target).parse::<TargetKey>().expect("a target"));
    let targets: Vec<TargetKey> = targets.collect();
    let began = Instant::now();
    let mut calls = Vec::new();
    let mut before = None;
    for n in 0..shape.calls {
        progress(n, shape, began);
        clock.advance(shape.pace());
        calls.push(ended(n, &targets[target_of(n, shape) as usize], clock));
        if calls.len() >= 4_800 {
            // One ahead, so that memory stays bounded.
            let written = log.append_ended(std::mem::take(&mut calls));
            if let Some(before) = before.replace(written) {
                tidegate::store::Durable::wait_blocking(before).expect("a write");
            }
        }
    }
    log.append_ended(calls).wait_blocking().expect("a write");
    log.close().wait_blocking().expect("a close");
    let took = began.elapsed().as_secs_f64();
    println!(
        "{:.0} calls/s in bulk, {took:.0} s",
        shape.calls as f64 / took
    );
}

fn ended(n: u64, target: &TargetKey, clock: &ManualClock) -> Call {
    let decided = clock.now();
    let intent = Intent {
        gate: 1,
        target: target.clone(),
        method: "GET".into(),
        path: path_of(n).into(),
        step: step_of(n),
        revision: Revision(1),
        cost: 1,
        attempt: 1,
        hop: 0,
        task: Some(TaskRef { job: 1, number: n }),
        decided,
        scopes: vec![
            Scope::Group(target.origin.group().into()),
            Scope::Host(target.origin.clone()),
        ],
        user_agent: policy().user_agent,
    };
    let departed = decided.after(Duration::from_micros(900 + mixed(n) % 2_000));
    let settlement = Settlement {
        departed: Some(departed),
        ended: departed.after(Duration::from_micros(40_000 + mixed(n + 7) % 400_000)),
        end: End::Answered,
        status: Some(200),
        bytes: 900 + mixed(n) % 150_000,
        peer: Some(std::net::Ipv4Addr::from_bits(mixed(n) as u32).into()),
        error: None,
    };
    Call { intent, settlement }
}
