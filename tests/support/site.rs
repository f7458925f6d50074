//! The gate as it is used: the built program, in a folder of its own.

mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use process::{Process, Said};

/// Longer than anything takes on a busy machine, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for what others are about to do.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A folder with a configuration, a task file, a store and an output folder.
pub struct Site {
    folder: tempfile::TempDir,
    runs: AtomicUsize,
}

impl Site {
    /// A folder whose configuration opens loopback and goes on with `rules`.
    pub fn new(rules: &str) -> Self {
        let site = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            runs: AtomicUsize::new(0),
        };
        site.configure(rules);
        site
    }

    /// Replaces the configuration.
    pub fn configure(&self, rules: &str) {
        let head = "store = \"store\"\nallow_private = [\"127.0.0.0/8\"]\nmin_free = \"0B\"\n";
        self.write("tidegate.toml", &format!("{head}{rules}"));
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file below the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Where the record lies.
    pub fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// Writes a file below the folder.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder can be written");
    }

    /// Writes `tasks.jsonl`, one line for each task.
    pub fn tasks<T: ToString>(&self, lines: impl IntoIterator<Item = T>) {
        let lines = lines.into_iter().map(|line| line.to_string() + "\n");
        self.write("tasks.jsonl", &lines.collect::<String>());
    }

    /// The program with these arguments, with nothing of this process's surroundings that it
    /// would listen to.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(args).current_dir(self.folder());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["TIDEGATE_", "XDG_", "RUST_LOG", "NO_COLOR"]
                .iter()
                .any(|start| name.starts_with(start))
            {
                command.env_remove(&*name);
            }
        }
        command.env("HOME", self.folder()).env("USER", "tester");
        command.stdin(Stdio::null());
        command
    }

    /// Starts the program in the background.
    pub fn start(&self, args: &[&str]) -> Process {
        self.launch(self.command(args))
    }

    /// Starts a command made by [`Self::command`].
    pub fn launch(&self, command: Command) -> Process {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        Process::start(command, &self.path(&format!("said-{number}")))
    }

    /// Starts `run` on the task file, resuming what there is.
    pub fn run(&self) -> Process {
        self.start(&["run", "tasks.jsonl", "--out", "out"])
    }

    /// Runs the program to its end.
    pub fn say(&self, args: &[&str]) -> Said {
        self.start(args).end()
    }

    /// The rows of a command that succeeds, asked for as JSON.
    pub fn rows(&self, args: &[&str]) -> Vec<Value> {
        let mut args = args.to_vec();
        args.push("--json");
        let said = self.say(&args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        said.rows()
    }

    /// The one row of a command.
    pub fn row(&self, args: &[&str]) -> Value {
        let mut rows = self.rows(args);
        assert_eq!(rows.len(), 1, "{args:?}: {rows:?}");
        rows.remove(0)
    }

    /// What `results.jsonl` holds; every line must be whole.
    pub fn results(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("out/results.jsonl")).expect("there are results");
        assert!(text.is_empty() || text.ends_with('\n'), "half a line");
        let read = |line| serde_json::from_str(line).expect("a line of JSON");
        text.lines().map(read).collect()
    }

    /// What a running gate tells of its control port.
    pub fn control(&self) -> Option<Value> {
        let text = fs::read_to_string(self.path("store/control.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Waits until the gate `process` can be asked.
    pub fn until_open(&self, process: &mut Process) {
        eventually("the gate opens its control port", || {
            assert!(process.is_running(), "it ended: {}", process.said_so_far());
            let pid = self.control().and_then(|control| control["pid"].as_u64());
            pid == Some(process.id().into())
        });
    }
}

impl Drop for Site {
    /// A test that failed leaves its folder to be looked at.
    fn drop(&mut self) {
        if thread::panicking() {
            self.folder.disable_cleanup(true);
            println!("left as it was: {}", self.folder().display());
        }
    }
}

/// The text of a row's field.
pub fn text<'r>(row: &'r Value, field: &str) -> &'r str {
    row[field].as_str().unwrap_or_default()
}
