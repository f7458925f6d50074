//! A list is handed over to the schedule; one that was handed over whole before
//! is not read again, so that a run of millions goes on at once after a kill.

use std::io::BufReader;
use std::sync::Arc;

use super::Failure;
use super::args::RunArgs;
use super::check;
use super::show::say;
use super::task_file::TaskFile;
use crate::admission::Admission;
use crate::clock::wall_offset;
use crate::schedule::list::{Context, ListFault, tasks};
use crate::schedule::{Handle, Job, ListDigest, SubmitError, Submitted, marked};

/// What is known of the list from earlier runs.
pub(super) struct HandedOver {
    /// None where it has to be read whatever was done before.
    list: Option<ListDigest>,
    whole: bool,
}

impl HandedOver {
    pub(super) fn look(
        list: &TaskFile,
        args: &RunArgs,
        admission: &Arc<Admission>,
    ) -> Result<Self, Failure> {
        let list = list.digest(&args.picking)?;
        let store = admission.store();
        let job = Job::find(store.clone(), &args.out)?;
        let whole = match (&job, &list) {
            // A refresh, and a task that is asked for again, are in the list.
            (Some(job), Some(list))
                if !args.keeping.refresh && marked(store, job.number())? == 0 =>
            {
                job.has_whole(list)?
            }
            _ => false,
        };
        Ok(Self { list, whole })
    }

    /// True when every task of it has been accepted before.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }
}

/// What to do with an id that was asked for before in other words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conflicts {
    Stop,
    Skip,
}

/// Tasks are handed over in pieces of this many.
const PIECE: usize = 1000;

/// Hands the file's tasks over; those of an earlier run are known.
pub(super) async fn submit(
    list: &TaskFile,
    args: &RunArgs,
    before: &HandedOver,
    admission: &Arc<Admission>,
    handle: &Handle,
) -> Result<Submitted, Failure> {
    if before.is_whole() {
        say("the list is the one that was handed over before; what is left of it goes on");
        return Ok(Submitted::default());
    }
    let path = list.path();
    let file = BufReader::with_capacity(1 << 20, list.open()?);
    let conflicts = if args.skip_bad {
        Conflicts::Skip
    } else {
        Conflicts::Stop
    };
    let wanted = |url: &str| args.picking.wants(url);
    let context = Context {
        env: &|name| std::env::var(name).ok(),
        wall_offset: wall_offset(&**admission.clock()),
        template: args.picking.template.as_ref(),
        wanted: Some(&wanted),
    };
    let mut piece = Vec::with_capacity(PIECE);
    let mut all = Submitted::default();
    let mut list = tasks(file, context);
    loop {
        let next = list.next();
        let ended = next.is_none();
        match next {
            Some(Ok(task)) => piece.push(task),
            // Bad lines were reported, and waved through, before anything was sent.
            Some(Err(ListFault::Line(_))) | None => {}
            Some(Err(ListFault::File(error))) => {
                return Err(check::unreadable(path, &error));
            }
        }
        if piece.len() >= PIECE || ended {
            let submitted = match handle.submit(std::mem::take(&mut piece)).await {
                Ok(submitted) => submitted,
                // It has stopped for a reason of its own, which is told in its place.
                Err(SubmitError::Stopped(_)) => return Ok(all),
                Err(error) => return Err(error.into()),
            };
            all.known += submitted.known;
            all.again += submitted.again;
            if !submitted.conflicts.is_empty() && conflicts == Conflicts::Skip {
                say(&format!(
                    "{} ids were asked for before in other words; left out",
                    submitted.conflicts.len()
                ));
            }
            if let Some(id) = submitted
                .conflicts
                .first()
                .filter(|_| conflicts == Conflicts::Stop)
            {
                return Err(Failure::usage(format!(
                    "{}: the id {id} was asked for before with another method, URL, headers or body: \
                     give the new call another id, or its results another --out",
                    path.display()
                )));
            }
        }
        if ended {
            if let Some(list) = before.list {
                handle.job().note_whole(&list).wait().await?;
            }
            return Ok(all);
        }
    }
}
