//! `run --dry-run`: what a run would do, when it could end, and which target
//! bounds it. Sends nothing.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt::Write as _;
use std::io::BufReader;
use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::RunArgs;
use super::check;
use super::gate::{self, Scratch};
use super::show::{Rows, say};
use super::status;
use super::table::text;
use super::task_file::TaskFile;
use super::{Exit, Failure};
use crate::admission::{Admission, Lane, NoRoute};
use crate::clock::wall_offset;
use crate::config::Config;
use crate::egress::guard::Guard;
use crate::schedule::list::{Context, ListFault, tasks};
use crate::schedule::{Job, Standing};
use crate::serve::{Pace, forecast};
use crate::step::Step;
use crate::store::{IfMissing, StoreError};
use crate::target::TargetKey;

/// Budgets named at most.
const NAMED: usize = 10;

pub(super) async fn dry_run(
    config: &Config,
    args: &RunArgs,
    list: &TaskFile,
) -> Result<Exit, Failure> {
    let (admission, _scratch) = opened(config)?;
    let told = tell(config, args, list, &admission);
    admission.close().wait().await?;
    let mut rows = if args.json {
        Rows::Json
    } else {
        Rows::Words(words)
    };
    rows.add(&told?);
    rows.end();
    Ok(Exit::Done)
}

/// The gate over the store, with what was spent and paused; one of its own
/// where there is no store yet, or another process works with it.
fn opened(config: &Config) -> Result<(Arc<Admission>, Option<Scratch>), Failure> {
    match gate::open(config, &config.store, IfMissing::Fail) {
        Err(StoreError::Missing(_)) => {}
        Err(in_use @ StoreError::InUse(_)) => say(&format!(
            "{in_use}; until then every budget is taken as full, and nothing as done before"
        )),
        other => return Ok((other?, None)),
    }
    let scratch = Scratch::new()?;
    let admission = gate::open(config, scratch.folder(), IfMissing::Create)?;
    Ok((admission, Some(scratch)))
}

fn tell(
    config: &Config,
    args: &RunArgs,
    list: &TaskFile,
    admission: &Arc<Admission>,
) -> Result<Value, Failure> {
    let mut plan = Plan::new(config, admission);
    let job = Job::find(admission.store().clone(), &args.out)?;
    if let Some(job) = &job {
        for entry in job.pending() {
            let (_, record) = entry?;
            plan.left += 1;
            let (url, method) = (&record.next.url, &record.next.method);
            plan.wants(url, method, &record.task.step, record.task.cost)?;
        }
    }
    plan.read(args, list, job.as_ref())?;
    let (now, offset) = (admission.clock().now(), wall_offset(&**admission.clock()));
    let targets = plan.work.len();
    let outlook = admission.outlook(plan.work.into_values(), NAMED);
    let pace = Pace {
        left: plan.left + plan.new,
        best: None,
    };
    let mut row = json!({
        "tasks": plan.left + plan.new,
        "left_over": plan.left,
        "new": plan.new,
        "done_before": plan.done,
        "refused": plan.refused,
        "targets": targets,
    });
    if let Some(fields) = row.as_object_mut() {
        fields.extend(forecast(&outlook, pace, now, offset));
    }
    Ok(row)
}

/// What would be done.
struct Plan<'g> {
    admission: &'g Admission,
    guard: Guard,
    work: HashMap<TargetKey, (Arc<Lane>, u64)>,
    seen: HashSet<blake3::Hash>,
    new: u64,
    left: u64,
    done: u64,
    refused: u64,
}

impl<'g> Plan<'g> {
    fn new(config: &Config, admission: &'g Admission) -> Self {
        Self {
            admission,
            guard: Guard::new(config.allow_private.clone()),
            work: HashMap::new(),
            seen: HashSet::new(),
            new: 0,
            left: 0,
            done: 0,
            refused: 0,
        }
    }

    fn read(&mut self, args: &RunArgs, list: &TaskFile, job: Option<&Job>) -> Result<(), Failure> {
        let wanted = |url: &str| args.picking.wants(url);
        let context = Context {
            env: &|name| std::env::var(name).ok(),
            wall_offset: wall_offset(&**self.admission.clock()),
            template: args.picking.template.as_ref(),
            wanted: Some(&wanted),
        };
        for entry in tasks(BufReader::with_capacity(1 << 20, list.open()?), context) {
            let task = match entry {
                Ok(new) => new.task,
                Err(ListFault::Line(_)) => continue,
                Err(ListFault::File(error)) => return Err(check::unreadable(list.path(), &error)),
            };
            if !self.seen.insert(blake3::hash(task.id.as_bytes())) {
                continue;
            }
            let standing = match job {
                Some(job) => job.standing(&task.id)?,
                None => Standing::New,
            };
            match standing {
                Standing::Complete => self.done += 1,
                Standing::Pending => {}
                Standing::New => {
                    self.new += 1;
                    self.wants(&task.call.url, &task.call.method, &task.step, task.cost)?;
                }
            }
        }
        Ok(())
    }

    fn wants(
        &mut self,
        url: &str,
        method: &str,
        step: &Step,
        cost: NonZeroU32,
    ) -> Result<(), Failure> {
        let lane = match self.admission.route(url, method, step) {
            Ok(route) => route.lane,
            Err(NoRoute::Refused(_)) => {
                self.refused += 1;
                return Ok(());
            }
            Err(NoRoute::Unreadable(error)) => return Err(error.into()),
        };
        let resolved = lane.resolved();
        if self.guard.check_host(lane.key().origin.host()).is_err()
            || resolved.denied.is_some()
            || !resolved.can_ever(cost)
        {
            self.refused += 1;
            return Ok(());
        }
        let tokens = match self.work.entry(lane.key().clone()) {
            Entry::Occupied(entry) => &mut entry.into_mut().1,
            Entry::Vacant(entry) => &mut entry.insert((lane, 0)).1,
        };
        *tokens += u64::from(cost.get());
        Ok(())
    }
}

fn words(row: &Value) -> String {
    let [tasks, targets, left, new, done, refused] = [
        "tasks",
        "targets",
        "left_over",
        "new",
        "done_before",
        "refused",
    ]
    .map(|name| row.get(name).map(text).unwrap_or_default());
    let mut words = format!(
        "{tasks} tasks at {targets} targets: {new} new, {left} left over, {refused} that would be refused; \
         {done} were done before\n"
    );
    words.push_str(&status::outlook(row));
    let slowest = row.get("slowest").and_then(Value::as_array);
    for budget in slowest.into_iter().flatten() {
        let [scope, name, bound, calls, ends] = ["scope", "name", "bound", "calls", "ends_at"]
            .map(|name| budget.get(name).map(text).unwrap_or_default());
        let bound = if bound.is_empty() {
            "no wait".to_owned()
        } else {
            bound
        };
        let ends = if ends.is_empty() {
            "released".to_owned()
        } else {
            ends
        };
        let _ = writeln!(
            words,
            "  {scope} {name}: {calls} calls, {bound}, until {ends}"
        );
    }
    words.push_str("nothing was sent; how long answers take and what they say is not in this\n");
    words
}
