//! How long, how wide, how rough.

use std::path::PathBuf;
use std::time::Duration;

pub struct Settings {
    pub tasks: usize,
    pub hosts: usize,
    /// Requests a minute and host: the first from the start, each later one by a reload.
    pub rates: Vec<f64>,
    pub kills: usize,
    pub copies: usize,
    pub concurrency: usize,
    pub margin: Duration,
    /// Where the store and everything else goes.
    pub folder: PathBuf,
    pub keep: bool,
}

const HELP: &str = "\
--tasks N        tasks, all GETs                           [20000]
--hosts N        hosts, at most 65536                      [500]
--rates A,B,...  a minute and host; all but the first come with a reload [240,200,260]
--kills N        kill -9, spread over the run              [2]
--copies N       copies of the record while it runs        [1]
--concurrency N  calls under way at once                   [256]
--margin-ms N    how much delays may differ                [300]
--dir DIR        where to work                             [the system's temporary folder]
--keep           leave the folder";

impl Settings {
    /// None when help was asked for.
    pub fn from_arguments() -> Option<Self> {
        let mut settings = Self {
            tasks: 20_000,
            hosts: 500,
            rates: vec![240.0, 200.0, 260.0],
            kills: 2,
            copies: 1,
            concurrency: 256,
            margin: Duration::from_millis(300),
            folder: std::env::temp_dir(),
            keep: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().expect("a value");
            let number = |text: String| text.parse::<usize>().expect("a number");
            match name.as_str() {
                "--tasks" => settings.tasks = number(value()),
                "--hosts" => settings.hosts = number(value()),
                "--kills" => settings.kills = number(value()),
                "--copies" => settings.copies = number(value()),
                "--concurrency" => settings.concurrency = number(value()),
                "--margin-ms" => settings.margin = Duration::from_millis(number(value()) as u64),
                "--rates" => {
                    let rates = value();
                    let rates = rates.split(',').map(|rate| rate.parse().expect("a rate"));
                    settings.rates = rates.collect();
                }
                "--dir" => settings.folder = value().into(),
                "--keep" => settings.keep = true,
                // What `cargo bench` adds.
                "--bench" => {}
                _ => {
                    println!("{HELP}");
                    return None;
                }
            }
        }
        Some(settings)
    }

    /// How long it would take if every host were asked as often as it may be.
    pub fn expected(&self) -> Duration {
        let each = self.tasks.div_ceil(self.hosts) as f64;
        Duration::from_secs_f64(each / self.rates[0] * 60.0)
    }
}
