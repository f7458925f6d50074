//! `drill`: a swarm of agents against loopback targets that judge every
//! arrival by a tolerance of their own, through the same parts as a real run.
//! Whether the promises were kept is read off what the *targets* saw. Needs no
//! network.

mod account;
mod cast;
mod host;
mod judge;
mod rules;
mod sight;
mod swarm;
mod target;
mod verdict;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::DrillArgs;
use super::progress::Progress;
use super::show::{Rows, say};
use super::signals::Signals;
use super::{Exit, Failure, gate};
use crate::admission::Admission;
use crate::config::Config;
use crate::egress::{Bodies, Egress};
use crate::schedule::{Fetch, Job, JobRecord, Schedule, Settings, Started, Stop};
use crate::serve::{Control, Desk, Gate};
use crate::store::IfMissing;
use account::Account;
use host::Host;
use swarm::Swarm;
use verdict::Verdict;

pub(super) async fn drill(args: DrillArgs) -> Result<Exit, Failure> {
    // First, so that whatever is made from here on is unmade as well.
    let mut signals = Signals::new()?;
    let scratch = gate::Scratch::new()?;
    let store = args
        .keep
        .clone()
        .unwrap_or_else(|| scratch.folder().join("store"));
    let out = scratch.folder().join("out");
    let host = Host::start(&cast::cast(args.seconds)?)?;
    let swarm = Swarm::new(&host.targets, args.agents);
    let config = rules::config(&host.targets, &store)?;
    let admission = gate::open(&config, &store, IfMissing::Create)?;
    let begun = admission.clock().now();
    say(&format!(
        "{} agents want {} pages of {} targets: about {} s. What each target tolerates is known, \
         and each judges by itself.\nMeanwhile, elsewhere: tidegate status --store {}",
        args.agents,
        swarm.tasks(),
        host.targets.len(),
        args.seconds,
        store.display(),
    ));
    let ended = run(&config, &out, &args, swarm, &admission, &mut signals).await;
    admission.close().wait().await?;
    let Ended {
        stop,
        signal,
        job,
        makespan,
    } = ended?;
    if let Stop::Fault(words) = stop {
        return Err(Failure {
            exit: Exit::Error,
            words,
        });
    }
    if let Some(number) = signal {
        say("stopped before the end: there is no verdict");
        return Ok(Exit::Signal(number));
    }
    let account = Account::read(admission.store(), begun)?;
    let verdict = Verdict::new(&host.targets, &job, account, makespan);
    show(&verdict, args.output.json);
    what_next(args.keep.as_deref(), &host);
    Ok(if verdict.broken().is_empty() {
        Exit::Done
    } else {
        Exit::Error
    })
}

/// How the work of a drill ended.
struct Ended {
    stop: Stop,
    signal: Option<u8>,
    job: JobRecord,
    makespan: Duration,
}

/// Longer than any drill takes: what is left by then is lost.
fn patience(seconds: u64) -> Duration {
    Duration::from_secs(seconds * 2 + 20)
}

async fn run(
    config: &Config,
    out: &Path,
    args: &DrillArgs,
    swarm: Swarm,
    admission: &Arc<Admission>,
    signals: &mut Signals,
) -> Result<Ended, Failure> {
    admission.name_lanes()?;
    let wire = gate::wire(config, admission);
    let egress = Arc::new(Egress::new(admission.clone(), &wire)?);
    let bodies = Bodies::in_folder(out)?;
    let job = Arc::new(Job::of(admission.store().clone(), out)?);
    let schedule = Schedule {
        admission: admission.clone(),
        job: job.clone(),
        work: Arc::new(Fetch::new(egress, bodies)),
        settings: Settings::default(),
    };
    let Started {
        handle,
        mut completed,
        mut stopped,
    } = schedule.start()?;
    let desk = Desk {
        store: admission.store().clone(),
        gate: Some(Gate {
            admission: admission.clone(),
            guard: wire.guard,
        }),
        schedule: Some(handle.clone()),
    };
    let control = Control::open(desk, gate::metrics()).await?;
    let mut progress = Progress::new(admission.clone(), job.clone());
    let started = admission.clock().now();
    let submitted = swarm.submit(handle.clone());
    tokio::pin!(submitted);
    let mut submitting = true;
    let late = tokio::time::sleep(patience(args.seconds));
    tokio::pin!(late);
    let mut waiting = true;
    let stop = loop {
        tokio::select! {
            Some(_) = completed.recv() => {}
            submitted = &mut submitted, if submitting => {
                submitting = false;
                submitted?;
                handle.seal();
            }
            stop = &mut stopped => break stop.unwrap_or_else(|error| Stop::Fault(error.to_string())),
            number = signals.next() => signals.stop(number, &handle),
            () = &mut late, if waiting => {
                waiting = false;
                handle.stop();
            }
            () = progress.tick() => progress.show(&handle).await,
        }
    };
    let makespan = admission.clock().now().since(started);
    drop(control);
    progress.end();
    Ok(Ended {
        stop,
        signal: signals.first,
        job: job.record(),
        makespan,
    })
}

fn show(verdict: &Verdict, json: bool) {
    let mut rows = Rows::new(json, sight::COLUMNS);
    for sight in &verdict.sights {
        rows.add(&if json { sight.json() } else { sight.cells() });
    }
    if json {
        rows.add(&verdict.json());
        return;
    }
    rows.end();
    // A reader that has left is the end of the command, not an error.
    let _ = write!(io::stdout(), "\n{verdict}");
}

fn what_next(kept: Option<&Path>, host: &Host) {
    let Some(kept) = kept else {
        say(
            "\nThe record is gone; with --keep DIR it stays, for `tidegate audit who --store DIR`.",
        );
        return;
    };
    let (store, target) = (kept.display(), host.targets.first());
    let target = target.map(|target| target.origin()).unwrap_or_default();
    say(&format!(
        "\nWho caused the pressure:   tidegate audit who --store {store}\n\
         Second by second:          tidegate audit windows --width 1s --target {target} --store {store}\n\
         Pauses and deferrals:      tidegate audit decisions --store {store}"
    ));
}
