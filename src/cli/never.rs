//! Tasks of a list that the configuration will never let through: told before
//! anything is sent, though a run would say it of each in its result.

use std::io::BufRead;
use std::path::Path;

use super::show::say;
use crate::clock::Moment;
use crate::config::Config;
use crate::egress::guard::Guard;
use crate::schedule::NewTask;
use crate::schedule::list::{Context, tasks};
use crate::target::locate;

/// Tasks that are told one by one.
const SHOWN: usize = 20;

/// Warns of each task that can never be sent. A name may still lead to an
/// address that is closed: names are not looked up here.
pub(super) fn warn(
    list: impl BufRead,
    path: &Path,
    config: &Config,
    context: Context<'_>,
    now: Moment,
) {
    let guard = Guard::new(config.allow_private.clone());
    let mut count = 0;
    for task in tasks(list, context).filter_map(Result::ok) {
        let Some(why) = why_never(&task, config, &guard, now) else {
            continue;
        };
        count += 1;
        if count <= SHOWN {
            let id = task.task.id.escape_debug();
            // Without its query, which may hold a secret.
            let at = locate(&task.task.call.url);
            let at = at.map(|at| format!(" ({}{})", at.origin, at.path));
            say(&format!(
                "{}: warning: the task {id}{} can never be sent: {why}",
                path.display(),
                at.unwrap_or_default()
            ));
        }
    }
    if count > SHOWN {
        let more = count - SHOWN;
        say(&format!(
            "{}: warning: {more} more tasks can never be sent",
            path.display()
        ));
    }
}

fn why_never(new: &NewTask, config: &Config, guard: &Guard, now: Moment) -> Option<String> {
    let task = &new.task;
    if task.deadline.is_some_and(|deadline| deadline <= now) {
        return Some("its deadline has passed".to_owned());
    }
    let located = locate(&task.call.url).ok()?;
    if let Err(blocked) = guard.check_host(located.origin.host()) {
        return Some(format!("{blocked}, unless allow_private names them"));
    }
    let class = config.rulebook.class(
        &located.origin,
        &task.call.method,
        &located.path,
        &located.query,
    );
    let terms = config.rulebook.terms(&located.origin, &class);
    let tier = terms.tiers.iter().find_map(|tier| {
        let limit = tier.limits.iter().find(|limit| limit.burst() < task.cost)?;
        Some((tier, limit))
    });
    let (tier, limit) = tier?;
    Some(format!(
        "its cost of {} is more than {limit} of {} could ever let through at once ({})",
        task.cost,
        tier.scope,
        limit.burst()
    ))
}
