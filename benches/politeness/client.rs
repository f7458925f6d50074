//! Who fetches the list.

use std::fmt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const SPIDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/politeness/spider.py");

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Tidegate,
    /// Told each host's rate.
    ScrapyInformed,
    /// With its own way of finding a rate.
    ScrapyAutoThrottle,
    /// As it comes.
    ScrapyDefault,
}

/// How a client ended.
pub enum Ended {
    Well,
    Badly(ExitStatus),
    /// It was stopped: it took too long.
    Late,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Well => Ok(()),
            Self::Badly(status) => write!(f, "  ({status})"),
            Self::Late => f.write_str("  (stopped: too late)"),
        }
    }
}

impl Client {
    pub const ALL: [Self; 4] = [
        Self::Tidegate,
        Self::ScrapyInformed,
        Self::ScrapyAutoThrottle,
        Self::ScrapyDefault,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Tidegate => "tidegate",
            Self::ScrapyInformed => "scrapy-informed",
            Self::ScrapyAutoThrottle => "scrapy-autothrottle",
            Self::ScrapyDefault => "scrapy-default",
        }
    }

    /// Fetches the list in `folder`, for so long at most.
    pub fn run(self, folder: &Path, patience: Duration) -> Ended {
        let mut command = if self == Self::Tidegate {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
            command.args(["run", "urls.txt", "--config", "tidegate.toml"]);
            command.args(["--store", "store", "--out", "out"]);
            command
        } else {
            let mut command = Command::new(python());
            command.args([SPIDER, self.name()]);
            command
        };
        for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        let log = std::fs::File::create(folder.join("log")).expect("a log");
        let mut child = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a client");
        let began = Instant::now();
        while began.elapsed() < patience {
            if let Some(status) = child.try_wait().expect("a child") {
                if status.success() {
                    return Ended::Well;
                }
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                let tail: Vec<_> = log.lines().rev().take(5).collect();
                eprintln!("{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
                return Ended::Badly(status);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        child.kill().expect("a child");
        child.wait().expect("a child");
        Ended::Late
    }
}

/// The Python that has Scrapy: `PYTHON`, or the one on the path.
fn python() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Its version, or what to do.
pub fn scrapy() -> Result<(), String> {
    let advice = "`pip install scrapy` (or the Debian package python3-scrapy), \
                  and name its interpreter in PYTHON if it is not `python3`";
    let version = Command::new(python())
        .args(["-c", "import scrapy; print(scrapy.__version__)"])
        .stderr(Stdio::null())
        .output();
    match version {
        Ok(output) if output.status.success() => {
            println!("Scrapy {}", String::from_utf8_lossy(&output.stdout).trim());
            Ok(())
        }
        _ => Err(format!("{} cannot import it; {advice}", python())),
    }
}
