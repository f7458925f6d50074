//! `run`: a task file through the gate, to the end of the list.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::RunArgs;
use super::check;
use super::keeper::Keeper;
use super::progress::Progress;
use super::reload::Reload;
use super::show::say;
use super::signals::Signals;
use super::submit::{HandedOver, submit};
use super::task_file::TaskFile;
use super::{Exit, Failure, gate, in_folder};
use crate::admission::Admission;
use crate::config::Overrides;
use crate::egress::warc::Archive;
use crate::egress::{Bodies, Egress};
use crate::outcome::Outcome;
use crate::schedule::{
    Begun, Completed, Fetch, Job, JobRecord, Results, Schedule, Settings, Started, Stop,
};
use crate::serve::{Control, Desk, Gate};
use crate::store::{IfMissing, StoreError};

pub(super) const EXAMPLES: &str = "Example:
  tidegate run urls.jsonl --out crawl
  tidegate run urls.jsonl --dry-run
  tidegate run urls.txt --include '^https://example[.]org/' --exclude '[.]pdf$'
  tidegate run - --template '{\"url\":\"https://api.example.org/users/{}\",\"agent\":\"scout\"}' < ids.txt";

pub(super) async fn run(overrides: &Overrides, args: RunArgs) -> Result<Exit, Failure> {
    let reload = Reload::new(overrides, gate::config(overrides)?)?;
    let config = reload.started();
    gate::raise_descriptors();
    let spool = if args.dry_run {
        std::env::temp_dir()
    } else {
        args.out.clone()
    };
    let list = TaskFile::of(&args.tasks, &spool)?;
    if args.dry_run {
        return match checked(&args, &list)? {
            Checked::Bad => Ok(Exit::Usage),
            Checked::Good => super::dry_run::dry_run(config, &args, &list).await,
        };
    }
    // A store that is there may know the list; a new one is made for a good list only.
    match gate::open_for_long(config, IfMissing::Fail).await {
        Err(StoreError::Missing(_)) => {}
        opened => return with_store(reload, &args, &list, &opened?, None).await,
    }
    let checked = checked(&args, &list)?;
    if checked == Checked::Bad {
        return Ok(Exit::Usage);
    }
    let admission = gate::open_for_long(config, IfMissing::Create).await?;
    with_store(reload, &args, &list, &admission, Some(checked)).await
}

async fn with_store(
    reload: Reload,
    args: &RunArgs,
    list: &TaskFile,
    admission: &Arc<Admission>,
    known: Option<Checked>,
) -> Result<Exit, Failure> {
    let ended = async {
        let handed_over = HandedOver::look(list, args, admission)?;
        let good = match known {
            Some(checked) => checked,
            None if handed_over.is_whole() => Checked::Good,
            None => checked(args, list)?,
        };
        if good == Checked::Bad {
            return Ok(Exit::Usage);
        }
        std::fs::create_dir_all(&args.out).map_err(|error| in_folder(&args.out, &error))?;
        with_gate(reload, args, list, &handed_over, admission).await
    };
    let ended = ended.await;
    let closed = admission.close().wait().await;
    // What went wrong first says most.
    let ended = ended?;
    closed?;
    Ok(ended)
}

/// What a look at the whole list came to; what is wrong is said already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    Good,
    Bad,
}

fn checked(args: &RunArgs, list: &TaskFile) -> Result<Checked, Failure> {
    let checked = check::read(list.open()?, list.path(), &args.picking)?;
    if checked.bad_count == 0 {
        check::left_out(&args.tasks, &checked);
        return Ok(Checked::Good);
    }
    check::report(&args.tasks, &checked);
    if args.skip_bad {
        return Ok(Checked::Good);
    }
    say("nothing was sent; mend these lines, or leave them out with --skip-bad");
    Ok(Checked::Bad)
}
async fn with_gate(
    mut reload: Reload,
    args: &RunArgs,
    list: &TaskFile,
    handed_over: &HandedOver,
    admission: &Arc<Admission>,
) -> Result<Exit, Failure> {
    admission.name_lanes()?;
    let wire = gate::wire(reload.started(), admission);
    let egress = Arc::new(Egress::new(admission.clone(), &wire)?);
    let job = Arc::new(Job::of(admission.store().clone(), &args.out)?);
    let left_over = job.record().pending();
    if left_over > 0 && !handed_over.is_whole() {
        say(&format!(
            "{left_over} tasks of an earlier list are left over in {} and go on as well; \
             `tidegate tasks cancel` calls tasks off, another --out keeps lists apart",
            args.out.display()
        ));
    }
    // First of all in the folder: it tells whether another run works there.
    let mut results = open_results(&args.out, &job)?;
    if args.keeping.refresh {
        begin_refresh(&job)?;
    }
    let bodies = Bodies::in_folder(&args.out).map_err(|error| in_folder(&args.out, &error))?;
    let archive = match args.keeping.warc {
        true => {
            let (clock, name) = (admission.clock().clone(), wire.user_agent.clone());
            let archive = Archive::in_folder(&args.out, args.keeping.warc_size, clock, name);
            Some(Arc::new(archive.map_err(|error| {
                in_folder(&args.out.join("warc"), &error)
            })?))
        }
        false => None,
    };
    let ok_status = args.keeping.ok_status.clone().unwrap_or_default();
    let metrics = gate::metrics();
    let _keeper = Keeper::start(admission, reload.started(), &bodies);
    let mut signals = Signals::new()?;
    let schedule = Schedule {
        admission: admission.clone(),
        job: job.clone(),
        work: Arc::new(
            Fetch::new(egress, bodies)
                .ok_status(ok_status)
                .remembering(job.clone())
                .archiving(archive.clone()),
        ),
        settings: Settings {
            concurrency: gate::concurrency(args.concurrency),
            ..Settings::default()
        },
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
            guard: wire.guard.clone(),
        }),
        schedule: Some(handle.clone()),
    };
    // Calls may be under way: whatever fails from here on, they are ended first.
    let mut failed = None;
    let mut fail = |failure: Failure| {
        failed.get_or_insert(failure);
        handle.stop();
    };
    let control = Control::open(desk, metrics).await;
    let control = control.map_err(|error| fail(in_folder(admission.store().folder(), &error)));
    let mut progress = Progress::new(admission.clone(), job.clone());
    let deadline = tokio::time::sleep(args.deadline.unwrap_or(Duration::MAX));
    tokio::pin!(deadline);
    let submitted = submit(list, args, handed_over, admission, &handle);
    tokio::pin!(submitted);
    let mut loading = true;
    let mut late = false;
    let mut append = |done: &Completed| {
        let appended = results.append(done.place, &done.line);
        appended.map_err(|error| in_folder(&args.out, &error))
    };
    let mut stop = loop {
        tokio::select! {
            Some(done) = completed.recv() => append(&done).unwrap_or_else(&mut fail),
            submitted = &mut submitted, if loading => {
                loading = false;
                match submitted {
                    Ok(submitted) => {
                        progress.submitted(submitted.known, submitted.again);
                        handle.seal();
                    }
                    Err(failure) => fail(failure),
                }
            }
            stop = &mut stopped => break stop.unwrap_or_else(|error| Stop::Fault(error.to_string())),
            number = signals.next() => signals.stop(number, &handle),
            () = reload.asked() => reload.reload(admission, &wire.guard).await,
            () = &mut deadline, if !late && args.deadline.is_some() => {
                late = true;
                handle.stop();
            }
            () = progress.tick() => progress.show(&handle).await,
        }
    };
    while let Ok(done) = completed.try_recv() {
        append(&done).unwrap_or_else(&mut fail);
    }
    drop(control);
    progress.end();
    if let Some(archive) = &archive {
        let closed = archive.close();
        closed.unwrap_or_else(|error| fail(in_folder(archive.folder(), &error)));
    }
    let record = job.record();
    summary(&args.out, &record);
    if let Some(failure) = failed {
        return Err(failure);
    }
    if let Stop::Fault(words) = &mut stop {
        return Err(Failure {
            exit: Exit::Error,
            words: std::mem::take(words),
        });
    }
    if args.keeping.refresh && stop == Stop::Done {
        job.end_refresh()?;
    }
    Ok(match (stop, signals.first) {
        (Stop::Done, _) if unanswered(&record) > 0 => Exit::Unanswered,
        (Stop::Done, _) => Exit::Done,
        (_, Some(number)) => Exit::Signal(number),
        _ => Exit::Deferred,
    })
}

fn begin_refresh(job: &Job) -> Result<(), Failure> {
    match job.begin_refresh()? {
        Begun::Next => {}
        Begun::Resumed => say(
            "the last refresh was interrupted: it goes on, and what it has asked for is not asked again",
        ),
        Begun::Unfinished => say(
            "tasks of an earlier run are not complete: this run completes them and refreshes nothing; \
             start it again for that",
        ),
    }
    Ok(())
}

fn open_results(out: &Path, job: &Job) -> Result<Results, Failure> {
    let path = out.join("results.jsonl");
    let stored = |place| job.result(place).map_err(io::Error::other);
    let results = Results::open(&path, &stored, job.record().results);
    let results = results.map_err(|error| in_folder(&path, &error))?;
    if let Some(old) = results.set_aside() {
        say(&format!(
            "{} belongs to another store; it is now {}",
            path.display(),
            old.display()
        ));
    }
    Ok(results)
}

fn unanswered(record: &JobRecord) -> u64 {
    let without = Outcome::ALL
        .into_iter()
        .filter(|outcome| !outcome.has_answer());
    without.map(|outcome| record.outcome(outcome)).sum()
}

fn summary(out: &Path, record: &JobRecord) {
    let left = record.pending();
    let counts = Outcome::ALL
        .into_iter()
        .filter(|outcome| record.outcome(*outcome) > 0);
    let counts: Vec<String> = counts
        .map(|outcome| format!("{} {outcome}", record.outcome(outcome)))
        .collect();
    let counts = if counts.is_empty() {
        "none complete".to_owned()
    } else {
        counts.join(", ")
    };
    say(&format!("{} tasks: {counts}; {left} left", record.tasks()));
    let without = [Outcome::Refused, Outcome::Failed]
        .into_iter()
        .filter(|outcome| record.outcome(*outcome) > 0);
    for outcome in without {
        say(&format!(
            "why some are {outcome}: `tidegate tasks --list --outcome {outcome}`; \
             to have them done again with the next run: `tidegate tasks retry --outcome {outcome}`"
        ));
    }
    say(&format!("results: {}", out.join("results.jsonl").display()));
    if left > 0 {
        say("run the same command again to go on");
    }
}
