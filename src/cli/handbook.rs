//! What a shell and `man` know of the command line, made from it.

use std::io::{self, Write as _};

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::args::Args;
use super::{Exit, Failure};

pub(super) fn completions(shell: Shell) -> Exit {
    // Into memory first: its writer takes a closed pipe for a fault of the program.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "tidegate", &mut script);
    show(&script)
}

pub(super) fn man(names: &[String]) -> Result<Exit, Failure> {
    let mut all = Args::command();
    // Only now do commands know what they are part of.
    all.build();
    let mut command = &all;
    for name in names {
        let found = command.find_subcommand(name);
        command = found.ok_or_else(|| Failure::usage(format!("there is no command {name:?}")))?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(show(&page))
}

/// A reader that has left is the end, not an error.
fn show(bytes: &[u8]) -> Exit {
    let _ = io::stdout().write_all(bytes);
    Exit::Done
}
