//! A target that plays a script and keeps a log of what arrived.
//!
//! The promises of the gate are statements about what somebody else's machine receives, so they are
//! judged from here and never from the gate's own counters. For that the target shares nothing with
//! what it judges: its own thread, its own runtime, its own HTTP/1.1.

mod answer;
mod http1;
mod judge;
mod log;
mod script;
mod serve;
mod wire;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::resume_unwind;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use answer::{Answer, Reply};
pub use judge::{Judgement, Meter, Tolerance, bucket_violations, worst_window};
pub use log::{Arrival, ConnectionLog, OpenRequest, Request};
pub use script::{Judge, Script};
pub use serve::serve;
pub use wire::Peer;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Connections the kernel may hold before the target takes them; above any burst of the tests.
const BACKLOG: u32 = 4096;

/// A running target. Dropping it closes every connection and joins its thread; the drop panics if
/// the script panicked.
pub struct Target {
    scheme: &'static str,
    addr: SocketAddr,
    log: Arc<log::Log>,
    judges: Vec<Arc<Judge>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    /// An HTTP/1.1 target on a free port of 127.0.0.1.
    pub fn start(script: Script) -> Self {
        Self::on(LOCALHOST, script)
    }

    /// An HTTP/1.1 target on a free port of `ip`, any address of 127.0.0.0/8.
    pub fn on(ip: IpAddr, script: Script) -> Self {
        Self::at(SocketAddr::new(ip, 0), script)
    }

    /// An HTTP/1.1 target at an address of 127.0.0.0/8 that was some other target's before.
    pub fn at(at: SocketAddr, script: Script) -> Self {
        let judges = script.judges();
        Self::launch_at(at, "http", judges, move |tcp, log| {
            let script = script.clone();
            async move {
                serve(tcp, &script, &log).await.ok();
            }
        })
    }

    /// A target that accepts each connection, counts it and resets it at once.
    pub fn resetting_at_accept() -> Self {
        Self::launch(LOCALHOST, "http", Vec::new(), |tcp, _| async move {
            tcp.set_zero_linger().expect("SO_LINGER is settable");
        })
    }

    /// A target of another protocol: `serve` is called once for each accepted connection.
    pub fn launch<S, F>(ip: IpAddr, scheme: &'static str, judges: Vec<Arc<Judge>>, serve: S) -> Self
    where
        S: Fn(TcpStream, ConnectionLog) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::launch_at(SocketAddr::new(ip, 0), scheme, judges, serve)
    }

    fn launch_at<S, F>(
        at: SocketAddr,
        scheme: &'static str,
        judges: Vec<Arc<Judge>>,
        serve: S,
    ) -> Self
    where
        S: Fn(TcpStream, ConnectionLog) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let log = Arc::new(log::Log::new());
        let (stop, stopped) = oneshot::channel();
        let (bound, binding) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("loopback-target".to_owned())
            .spawn({
                let log = Arc::clone(&log);
                move || {
                    let runtime = runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .expect("a runtime starts");
                    runtime.block_on(async {
                        let listener = listen(at);
                        bound
                            .send(
                                listener
                                    .local_addr()
                                    .expect("a bound socket has an address"),
                            )
                            .expect("the starter waits for the address");
                        tokio::select! {
                            // A panic that is known before the stop is not lost to it.
                            biased;
                            () = accept(&listener, &log, serve) => {}
                            _ = stopped => {}
                        }
                    });
                }
            })
            .expect("a thread starts");
        let addr = binding.recv().expect("the target binds its address");
        Self {
            scheme,
            addr,
            log,
            judges,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Scheme, address and port, with no slash at the end.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.addr)
    }

    /// The origin followed by `path`, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// Every request so far, in the order of arrival. The target waits while the log is copied, so
    /// where instants matter, ask at the end.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.log.arrivals()
    }

    /// How many connections were accepted, those that were reset or failed in a handshake included.
    pub fn connections(&self) -> usize {
        self.log.connections()
    }

    /// How many arrivals were beyond the tolerance of the script.
    ///
    /// Panics if the script has none: nothing was judged then, which is not the same as zero.
    pub fn over_envelope(&self) -> usize {
        assert!(
            !self.judges.is_empty(),
            "this target's script has no tolerance to judge by"
        );
        self.judges.iter().map(|judge| judge.over()).sum()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.stop.take());
        let joined = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = joined
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

/// An address of 127.0.0.1 on which nothing listens.
pub fn refusing_port() -> SocketAddr {
    std::net::TcpListener::bind((LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port of the loopback interface")
}

fn listen(at: SocketAddr) -> TcpListener {
    let socket = match at.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => TcpSocket::new_v4(),
        other => panic!("{other} is not in 127.0.0.0/8"),
    }
    .expect("a socket opens");
    // Connections of a target that was here before may still be closing.
    socket
        .set_reuseaddr(true)
        .expect("SO_REUSEADDR is settable");
    socket
        .bind(at)
        .expect("a free port of the loopback interface");
    socket.listen(BACKLOG).expect("a bound socket listens")
}

async fn accept<S, F>(listener: &TcpListener, log: &Arc<log::Log>, serve: S)
where
    S: Fn(TcpStream, ConnectionLog) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (tcp, _) = accepted.expect("a listening socket accepts");
                tcp.set_nodelay(true).expect("TCP_NODELAY is settable");
                connections.spawn(serve(tcp, log.connected()));
            }
            // A script that panics must fail its test, not just lose one connection.
            Some(ended) = connections.join_next() => {
                if let Err(panicked) = ended {
                    resume_unwind(panicked.into_panic());
                }
            }
        }
    }
}
