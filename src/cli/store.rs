//! `store`: what is done with the folder of the record.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::Output;

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// A whole copy of the record, without tasks and results, while a gate runs or not
    #[command(
        after_help = "Example:\n  tidegate store copy evidence && tidegate audit events --store evidence"
    )]
    Copy(CopyArgs),
}

#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// A folder that is missing or empty
    #[arg(value_name = "DEST")]
    pub(super) to: PathBuf,
    #[command(flatten)]
    pub(super) output: Output,
}
