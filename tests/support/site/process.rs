//! A process of the program: started, signalled, killed, and what it said.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::PATIENCE;

/// A process; killed when dropped. What it says goes to files, so that it is never held up.
pub struct Process {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// What a process that ended had said.
#[derive(Debug)]
pub struct Said {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Said {
    /// The output's lines as JSON.
    pub fn rows(&self) -> Vec<Value> {
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        self.out.lines().map(read).collect()
    }

    /// Asserts the exit code, showing what was said.
    pub fn with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

impl Process {
    pub(super) fn start(mut command: Command, said: &Path) -> Self {
        let (out, err) = (said.with_extension("out"), said.with_extension("err"));
        let create = |path| File::create(path).expect("the folder can be written");
        let child = command
            .stdout(create(&out))
            .stderr(create(&err))
            .spawn()
            .expect("the program starts");
        Self { child, out, err }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// True until it has ended.
    pub fn is_running(&mut self) -> bool {
        let ended = self.child.try_wait().expect("a child can be waited for");
        ended.is_none()
    }

    /// What it has said on standard error.
    pub fn said_so_far(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// Sends a signal: `INT`, `TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.id())])
            .status()
            .expect("there is a shell");
        assert!(sent.success());
    }

    /// Kill -9. True if that is what ended it: it was still running.
    pub fn kill(mut self) -> bool {
        self.child.kill().expect("a child can be killed");
        let status = self.child.wait().expect("a child can be waited for");
        let said = self.said_so_far();
        assert!(!said.contains("panicked"), "{said}");
        status.signal() == Some(9)
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let status = self.wait();
        let read = |path| fs::read_to_string(path).expect("what it said is there");
        let (out, err) = (read(&self.out), read(&self.err));
        let status = status.unwrap_or_else(|| panic!("it hangs: {out}\n{err}"));
        Said {
            code: status.code(),
            out,
            err,
        }
    }

    fn wait(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
