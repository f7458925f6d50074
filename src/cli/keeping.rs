//! What a run makes of the answers it gets, and of those it got before.

use clap::Args as ClapArgs;

use super::spans;
use crate::schedule::OkStatus;

#[derive(Debug, ClapArgs)]
pub(super) struct Keeping {
    /// Statuses of an answer that make a task `succeeded`, such as 200,404,410-419
    ///
    /// Any other final answer makes it `answered`. The exit code does not ask which: 3 is for tasks
    /// without an answer. A listed 408, 425 or 5xx is an answer, where it would be tried again
    /// otherwise; redirects are followed and 429 (and 503 with Retry-After) pauses whatever is
    /// listed. Tasks that are complete stay as they are [default: 200-299,304]
    #[arg(long, value_name = "LIST")]
    pub(super) ok_status: Option<OkStatus>,
    /// Ask again for what is complete, on condition that it has changed
    ///
    /// Every GET and HEAD of the list that is complete is asked once more, with the entity tag and
    /// the date of its last answer (RFC 9110, section 13.1) unless the task has conditions of its
    /// own. A 304 keeps the body of before, a 200 replaces it; either adds a line to
    /// results.jsonl, where the last line of an id counts, for the exit code as well: 3 as long
    /// as the last line of any task of DIR is without an answer. A refresh that was interrupted
    /// goes on when it is started again; the next one starts when everything is done.
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) refresh: bool,
    /// Keep every exchange in WARC files as well, in DIR/warc
    ///
    /// WARC/1.1 (ISO 28500:2017), a gzip member for each record: `warcinfo`, then `response` and
    /// `request` for each answer that arrived, redirects and refusals included. Request headers
    /// that may hold a secret are left out, URLs and bodies are not. An answer whose body would be
    /// kept, but was cut or is larger than `max_body`, is not in them. Bodies are kept as without
    /// it; `max_store` does not count the files in DIR/warc. One that a kill left open is closed by
    /// the next run with this option.
    #[arg(long)]
    pub(super) warc: bool,
    /// Begin another WARC file when one has reached this size
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = spans::size, requires = "warc")]
    pub(super) warc_size: u64,
}
