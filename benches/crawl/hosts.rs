//! Thousands of hosts on one port: each an address in 127.0.0.0/8, all behind one listener that
//! notes what arrives where and when.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One request, as a host saw it.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub host: u32,
    pub task: u32,
    /// Nanoseconds since the hosts began.
    pub at: u64,
}

/// The hosts.
pub struct Hosts {
    port: u16,
    log: Arc<Log>,
}

struct Log {
    began: Instant,
    arrivals: Mutex<Vec<Arrival>>,
}

impl Log {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

impl Hosts {
    /// Starts them, on a thread of their own.
    pub fn start() -> Self {
        let log = Arc::new(Log {
            began: Instant::now(),
            arrivals: Mutex::default(),
        });
        let listener = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let theirs = log.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, serve(listener, theirs));
        });
        Self { port, log }
    }

    /// The host with a number.
    pub fn address(&self, number: usize) -> SocketAddr {
        let [high, low] = u16::try_from(number)
            .expect("at most 65,536 hosts")
            .to_be_bytes();
        (Ipv4Addr::new(127, 1, high, low), self.port).into()
    }

    /// When they began.
    pub fn began(&self) -> Instant {
        self.log.began
    }

    /// Nanoseconds since then.
    pub fn now(&self) -> u64 {
        self.log.now()
    }

    /// How many requests arrived so far.
    pub fn count(&self) -> usize {
        self.log.arrivals.lock().expect("no panic").len()
    }

    /// What arrived so far.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.log.arrivals.lock().expect("no panic").clone()
    }
}

async fn serve(listener: std::net::TcpListener, log: Arc<Log>) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let log = log.clone();
                // A connection that breaks is its client's business.
                drop(tokio::task::spawn_local(async move {
                    drop(answer(stream, &log).await);
                }));
            }
            // Out of descriptors for a moment.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Answers one request and closes: nobody keeps forty thousand connections open.
async fn answer(mut stream: TcpStream, log: &Log) -> std::io::Result<()> {
    let SocketAddr::V4(me) = stream.local_addr()? else {
        return Ok(());
    };
    let [_, _, high, low] = me.ip().octets();
    let host = u16::from_be_bytes([high, low]);
    let mut head = Vec::with_capacity(512);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let at = log.now();
    let task = head
        .strip_prefix(b"GET /t/")
        .and_then(|rest| std::str::from_utf8(rest.split(|byte| *byte == b' ').next()?).ok())
        .and_then(|number| number.parse().ok())
        .expect("a task's path");
    log.arrivals.lock().expect("no panic").push(Arrival {
        host: host.into(),
        task,
        at,
    });
    let body = format!("host {host}\n");
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
