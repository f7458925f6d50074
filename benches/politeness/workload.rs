//! Hosts of known tolerance, and a list of URLs that keeps some of them busy
//! for the whole of the run and others for a part of it.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::json;

/// What a host tolerates: requests a minute, and at once.
#[rustfmt::skip]
const TOLERANCES: [(u32, u32); 24] = [
    (1200, 10), (960, 20), (720, 4), (600, 10), (480, 8), (480, 1), (300, 5), (300, 2),
    (240, 8), (240, 1), (180, 3), (150, 5), (120, 2), (120, 1), (120, 6), (90, 3),
    (60, 1), (60, 2), (60, 4), (48, 2), (45, 3), (30, 1), (30, 2), (24, 1),
];
/// One URL in so many leads to another host.
const REDIRECTED: u64 = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Shuffled,
    /// Host by host, the one with most first.
    Blocky,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Redirects {
    None,
    Some,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Machine {
    Idle,
    Busy,
}

#[derive(Clone, Copy)]
pub struct Case {
    order: Order,
    redirects: Redirects,
    machine: Machine,
}

impl Case {
    pub const fn of(order: Order) -> Self {
        Self {
            order,
            redirects: Redirects::None,
            machine: Machine::Idle,
        }
    }

    pub const fn with_redirects(mut self) -> Self {
        self.redirects = Redirects::Some;
        self
    }

    pub const fn on_a_busy_machine(mut self) -> Self {
        self.machine = Machine::Busy;
        self
    }

    pub fn is_busy(self) -> bool {
        self.machine == Machine::Busy
    }
}

pub struct Host {
    pub address: Ipv4Addr,
    pub per_minute: u32,
    pub burst: u32,
    /// Requests that it will see.
    pub requests: u32,
}

impl Host {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        f64::from(self.per_minute) / 60.0
    }

    /// Seconds until the last of its requests may arrive.
    fn optimum(&self) -> f64 {
        f64::from(self.requests.saturating_sub(self.burst)) / self.rate()
    }
}

pub struct Url {
    host: usize,
    /// Where its host sends the client.
    onward: Option<usize>,
    number: usize,
}

pub struct Workload {
    pub hosts: Vec<Host>,
    pub urls: Vec<Url>,
}

impl Workload {
    /// A list that takes some `seconds` at best; the same one each time.
    pub fn new(case: Case, seconds: f64) -> Self {
        let mut chance = Chance(7);
        let mut hosts: Vec<_> = (1..)
            .zip(TOLERANCES)
            .map(|(last, (per_minute, burst))| Host {
                address: Ipv4Addr::new(127, 77, 0, last),
                per_minute,
                burst,
                requests: 0,
            })
            .collect();
        let mut urls = Vec::new();
        for at in 0..hosts.len() {
            let whole = hosts[at].rate() * seconds + f64::from(hosts[at].burst);
            for _ in 0..(whole * share(at, hosts[at].burst)) as u32 {
                let onward = (case.redirects == Redirects::Some && chance.below(REDIRECTED) == 0)
                    .then(|| (at + 1 + chance.below(23) as usize) % TOLERANCES.len());
                hosts[at].requests += 1;
                if let Some(onward) = onward {
                    hosts[onward].requests += 1;
                }
                urls.push(Url {
                    host: at,
                    onward,
                    number: urls.len(),
                });
            }
        }
        match case.order {
            Order::Shuffled => chance.shuffle(&mut urls),
            Order::Blocky => urls.sort_by_key(|url| std::cmp::Reverse(hosts[url.host].requests)),
        }
        Self { hosts, urls }
    }

    /// Seconds that nobody can be faster than without being rude.
    pub fn optimum(&self) -> f64 {
        self.hosts.iter().map(Host::optimum).fold(0.0, f64::max)
    }

    /// Writes `urls.txt`, `tidegate.toml` and, for others, `hosts.json`.
    pub fn write(&self, folder: &Path, port: u16) {
        let mut list = String::new();
        for url in &self.urls {
            let host = self.hosts[url.host].address;
            let path = match url.onward {
                Some(onward) => format!("to/{}/{}", self.hosts[onward].address, url.number),
                None => format!("page/{}", url.number),
            };
            writeln!(list, "http://{host}:{port}/{path}").expect("a line");
        }
        let mut config = String::from("allow_private = [\"127.0.0.0/8\"]\n");
        for host in &self.hosts {
            write!(
                config,
                "\n[[target]]\nmatch = \"http://{}:{port}\"\nrate = \"{}/min\"\nburst = {}\nconcurrency = 64\n",
                host.address, host.per_minute, host.burst
            )
            .expect("a rule");
        }
        let hosts = self.hosts.iter().map(|host| {
            json!({"host": host.address.to_string(), "rate": host.rate(), "burst": host.burst})
        });
        let hosts = serde_json::Value::from_iter(hosts).to_string();
        for (name, text) in [
            ("urls.txt", list),
            ("tidegate.toml", config),
            ("hosts.json", hosts),
        ] {
            std::fs::write(folder.join(name), text).expect("a file");
        }
    }
}

/// Every third host has work for all of the time. One with a burst of one has
/// no more than for some of it: there the arrival margin is added to each
/// interval, which is a price that is known and not what is measured here.
fn share(at: usize, burst: u32) -> f64 {
    match (burst, at % 3) {
        (1, _) => 0.6,
        (_, 0) => 1.0,
        (_, 1) => 0.9,
        _ => 0.7,
    }
}

/// A small generator (xorshift64*), so that the list is the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
