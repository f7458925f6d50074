//! The gate as a process: started, watched, killed, started again.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::settings::Settings;

const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");
const BREATH: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Gate {
    folder: PathBuf,
    concurrency: usize,
    child: Child,
    said: Receiver<String>,
    memory: Memory,
    started: Instant,
}

impl Gate {
    pub fn start(folder: &Path, settings: &Settings) -> Self {
        let (child, said) = spawn(folder, settings.concurrency);
        let now = Instant::now();
        Self {
            folder: folder.to_owned(),
            concurrency: settings.concurrency,
            child,
            said,
            memory: Memory::new(now),
            started: now,
        }
    }

    /// False when it ended before.
    pub fn lives_until(&mut self, at: Instant, mut meanwhile: impl FnMut()) -> bool {
        while Instant::now() < at {
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            self.memory.sample(self.child.id());
            meanwhile();
            std::thread::sleep(BREATH);
        }
        true
    }

    /// Waits for its end.
    pub fn ends(&mut self, mut meanwhile: impl FnMut()) -> ExitStatus {
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            self.memory.sample(self.child.id());
            meanwhile();
            std::thread::sleep(BREATH);
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
        println!("{:>6.0} s killed", self.started.elapsed().as_secs_f64());
    }

    pub fn restart(&mut self) {
        (self.child, self.said) = spawn(&self.folder, self.concurrency);
    }

    /// Tells it to read its configuration anew; true when it says that it has.
    pub fn reload(&mut self) -> bool {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-HUP", &id]).status();
        assert!(told.expect("kill").success(), "it is there");
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.said.recv_timeout(BREATH) {
                Ok(line) if line.contains("read anew") => {
                    println!("{:>6.0} s {line}", self.started.elapsed().as_secs_f64());
                    return true;
                }
                _ => {}
            }
        }
        println!("the reload is not confirmed within {PATIENCE:?}");
        false
    }

    /// Copies its record while it runs, and reads the copy.
    pub fn copy(&self, to: &Path) {
        let began = Instant::now();
        let copied = self.command(&["store", "copy", &to.display().to_string()]);
        assert!(copied.success(), "a copy");
        let took = began.elapsed();
        let read = Command::new(TIDEGATE)
            .args(["audit", "who", "--by", "agent", "--json", "--store"])
            .arg(to)
            .stdout(Stdio::null())
            .status();
        assert!(
            read.expect("a command").success(),
            "a copy that can be read"
        );
        println!(
            "{:>6.0} s copied in {took:.1?}, and read",
            self.started.elapsed().as_secs_f64()
        );
        std::fs::remove_dir_all(to).expect("a copy");
    }

    fn command(&self, words: &[&str]) -> ExitStatus {
        Command::new(TIDEGATE)
            .args(words)
            .arg("--store")
            .arg(self.folder.join("store"))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .status()
            .expect("a command")
    }

    /// How many calls are on record that may have arrived.
    pub fn calls_on_record(&mut self) -> usize {
        let mut audit = Command::new(TIDEGATE)
            .args(["audit", "who", "--by", "agent", "--json", "--store"])
            .arg(self.folder.join("store"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a command");
        let rows = BufReader::new(audit.stdout.take().expect("its output")).lines();
        let calls = rows.map(|row| {
            let row: serde_json::Value = serde_json::from_str(&row.expect("a row")).expect("a row");
            row["calls"].as_u64().expect("a count") as usize
        });
        let calls = calls.sum();
        audit.wait().expect("a command");
        calls
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

fn spawn(folder: &Path, concurrency: usize) -> (Child, Receiver<String>) {
    let log = folder.join("stderr.txt");
    let mut child = Command::new(TIDEGATE)
        .arg("run")
        .arg(folder.join("tasks.txt"))
        .arg("--out")
        .arg(folder.join("out"))
        .args(["--concurrency", &concurrency.to_string()])
        .arg("--store")
        .arg(folder.join("store"))
        .arg("--config")
        .arg(folder.join("tidegate.toml"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the gate");
    let said = BufReader::new(child.stderr.take().expect("its words"));
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        use std::io::Write as _;
        let mut log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a log");
        for line in said.lines().map_while(Result::ok) {
            writeln!(log, "{line}").expect("a log");
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    (child, receiver)
}

/// What the gate's memory was, over time.
pub struct Memory {
    began: Instant,
    /// Seconds, and kilobytes resident.
    samples: Vec<(f64, u64)>,
}

impl Memory {
    fn new(began: Instant) -> Self {
        Self {
            began,
            samples: Vec::new(),
        }
    }

    fn sample(&mut self, process: u32) {
        let at = self.began.elapsed().as_secs_f64();
        if self.samples.last().is_some_and(|(last, _)| at - last < 1.0) {
            return;
        }
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        if let Some(resident) = resident {
            self.samples.push((at, resident));
        }
    }

    /// The most in each tenth of the time.
    pub fn print(&self) {
        let Some((last, _)) = self.samples.last() else {
            return;
        };
        let tenths: Vec<String> = (0..10)
            .map(|tenth| {
                let from = last * f64::from(tenth) / 10.0;
                let to = last * f64::from(tenth + 1) / 10.0;
                let within = self
                    .samples
                    .iter()
                    .filter(|(at, _)| (from..=to).contains(at));
                let most = within.map(|(_, resident)| *resident).max().unwrap_or(0);
                format!("{}", most / 1024)
            })
            .collect();
        println!(
            "memory, the most in each tenth of the time: {} MB",
            tenths.join(" ")
        );
    }
}
