//! Commands that ask: what they ask for, and how the answer is shown.

use super::answer::answer;
use super::args::{
    AuditArgs, AuditCommand, ByName, Command, OutcomeName, Output, StateName, TasksArgs,
};
use super::show::Rows;
use super::store::StoreCommand;
use super::table::Column;
use super::{Exit, Failure};
use super::{acts, change, gate};
use crate::config::Overrides;
use crate::serve::{By, ControlError, Question, Record, TaskFilter, Wanted, ask};

pub(super) type Asked = (Question, Output, &'static [Column]);

/// Answers one of the asking commands.
pub(super) async fn command(overrides: &Overrides, command: Command) -> Result<Exit, Failure> {
    let config = gate::config(overrides);
    let (question, output, columns) = question(command)?;
    let mut rows = match question {
        Question::Status if !output.json => Rows::Words(super::status::words),
        _ => Rows::new(output.json, columns),
    };
    match (config, &overrides.store) {
        (Ok(config), _) => answer(&config, &question, rows).await?,
        // A gate that runs needs no file to answer, and an operator no good one to stop it.
        (Err(failure), Some(store)) => match ask(store, &question, |row| rows.add(&row)).await {
            Err(ControlError::NobodyThere) => return Err(failure),
            asked => {
                rows.end();
                asked?;
            }
        },
        (Err(failure), None) => {
            let words = format!(
                "{}\na gate that runs can be asked without the file: name its store with --store",
                failure.words
            );
            return Err(Failure { words, ..failure });
        }
    }
    Ok(Exit::Done)
}

fn question(command: Command) -> Result<Asked, Failure> {
    Ok(match command {
        Command::Status(output) => (Question::Status, output, &[]),
        Command::Explain(args) => {
            let question = Question::Explain {
                url: args.url,
                method: args.method.to_ascii_uppercase(),
            };
            (question, args.output, EXPLAIN)
        }
        Command::Budget(args) if args.targets.is_empty() => {
            (Question::Targets, args.output, BUDGET)
        }
        Command::Budget(args) => (
            Question::Budget {
                targets: args.targets,
            },
            args.output,
            BUDGET,
        ),
        Command::Targets(output) => (Question::Targets, output, TARGETS),
        Command::Tasks(TasksArgs { act: Some(act), .. }) => acts::question(act),
        Command::Tasks(args) => {
            let columns = if args.list { TASK_LIST } else { TASK_COUNTS };
            let filter = TaskFilter {
                list: args.list,
                state: args.state.map(|state| state_name(state).to_owned()),
                outcome: args.outcome.map(|outcome| outcome_name(outcome).to_owned()),
                target: args.target,
            };
            (Question::Tasks(filter), args.output, columns)
        }
        Command::Results(args) => {
            // A gate that is asked runs elsewhere.
            let out = std::path::absolute(&args.out).unwrap_or(args.out);
            (Question::Results { out }, args.output, RESULTS)
        }
        Command::Hold(_) | Command::Deny(_) | Command::Set(_) | Command::Release(_) => {
            return change::question(command);
        }
        Command::Audit(audit) => audited(audit),
        Command::Store(StoreCommand::Copy(args)) => {
            // The gate that makes the copy may stand in another folder.
            let to = std::path::absolute(&args.to)?;
            let question = Question::StoreCopy { to };
            return Ok((question, args.output, COPIED));
        }
        Command::Run(_)
        | Command::Check(_)
        | Command::Drill(_)
        | Command::Init(_)
        | Command::Completions { .. }
        | Command::Man { .. } => {
            return Err(Failure::usage("this command asks nothing"));
        }
    })
}

fn audited(command: AuditCommand) -> Asked {
    let (record, args, columns) = match command {
        AuditCommand::Events(args) => (Record::Events, args, EVENTS),
        AuditCommand::Decisions(args) => (Record::Decisions, args, DECISIONS),
        AuditCommand::Windows(args) => (
            Record::Windows {
                seconds: args.width.as_secs().max(1),
            },
            args.audit,
            WINDOWS,
        ),
        AuditCommand::Who(args) => (
            Record::Who {
                by: grouping(args.by),
            },
            args.audit,
            WHO,
        ),
        AuditCommand::Envelopes(output) => {
            let question = Question::Audit {
                record: Record::Envelopes,
                wanted: Wanted::default(),
            };
            return (question, output, ENVELOPES);
        }
    };
    let AuditArgs {
        target,
        site,
        agent,
        trajectory,
        from,
        to,
        output,
    } = args;
    let wanted = Wanted {
        target,
        site,
        agent,
        trajectory,
        from,
        to,
    };
    (Question::Audit { record, wanted }, output, columns)
}

fn grouping(by: ByName) -> By {
    match by {
        ByName::Agent => By::Agent,
        ByName::Trajectory => By::Trajectory,
        ByName::Step => By::Step,
        ByName::Goal => By::Goal,
        ByName::Target => By::Target,
    }
}

fn state_name(state: StateName) -> &'static str {
    match state {
        StateName::Queued => "queued",
        StateName::Running => "running",
        StateName::Backoff => "backoff",
        StateName::Complete => "complete",
    }
}

pub(super) fn outcome_name(outcome: OutcomeName) -> &'static str {
    match outcome {
        OutcomeName::Succeeded => "succeeded",
        OutcomeName::Answered => "answered",
        OutcomeName::Failed => "failed",
        OutcomeName::Ambiguous => "ambiguous",
        OutcomeName::Expired => "expired",
        OutcomeName::Cancelled => "cancelled",
        OutcomeName::Refused => "refused",
    }
}

const EXPLAIN: &[Column] = &[
    Column("TARGET", "target"),
    Column("CLASS", "class"),
    Column("PATH", "path"),
    Column("GROUP", "group"),
    Column("LIMITS", "limits"),
    Column("REVISION", "envelope_revision"),
    Column("SET BY", "set.by"),
    Column("SET UNTIL", "set.until"),
    Column("BLOCKED", "blocked"),
];
const BUDGET: &[Column] = &[
    Column("TARGET", "target"),
    Column("STATE", "state"),
    Column("READY AT", "ready_at"),
    Column("LIMITS", "limits"),
    Column("REVISION", "envelope_revision"),
    Column("SET BY", "set.by"),
    Column("SET UNTIL", "set.until"),
];
const TARGETS: &[Column] = &[
    Column("TARGET", "target"),
    Column("STATE", "state"),
    Column("READY AT", "ready_at"),
    Column("WAITING", "tasks_waiting"),
    Column("CALLS", "calls"),
    Column("LIMITS", "limits"),
    Column("PAUSE", "pause.reason"),
    Column("HELD BY", "hold.by"),
    Column("HOLD", "hold.note"),
    Column("DENIED BY", "denied.by"),
    Column("SET BY", "set.by"),
    Column("SET UNTIL", "set.until"),
];
const TASK_COUNTS: &[Column] = &[
    Column("STATE", "state"),
    Column("OUTCOME", "outcome"),
    Column("TASKS", "tasks"),
];
const TASK_LIST: &[Column] = &[
    Column("ID", "id"),
    Column("STATE", "state"),
    Column("OUTCOME", "outcome"),
    Column("CAUSE", "cause"),
    Column("UNTIL", "until"),
    Column("TARGET", "target"),
    Column("URL", "url"),
    Column("AGENT", "agent"),
    Column("ATTEMPTS", "attempts"),
    Column("DEFERRALS", "deferrals"),
    Column("ERROR", "error"),
];
const RESULTS: &[Column] = &[
    Column("ID", "id"),
    Column("OUTCOME", "outcome"),
    Column("STATUS", "status"),
    Column("URL", "url"),
    Column("COMPLETED", "completed_at"),
    Column("ERROR", "error"),
];
const COPIED: &[Column] = &[
    Column("COPY", "copy"),
    Column("SEGMENTS", "segments"),
    Column("DAYS", "days"),
    Column("BYTES", "bytes"),
    Column("OPEN", "open"),
];
const EVENTS: &[Column] = &[
    Column("AT", "at"),
    Column("KIND", "kind"),
    Column("TARGET", "target"),
    Column("NAME", "name"),
    Column("AGENT", "agent"),
    Column("STEP", "step"),
    Column("METHOD", "method"),
    Column("PATH", "path"),
    Column("END", "end"),
    Column("STATUS", "status"),
    Column("CAUSE", "cause"),
    Column("COUNT", "count"),
    Column("REVISION", "envelope_revision"),
];
const DECISIONS: &[Column] = &[
    Column("AT", "at"),
    Column("DECISION", "decision"),
    Column("TARGET", "target"),
    Column("AGENT", "agent"),
    Column("TRAJECTORY", "trajectory"),
    Column("STEP", "step"),
    Column("REVISION", "envelope_revision"),
    Column("BY", "by"),
    Column("WHY", "why"),
];
const WINDOWS: &[Column] = &[
    Column("FROM", "start"),
    Column("TARGET", "target"),
    Column("CALLS", "calls"),
    Column("THROTTLED", "throttled"),
    Column("FAILED", "failed"),
    Column("DEFERRALS", "deferrals"),
    Column("REFUSALS", "refusals"),
    Column("BYTES", "bytes"),
    Column("ENVELOPES", "envelopes"),
];
const WHO: &[Column] = &[
    Column("AGENT", "agent"),
    Column("TRAJECTORY", "trajectory"),
    Column("STEP", "step"),
    Column("GOAL", "goal"),
    Column("TARGET", "target"),
    Column("CALLS", "calls"),
    Column("THROTTLED", "throttled"),
    Column("DEFERRALS", "deferrals"),
    Column("RETRIES", "retries"),
    Column("REPEATS", "repeats"),
    Column("TARGETS", "targets"),
    Column("BYTES", "bytes"),
];
const ENVELOPES: &[Column] = &[
    Column("REVISION", "envelope_revision"),
    Column("IN FORCE FROM", "in_force_since"),
    Column("LIMITS", "limits"),
    Column("AUTHOR", "layers.author"),
    Column("SOURCE", "layers.source"),
    Column("AS OF", "layers.as_of"),
    Column("NOTE", "layers.note"),
];
