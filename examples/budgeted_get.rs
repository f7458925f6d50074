//! A budgeted GET: four calls to a server that tolerates two a second.
//!
//! A call that its target has no room for is answered by the gate with a
//! deferral: no error, no empty result, and nothing has been sent. Whoever gets
//! one does other work and comes back when it says.
//!
//! `cargo run --example budgeted_get`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod support;

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::Arc;

use tidegate::admission::{Admission, Policy};
use tidegate::budget::{Limit, Rulebook, TargetRule};
use tidegate::clock::wall_offset;
use tidegate::egress::guard::Guard;
use tidegate::egress::{Egress, Request, Sent, Wire};
use tidegate::step::Step;
use tidegate::store::{IfMissing, Store};

const CALLS: usize = 4;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = support::Server::start()?;
    let folder = tempfile::tempdir()?;

    // The record, the rules, and the gate over both.
    let store = Arc::new(Store::open(folder.path(), IfMissing::Create, 0)?);
    let two = NonZeroU32::MIN.saturating_add(1);
    let limit = Limit::rate("2/s".parse()?, two)?;
    let rule = TargetRule::new(server.origin().parse()?, vec![limit]);
    let rulebook = Rulebook::of(vec![rule])?;
    let admission = Admission::open(store.clone(), store.clock(), rulebook, Policy::default())?;

    // Loopback addresses are closed to calls unless somebody opens them.
    let wire = Wire {
        guard: Arc::new(Guard::new(vec!["127.0.0.1/32".parse()?])),
        ..Wire::default()
    };
    let egress = Egress::new(admission.clone(), &wire)?;

    let step = Step::new("scout", "run-1", "1", "see what is there");
    let mut deferred = 0;
    for page in 1..=CALLS {
        let request = Request::get(&format!("{}/page/{page}", server.origin()));
        loop {
            match egress.send(&request, &step).await? {
                Sent::Answered(reply) => {
                    let status = reply.status();
                    println!("{status}: {}", reply.text(1 << 16).await?.trim());
                    break;
                }
                Sent::Deferred(deferral) => {
                    deferred += 1;
                    let offset = wall_offset(&**admission.clock());
                    println!("{:#}", deferral.to_json(offset));
                    // Whoever has other work does it now.
                    let wait = deferral.retry_after().ok_or("nobody knows when")?;
                    tokio::time::sleep(wait).await;
                }
                Sent::Refused(refusal) => return Err(refusal.into()),
                Sent::Failed(fault) => return Err(fault.words().into()),
            }
        }
    }
    admission.close().wait().await?;

    let arrived = server.paths().len();
    println!("{arrived} calls arrived; {deferred} were held back first");
    if arrived == CALLS && deferred > 0 {
        Ok(())
    } else {
        Err("four calls should have arrived, some of them later than asked".into())
    }
}
