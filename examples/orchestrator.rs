//! An orchestrator that asks what is left before it acts, and reorders its
//! plan: while one host is exhausted it takes the steps that go elsewhere, so
//! that no call is held back and no time is lost.
//!
//! `cargo run --example orchestrator`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod support;

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::Arc;

use support::Server;
use tidegate::admission::{Admission, Lane, Policy, Wait};
use tidegate::budget::{Limit, Rulebook, TargetRule, rfc3339};
use tidegate::clock::{Moment, wall_offset};
use tidegate::egress::guard::Guard;
use tidegate::egress::{Egress, Request, Sent, Wire};
use tidegate::step::Step;
use tidegate::store::{IfMissing, Store};

/// The plan as it was thought up: first everything of the archive.
const PLAN: [(&str, &str); 8] = [
    ("archive", "/1996"),
    ("archive", "/1997"),
    ("archive", "/1998"),
    ("archive", "/1999"),
    ("mirror", "/a"),
    ("mirror", "/b"),
    ("mirror", "/c"),
    ("mirror", "/d"),
];

/// A step that is still to be taken.
struct Planned {
    host: &'static str,
    request: Request,
    step: Step,
    lane: Arc<Lane>,
}

/// What to do now.
enum Choice {
    /// The step at this place of the plan.
    Take(usize),
    /// Nothing before then.
    Rest(Moment),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (archive, mirror) = (Server::start()?, Server::start()?);
    let folder = tempfile::tempdir()?;
    let store = Arc::new(Store::open(folder.path(), IfMissing::Create, 0)?);
    let rules = vec![rule(&archive, "2/s", 2)?, rule(&mirror, "20/s", 3)?];
    let rules = Rulebook::of(rules)?;
    let admission = Admission::open(store.clone(), store.clock(), rules, Policy::default())?;
    let wire = Wire {
        guard: Arc::new(Guard::new(vec!["127.0.0.1/32".parse()?])),
        ..Wire::default()
    };
    let egress = Egress::new(admission.clone(), &wire)?;

    let mut plan = Vec::new();
    for (number, (host, path)) in (1..).zip(PLAN) {
        let server = if host == "archive" { &archive } else { &mirror };
        let request = Request::get(&format!("{}{path}", server.origin()));
        let step = Step::new("planner", "run-1", &format!("{number}"), "collect sources");
        let lane = egress.route(&request, &step)?.lane;
        plan.push(Planned {
            host,
            request,
            step,
            lane,
        });
    }
    let mut order = Vec::new();
    while !plan.is_empty() {
        match choose(&admission, &plan)? {
            Choice::Take(place) => {
                let planned = plan.remove(place);
                let Sent::Answered(reply) = egress.send(&planned.request, &planned.step).await?
                else {
                    return Err("a step whose host had room was not answered".into());
                };
                reply.text(1 << 16).await?;
                order.push(planned.host);
            }
            Choice::Rest(until) => tokio::time::sleep(until.since(admission.clock().now())).await,
        }
    }
    admission.close().wait().await?;

    println!("in this order: {}", order.join(", "));
    let last_of_archive = order.iter().rposition(|host| *host == "archive");
    let first_of_mirror = order.iter().position(|host| *host == "mirror");
    let arrived = (archive.paths().len(), mirror.paths().len());
    if arrived == (4, 4) && first_of_mirror < last_of_archive {
        Ok(())
    } else {
        Err("the mirror should have been asked while the archive was exhausted".into())
    }
}

fn rule(server: &Server, rate: &str, burst: u32) -> Result<TargetRule, Box<dyn Error>> {
    let burst = NonZeroU32::new(burst).ok_or("no burst")?;
    let limit = Limit::rate(rate.parse()?, burst)?;
    Ok(TargetRule::new(server.origin().parse()?, vec![limit]))
}

/// The first step of the plan whose host has room. Asking takes nothing.
fn choose(admission: &Admission, plan: &[Planned]) -> Result<Choice, Box<dyn Error>> {
    let mut earliest = Moment::MAX;
    let mut why = String::new();
    for (place, planned) in plan.iter().enumerate() {
        let (host, step) = (planned.host, &planned.step.step);
        match admission.wait(&planned.lane, NonZeroU32::MIN) {
            Wait::None => {
                let levels = admission.levels(&planned.lane);
                let limits = levels.iter().flat_map(|level| &level.limits);
                let left = limits.map(|limit| limit.left).min().unwrap_or(0);
                println!("step {step}: the {host} has room for {left}{why}");
                return Ok(Choice::Take(place));
            }
            Wait::Until(ready, cause) => {
                let ready = ready.ok_or("nobody knows when")?;
                earliest = earliest.min(ready);
                if why.is_empty() {
                    let (at, cause) = (rfc3339(ready, offset(admission)), cause.as_str());
                    why = format!("; step {step} waits, the {host} has none before {at} ({cause})");
                }
            }
            Wait::Never => return Err("a step that costs more than there can be".into()),
            Wait::Denied => return Err("an operator lets nothing through".into()),
        }
    }
    let until = rfc3339(earliest, offset(admission));
    println!("nothing before {until}{why}");
    Ok(Choice::Rest(earliest))
}

fn offset(admission: &Admission) -> i64 {
    wall_offset(&**admission.clock())
}
