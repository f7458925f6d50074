//! The commands. Data goes to stdout, words for people to stderr.

mod acts;
mod answer;
mod args;
mod ask;
mod change;
mod check;
mod drill;
mod dry_run;
mod gate;
mod handbook;
mod init;
mod keeper;
mod keeping;
mod never;
mod picking;
mod progress;
mod reload;
mod run;
mod show;
mod signals;
mod spans;
mod status;
mod store;
mod submit;
mod table;
mod task_file;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// An error.
    Error,
    /// The command line, the configuration or the task file is wrong.
    Usage,
    /// Finished, but some tasks have no answer.
    Unanswered,
    /// Stopped with tasks still deferred.
    Deferred,
    /// Stopped by a signal, its number given; state saved.
    Signal(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Error => 1,
            Exit::Usage => 2,
            Exit::Unanswered => 3,
            Exit::Deferred => 75,
            Exit::Signal(number) => 128 + number,
        })
    }
}

/// Why a command ended early.
#[derive(Debug)]
struct Failure {
    exit: Exit,
    words: String,
}

impl Failure {
    fn usage(words: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            words: words.to_string(),
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            exit: Exit::Error,
            words: error.to_string(),
        }
    }
}

fn in_folder(folder: &Path, error: &std::io::Error) -> Failure {
    Failure {
        exit: Exit::Error,
        words: format!("{}: {error}", folder.display()),
    }
}

/// Runs the command of this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            let _ = error.print();
            return exit.into();
        }
    };
    trace();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let exit = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(command(args));
            // A look-up of a name may hang in the system; nothing waits for it.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Failure::from(error)),
    };
    match exit {
        Ok(exit) => exit.into(),
        Err(failure) => {
            show::say(&format!("tidegate: {}", failure.words));
            failure.exit.into()
        }
    }
}

async fn command(args: Args) -> Result<Exit, Failure> {
    let overrides = args.overrides();
    match args.command {
        Command::Run(run) => run::run(&overrides, run).await,
        Command::Drill(drill) => drill::drill(drill).await,
        Command::Check(check) => check::check(&overrides, &check),
        Command::Init(args) => init::init(&overrides, args).await,
        Command::Completions { shell } => Ok(handbook::completions(shell)),
        Command::Man { command } => handbook::man(&command),
        other => ask::command(&overrides, other).await,
    }
}

/// Spans and events to stderr, as `RUST_LOG` asks; warnings otherwise.
fn trace() {
    let filter =
        tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A program around this one may have set its own.
    let _ = subscriber
        .with_ansi(colours && std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init();
}
