//! What a person types to change something by hand.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{OutcomeName, Output, spans};
use crate::budget::Frequency;

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct HoldArgs {
    /// A target, a URL, pool:NAME or group:NAME
    pub(in crate::cli) target: String,
    /// For how long [default: until `release`]
    #[arg(long = "for", value_name = "SPAN", value_parser = spans::span)]
    pub(in crate::cli) span: Option<Duration>,
    #[command(flatten)]
    pub(in crate::cli) signed: Signed,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, ClapArgs)]
#[command(group(clap::ArgGroup::new("limit").required(true).multiple(true).args(["max", "rate", "quota"])))]
pub(in crate::cli) struct SetArgs {
    /// A target, a URL, pool:NAME or group:NAME
    pub(in crate::cli) target: String,
    /// Never more than so many in ANY such period: N/s, N/min, N/h, N/day or N/3s
    #[arg(long, value_name = "N/PERIOD")]
    pub(in crate::cli) max: Option<Frequency>,
    /// A token bucket, for a target known to be one
    #[arg(long, value_name = "N/PERIOD", conflicts_with = "max")]
    pub(in crate::cli) rate: Option<Frequency>,
    /// How many of --max or --rate may go at once [default: 1]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) burst: Option<NonZeroU32>,
    /// A count for a long period, not paced
    #[arg(long, value_name = "N/PERIOD", requires = "reset")]
    pub(in crate::cli) quota: Option<Frequency>,
    /// When the count of --quota starts anew
    #[arg(long, value_enum, requires = "quota")]
    pub(in crate::cli) reset: Option<ResetName>,
    /// For how long
    #[arg(long = "for", value_name = "SPAN", value_parser = spans::span)]
    pub(in crate::cli) span: Duration,
    #[command(flatten)]
    pub(in crate::cli) signed: Signed,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum ResetName {
    /// At midnight UTC, or the like for another period
    #[value(name = "UTC", alias = "utc")]
    Utc,
    /// Each call counts for a whole period
    Rolling,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ReleaseArgs {
    /// A target, a URL, pool:NAME or group:NAME
    pub(in crate::cli) target: String,
    #[command(flatten)]
    pub(in crate::cli) signed: Signed,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Signed {
    /// Who says so
    #[arg(long, value_name = "NAME", env = "USER", default_value = "operator")]
    pub(in crate::cli) by: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(in crate::cli) note: String,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TasksAct {
    /// Call tasks off that are not complete: they end as `cancelled`
    ///
    /// A call that is under way cannot be undone, and its task is left alone.
    #[command(
        after_help = "Example:\n  tidegate tasks cancel --target https://example.org --state backoff"
    )]
    Cancel(CancelArgs),
    /// Have complete tasks done once more by the next `run` of their list
    ///
    /// What a task sends is kept no longer than until it is complete, so the list must still have
    /// it: run the same file again. The task begins anew, attempts and all; its second result
    /// follows in results.jsonl, where the last line of an id counts.
    #[command(
        after_help = "Example:\n  tidegate tasks retry --outcome failed && tidegate run urls.jsonl --out crawl"
    )]
    Retry(RetryArgs),
}

#[derive(Debug, ClapArgs)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["ids", "state", "target", "all"])))]
pub(in crate::cli) struct CancelArgs {
    /// Tasks by their ids
    pub(in crate::cli) ids: Vec<String>,
    /// Only tasks in this state
    #[arg(long, value_enum)]
    pub(in crate::cli) state: Option<WaitingName>,
    /// Only tasks of this target
    #[arg(long, value_name = "TARGET")]
    pub(in crate::cli) target: Option<String>,
    /// Every task that is not complete, but for those whose call is under way
    #[arg(long, conflicts_with = "ids")]
    pub(in crate::cli) all: bool,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, ClapArgs)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["ids", "outcome", "target", "all"])))]
pub(in crate::cli) struct RetryArgs {
    /// Tasks by their ids
    pub(in crate::cli) ids: Vec<String>,
    /// Only complete tasks that ended so
    #[arg(long, value_enum)]
    pub(in crate::cli) outcome: Option<OutcomeName>,
    /// Only tasks of this target
    #[arg(long, value_name = "TARGET")]
    pub(in crate::cli) target: Option<String>,
    /// Every complete task that did not succeed
    #[arg(long, conflicts_with = "ids")]
    pub(in crate::cli) all: bool,
    /// Also tasks of which nobody knows whether they were executed: they may be executed twice
    #[arg(long)]
    pub(in crate::cli) ambiguous: bool,
    #[command(flatten)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum WaitingName {
    Queued,
    Backoff,
}
