//! The hosts: addresses in 127.77.0.0/24 behind one listener, on a thread of
//! their own. Each has a bucket, notes every request before it answers, and
//! says 429 with `Retry-After` to one that finds the bucket empty.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::workload::Host;

/// Of the hosts' thread (setpriority(2)).
const PRIORITY: i32 = -15;
/// How long an answer takes.
const LATENCY: Duration = Duration::from_millis(20);

/// One request, as a host saw it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub host: usize,
    pub at: Duration,
    pub said: Said,
}

#[derive(Clone, Copy, Debug)]
pub enum Said {
    /// 200, with the number of the page.
    Page(usize),
    /// 302.
    Onward,
    /// 429: it came so much too early.
    TooMany(Duration),
    /// 404.
    Unknown,
}

pub struct Hosts {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    state: Mutex<State>,
}

struct State {
    buckets: Vec<Bucket>,
    arrivals: Vec<Arrival>,
}

/// A bucket by its theoretical arrival time, in seconds.
struct Bucket {
    interval: f64,
    tolerance: f64,
    due: f64,
}

impl Bucket {
    /// Seconds to wait; none when a token was there. A refusal takes nothing.
    fn take(&mut self, now: f64) -> Option<f64> {
        const RESOLUTION: f64 = 1e-9;
        let early = self.due - self.tolerance - now;
        if early > RESOLUTION {
            return Some(early);
        }
        self.due = self.due.max(now) + self.interval;
        None
    }
}

impl Hosts {
    pub fn start(hosts: &[Host]) -> Self {
        let buckets = hosts.iter().map(|host| Bucket {
            interval: 1.0 / host.rate(),
            tolerance: f64::from(host.burst - 1) / host.rate(),
            due: 0.0,
        });
        let state = State {
            buckets: buckets.collect(),
            arrivals: Vec::new(),
        };
        let shared = Arc::new(Shared {
            began: Instant::now(),
            state: Mutex::new(state),
        });
        let listener = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let theirs = shared.clone();
        std::thread::spawn(move || {
            // They stand for other machines, which do not share the load of
            // this one; where that is not allowed, they share it.
            let _ = rustix::process::setpriority_process(None, PRIORITY);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, serve(listener, theirs, port));
        });
        Self { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What arrived, in its order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.state.lock().expect("no panic").arrivals.clone()
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>, port: u16) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        // A connection that breaks is its client's business.
        drop(tokio::task::spawn_local(async move {
            drop(converse(stream, &shared, port).await);
        }));
    }
}

/// Requests without a body, one after the other on one connection.
async fn converse(mut stream: TcpStream, shared: &Shared, port: u16) -> std::io::Result<()> {
    let SocketAddr::V4(me) = stream.local_addr()? else {
        return Ok(());
    };
    stream.set_nodelay(true)?;
    let host = usize::from(me.ip().octets()[3]).wrapping_sub(1);
    let mut head = Vec::with_capacity(1024);
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let answer = shared.answer(host, &path(&head), port);
        tokio::time::sleep(LATENCY).await;
        stream.write_all(answer.as_bytes()).await?;
    }
}

fn path(head: &[u8]) -> String {
    let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    String::from_utf8_lossy(path).into_owned()
}

impl Shared {
    fn answer(&self, host: usize, path: &str, port: u16) -> String {
        let mut state = self.state.lock().expect("no panic");
        let at = self.began.elapsed();
        let wait = state
            .buckets
            .get_mut(host)
            .and_then(|bucket| bucket.take(at.as_secs_f64()));
        let parts: Vec<_> = path.split('/').skip(1).collect();
        let (said, answer) = match (wait, parts.as_slice()) {
            (Some(wait), _) => {
                let header = format!("retry-after: {}\r\n", wait.ceil().max(1.0));
                (
                    Said::TooMany(Duration::from_secs_f64(wait)),
                    reply("429 Too Many Requests", &header),
                )
            }
            (None, ["page", number]) if number.parse::<usize>().is_ok() => {
                let number = number.parse().unwrap_or_default();
                (Said::Page(number), reply("200 OK", ""))
            }
            (None, ["to", address, number]) => {
                let header = format!("location: http://{address}:{port}/page/{number}\r\n");
                (Said::Onward, reply("302 Found", &header))
            }
            _ => (Said::Unknown, reply("404 Not Found", "")),
        };
        state.arrivals.push(Arrival { host, at, said });
        answer
    }
}

fn reply(status: &str, header: &str) -> String {
    const BODY: &str = "<html><body>a page</body></html>\n";
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\n{header}content-length: {}\r\n\r\n{BODY}",
        BODY.len()
    )
}
