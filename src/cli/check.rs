//! `check`: the configuration and a task file, everything wrong with them at
//! once, nothing sent.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::json;

use super::args::CheckArgs;
use super::picking::Picking;
use super::show::{Rows, say};
use super::{Exit, Failure, gate, never};
use crate::clock::{Clock as _, SystemClock, wall_offset};
use crate::config::{Config, Overrides};
use crate::schedule::list::{Checked, check as check_list};

pub(super) fn check(overrides: &Overrides, args: &CheckArgs) -> Result<Exit, Failure> {
    let config = gate::config(overrides);
    let list = |path| List::checked(path, &args.picking);
    let tasks = args.tasks.as_deref().map(list).transpose();
    match &config {
        Ok(config) => match &config.source.path {
            Some(path) => say(&format!("{}: no errors", path.display())),
            None => say("no configuration file: the built-in defaults hold"),
        },
        Err(failure) => say(&failure.words),
    }
    let tasks = match tasks {
        Ok(checked) => checked,
        Err(failure) if config.is_ok() => return Err(failure),
        Err(failure) => {
            say(&failure.words);
            return Ok(Exit::Usage);
        }
    };
    let bad = tasks
        .as_ref()
        .is_some_and(|(_, checked)| checked.bad_count > 0);
    if let Some((list, checked)) = &tasks {
        if let Ok(config) = &config {
            list.warn(config)?;
        }
        report(list.path, checked);
    }
    if args.json {
        let config = config.as_ref().err().map(|failure| &*failure.words);
        rows(
            config,
            tasks.as_ref().map(|(list, checked)| (list.path, checked)),
        );
    }
    Ok(if bad || config.is_err() {
        Exit::Usage
    } else {
        Exit::Done
    })
}

/// What was said, for a program: each fault, and the counts at the end.
fn rows(config: Option<&str>, list: Option<(&Path, &Checked)>) {
    let mut rows = Rows::Json;
    for message in config.into_iter().flat_map(str::lines) {
        rows.add(&json!({"kind": "configuration", "message": message}));
    }
    let Some((path, checked)) = list else { return };
    for kind in &checked.kinds {
        rows.add(&json!({
            "kind": "bad_line",
            "file": path,
            "line": kind.first.line,
            "field": kind.first.field,
            "message": kind.first.message,
            "lines": kind.count,
        }));
    }
    rows.add(&json!({
        "kind": "list",
        "file": path,
        "tasks": checked.tasks,
        "duplicates": checked.duplicates,
        "bad_lines": checked.bad_count,
    }));
}

/// A list of tasks that is read twice.
struct List<'p> {
    path: &'p Path,
    picking: &'p Picking,
    /// What a pipe gave, which gives it only once.
    piped: Option<Vec<u8>>,
}

impl<'p> List<'p> {
    fn of(path: &'p Path, picking: &'p Picking) -> Result<Self, Failure> {
        let mut file = open(path)?;
        let mut piped = None;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            let mut bytes = Vec::new();
            let read = file.read_to_end(&mut bytes);
            read.map_err(|error| unreadable(path, &error))?;
            piped = Some(bytes);
        }
        Ok(Self {
            path,
            picking,
            piped,
        })
    }

    fn checked(path: &'p Path, picking: &'p Picking) -> Result<(Self, Checked), Failure> {
        let list = Self::of(path, picking)?;
        let checked = read(list.reader()?, path, picking)?;
        Ok((list, checked))
    }

    fn reader(&self) -> Result<Box<dyn Read + '_>, Failure> {
        Ok(match &self.piped {
            Some(bytes) => Box::new(bytes.as_slice()),
            None => Box::new(open(self.path)?),
        })
    }

    fn warn(&self, config: &Config) -> Result<(), Failure> {
        let clock = SystemClock::resumed(None);
        let list = BufReader::with_capacity(1 << 20, self.reader()?);
        self.picking.reading(wall_offset(&clock), |context| {
            never::warn(list, self.path, config, context, clock.now());
        });
        Ok(())
    }
}

/// Reads a whole task file, called `path` in what is said of it.
pub(super) fn read(file: impl Read, path: &Path, picking: &Picking) -> Result<Checked, Failure> {
    let offset = wall_offset(&SystemClock::resumed(None));
    let reader = BufReader::with_capacity(1 << 20, file);
    picking
        .reading(offset, |context| check_list(reader, context))
        .map_err(|error| unreadable(path, &error))
}

pub(super) fn open(path: &Path) -> Result<File, Failure> {
    // `-` is standard input, as for `run`.
    let from = if path.as_os_str() == "-" {
        Path::new("/dev/stdin")
    } else {
        path
    };
    let file = File::open(from).map_err(|error| unreadable(path, &error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(Failure::usage(format!(
            "{} is a folder, not a file of tasks",
            path.display()
        ))),
        _ => Ok(file),
    }
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()))
}

/// Says what is wrong with a task file, and how much there is in it.
pub(super) fn report(path: &Path, checked: &Checked) {
    let path_shown = path.display();
    for kind in &checked.kinds {
        say(&format!("{path_shown}: {kind}"));
    }
    let shown: usize = checked.kinds.iter().map(|kind| kind.count).sum();
    if checked.bad_count > shown {
        let more = checked.bad_count - shown;
        say(&format!(
            "{path_shown}: {more} more bad lines, of other kinds"
        ));
    }
    say(&format!(
        "{path_shown}: {} tasks, {} lines that ask for one of them again, {} bad lines",
        checked.tasks, checked.duplicates, checked.bad_count
    ));
    left_out(path, checked);
}

/// Says how many lines nobody asked for.
pub(super) fn left_out(path: &Path, checked: &Checked) {
    if checked.left_out > 0 {
        say(&format!(
            "{}: {} lines left out by --include and --exclude",
            path.display(),
            checked.left_out
        ));
    }
}
