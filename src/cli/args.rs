//! The command line as it is typed.

mod by_hand;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(super) use by_hand::{
    CancelArgs, HoldArgs, ReleaseArgs, ResetName, RetryArgs, SetArgs, Signed, TasksAct, WaitingName,
};

use super::keeping::Keeping;
use super::picking::Picking;
use super::spans;
use crate::config::Overrides;

/// One gate for every outbound call of a swarm of agents.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, max_term_width = 100)]
pub(super) struct Args {
    /// The configuration file [default: $TIDEGATE_CONFIG, ./tidegate.toml, the XDG config folder]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder of the record [default: the file's `store`, or the XDG state folder]
    #[arg(long, global = true, value_name = "DIR")]
    store: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: Command,
}

impl Args {
    pub(super) fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            store: self.store.clone(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a file of tasks through the gate; started again, it resumes
    #[command(after_help = super::run::EXAMPLES)]
    Run(RunArgs),
    /// How far, what is stuck and why
    #[command(after_help = "Example:\n  tidegate status --json")]
    Status(Output),
    /// What holds for a URL, and where it comes from; sends nothing
    #[command(
        after_help = "Example:\n  tidegate explain https://api.github.com/search/code --method GET"
    )]
    Explain(ExplainArgs),
    /// What is left at a target, and when it refills; takes nothing
    #[command(
        after_help = "Example:\n  tidegate budget https://api.github.com 'https://api.github.com#search'"
    )]
    Budget(BudgetArgs),
    /// Every target known now, with its state
    #[command(after_help = "Example:\n  tidegate targets")]
    Targets(Output),
    /// Tasks by state, or listed; called off, or asked for again
    #[command(after_help = "Example:\n  tidegate tasks --list --state backoff")]
    Tasks(TasksArgs),
    /// The results of a run, from the store: what `results.jsonl` holds, or held
    #[command(after_help = "Example:\n  tidegate results --out crawl --json > results.jsonl")]
    Results(ResultsArgs),
    /// Let calls to a target, a pool or a group wait
    #[command(
        after_help = "Example:\n  tidegate hold https://example.org --for 2h --by ana --note 'their operator called'"
    )]
    Hold(HoldArgs),
    /// Refuse calls to a target, a pool or a group: its tasks end as `refused`
    #[command(
        after_help = "Example:\n  tidegate deny https://example.org --by ana --note 'they asked us to stay away'"
    )]
    Deny(HoldArgs),
    /// Put other limits in place of a target's for a while
    ///
    /// The limits given replace all limits of the host, or of a class where one is named
    /// (`https://api.github.com#search`), or of `pool:NAME` or `group:NAME`; those of the others
    /// still hold beside them. What was spent stays spent. At the end the rules of the file hold
    /// again.
    #[command(
        after_help = "Example:\n  tidegate set https://example.org --max 6/min --for 7d --by ana --note 'until their migration is over'"
    )]
    Set(SetArgs),
    /// Take back every manual change of a target: hold, deny and set
    #[command(
        after_help = "Example:\n  tidegate release https://example.org --by ana --note 'agreed'"
    )]
    Release(ReleaseArgs),
    /// The record
    #[command(subcommand)]
    Audit(AuditCommand),
    /// The folder of the record
    #[command(subcommand)]
    Store(super::store::StoreCommand),
    /// Check the configuration, and a file of tasks; sends nothing
    #[command(after_help = "Example:\n  tidegate check urls.jsonl")]
    Check(CheckArgs),
    /// A first configuration file, made of what was seen so far
    ///
    /// Each host that got calls becomes a [[target]] with the limits that were in force. Where it
    /// refused calls all the same, a comment suggests what it tolerated: the most calls of a minute
    /// without a refusal, among minutes with fewer calls than the quietest one with a refusal.
    #[command(after_help = "Example:\n  tidegate init --out tidegate.toml")]
    Init(InitArgs),
    /// Completions for a shell, on stdout
    #[command(
        after_help = "Example:\n  tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// A page of the manual in roff, on stdout: of the program, or of one of its commands
    #[command(
        after_help = "Example:\n  tidegate man > ~/.local/share/man/man1/tidegate.1\n  tidegate man tasks retry | man -l -"
    )]
    Man {
        /// The command, with what it is part of: `tasks retry`
        command: Vec<String>,
    },
    /// A swarm of agents against loopback targets; needs no network
    #[command(after_help = "Example:\n  tidegate drill --seconds 20")]
    Drill(DrillArgs),
}

#[derive(Debug, Clone, Copy, ClapArgs)]
pub(super) struct Output {
    /// One JSON object a line
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RunArgs {
    /// A file of tasks, one a line: a URL, or a JSON object with a `url`; `-` reads stdin
    pub(super) tasks: PathBuf,
    /// Where results and bodies go
    #[arg(long, value_name = "DIR", default_value = "tidegate-out")]
    pub(super) out: PathBuf,
    /// Calls under way at once, over all targets
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = spans::at_least_one)]
    pub(super) concurrency: usize,
    /// Stop after this long, whatever is left (exit 75)
    #[arg(long, value_name = "SPAN", value_parser = spans::span)]
    pub(super) deadline: Option<Duration>,
    /// Count bad lines instead of stopping at them
    #[arg(long)]
    pub(super) skip_bad: bool,
    /// Tell when it could end and which target bounds it; send nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: as a JSON object
    #[arg(long, requires = "dry_run")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) keeping: Keeping,
    #[command(flatten)]
    pub(super) picking: Picking,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ExplainArgs {
    /// The URL of a call
    pub(super) url: String,
    /// Its method
    #[arg(long, default_value = "GET")]
    pub(super) method: String,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(super) struct BudgetArgs {
    /// URLs or targets; every known target when none is named
    pub(super) targets: Vec<String>,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct TasksArgs {
    #[command(subcommand)]
    pub(super) act: Option<TasksAct>,
    /// List tasks instead of counting them
    #[arg(long)]
    pub(super) list: bool,
    /// Only tasks in this state
    #[arg(long, value_enum)]
    pub(super) state: Option<StateName>,
    /// Only complete tasks that ended so
    #[arg(long, value_enum)]
    pub(super) outcome: Option<OutcomeName>,
    /// Only tasks of this target
    #[arg(long, value_name = "TARGET")]
    pub(super) target: Option<String>,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum StateName {
    Queued,
    Running,
    Backoff,
    Complete,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum OutcomeName {
    Succeeded,
    Answered,
    Failed,
    Ambiguous,
    Expired,
    Cancelled,
    Refused,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ResultsArgs {
    /// The output folder of the run
    #[arg(long, value_name = "DIR", default_value = "tidegate-out")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Everything on record, in the order in which it became known
    #[command(
        after_help = "Example:\n  tidegate audit events --target https://example.org --from 2026-12-01"
    )]
    Events(AuditArgs),
    /// What was decided: grants, deferrals, refusals, pauses, changes by hand
    #[command(after_help = "Example:\n  tidegate audit decisions --agent scout --json")]
    Decisions(AuditArgs),
    /// Sums per target and window, beside the envelope
    ///
    /// A call counts in the window in which it left. Deferrals are counted by the minute, and
    /// stand in the window of the first of them.
    #[command(
        after_help = "Example:\n  tidegate audit windows --width 1min --target https://example.org"
    )]
    Windows(WindowsArgs),
    /// Which agent, trajectory or step caused the pressure
    #[command(after_help = "Example:\n  tidegate audit who --by trajectory")]
    Who(WhoArgs),
    /// Every envelope that was ever in force, and where it came from
    #[command(after_help = "Example:\n  tidegate audit envelopes --json")]
    Envelopes(Output),
}

#[derive(Debug, ClapArgs)]
pub(super) struct AuditArgs {
    /// Only this target, or the target of this URL
    #[arg(long)]
    pub(super) target: Option<String>,
    /// Only this domain and everything below it
    #[arg(long, value_name = "DOMAIN")]
    pub(super) site: Option<String>,
    /// Only this agent
    #[arg(long)]
    pub(super) agent: Option<String>,
    /// Only this trajectory
    #[arg(long)]
    pub(super) trajectory: Option<String>,
    /// Not before: RFC 3339, a date, or a span back from now such as 2h
    #[arg(long, value_name = "TIME", value_parser = spans::instant)]
    pub(super) from: Option<SystemTime>,
    /// Before: RFC 3339, a date, or a span back from now such as 5min
    #[arg(long, value_name = "TIME", value_parser = spans::instant)]
    pub(super) to: Option<SystemTime>,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(super) struct WindowsArgs {
    /// The width of a window
    #[arg(long, value_name = "SPAN", default_value = "1min", value_parser = spans::window)]
    pub(super) width: Duration,
    #[command(flatten)]
    pub(super) audit: AuditArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct WhoArgs {
    /// Grouped by what
    #[arg(long, value_enum, default_value_t = ByName::Agent)]
    pub(super) by: ByName,
    #[command(flatten)]
    pub(super) audit: AuditArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ByName {
    Agent,
    Trajectory,
    Step,
    Goal,
    Target,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CheckArgs {
    /// A file of tasks; `-` reads stdin
    pub(super) tasks: Option<PathBuf>,
    #[command(flatten)]
    pub(super) picking: Picking,
    /// One JSON object a line: what is wrong, then the counts
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct InitArgs {
    /// Write it there instead of to stdout; a file that is there is left as it is
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// The hosts with most calls, so many of them
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = spans::at_least_one)]
    pub(super) top: usize,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DrillArgs {
    /// About how long the swarm works
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(3..=600))]
    pub(super) seconds: u64,
    /// Agents in the swarm
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) agents: u64,
    /// Keep the record here instead of throwing it away
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: Output,
}
