//! A decision beside governor's own keyed check, in one run: compare ratios,
//! not times. All decisions here are *not now*, so none is cheaper for having
//! been let through, and nothing is written but the count of deferrals.
//!
//! `cargo bench --bench decision`
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::mem_forget,
    clippy::panic,
    reason = "a benchmark that cannot be set up has nothing to report"
)]

use std::num::NonZeroU32;
use std::sync::Arc;

use divan::Bencher;
use governor::{Quota, RateLimiter};
use tidegate::admission::{Admission, Ask, Lane, Policy, Verdict};
use tidegate::budget::{Line, Rulebook};
use tidegate::step::Step;
use tidegate::store::{IfMissing, Store};

const TARGETS: [usize; 2] = [100, 100_000];

fn main() {
    divan::main();
}

fn urls(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| format!("https://host{n}.example{n}.org/repos/o{n}/issues?page=2"))
        .collect()
}

/// A gate whose every target has spent its one token.
fn exhausted(urls: &[String]) -> (tempfile::TempDir, Arc<Admission>, Vec<Arc<Lane>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Store::open(folder.path(), IfMissing::Create, 0).expect("a store"));
    let admission = Admission::open(
        store.clone(),
        store.clock(),
        Rulebook::default(),
        Policy::default(),
    )
    .expect("a gate");
    let step = Step::of("bench");
    let lanes: Vec<_> = urls
        .iter()
        .map(|url| admission.route(url, "GET", &step).expect("a route").lane)
        .collect();
    for lane in &lanes {
        let Ok(Verdict::Granted(permit)) =
            admission.admit(lane, &Ask::new("GET", "/", &step), Line::Watch)
        else {
            panic!("the first call of a target is granted");
        };
        // Never settled: its token stays a debt, and the bucket empty.
        std::mem::forget(permit);
    }
    (folder, admission, lanes)
}

/// Numbers that visit all of `0..count` in no order a cache would like.
fn strides(count: usize) -> impl FnMut() -> usize {
    let mut at = 0;
    move || {
        at = (at + 61_803) % count;
        at
    }
}

#[divan::bench(args = TARGETS)]
fn tidegate_by_key(bencher: Bencher<'_, '_>, count: usize) {
    let (_folder, admission, lanes) = exhausted(&urls(count));
    let keys: Vec<_> = lanes.iter().map(|lane| lane.key().clone()).collect();
    let mut next = strides(count);
    bencher.bench_local(|| {
        let lane = admission.lane(&keys[next()]).expect("a lane");
        admission.wait(&lane, NonZeroU32::MIN)
    });
}

#[divan::bench(args = TARGETS)]
fn governor_by_key(bencher: Bencher<'_, '_>, count: usize) {
    let quota = Quota::per_hour(NonZeroU32::MIN);
    let limiter = RateLimiter::hashmap(quota);
    let keys = urls(count);
    for key in &keys {
        limiter.check_key(key).expect("the first is let through");
    }
    let mut next = strides(count);
    bencher.bench_local(|| limiter.check_key(&keys[next()]).is_err());
}

#[divan::bench(args = TARGETS)]
fn tidegate_deferral_from_url(bencher: Bencher<'_, '_>, count: usize) {
    let urls = urls(count);
    let (_folder, admission, _lanes) = exhausted(&urls);
    let step = Step::of("bench");
    let mut next = strides(count);
    bencher.bench_local(|| {
        let route = admission
            .route(&urls[next()], "GET", &step)
            .expect("a route");
        let ask = Ask::new("GET", route.located.url.path(), &step);
        admission
            .admit(&route.lane, &ask, Line::Watch)
            .expect("a decision")
    });
}
