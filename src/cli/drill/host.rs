//! Where the targets live: a thread and a runtime of their own, so that what
//! they log owes nothing to the gate.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::cast::{Manner, Part};
use super::target::Target;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Targets that listen; gone when it is dropped.
pub(super) struct Host {
    pub(super) targets: Vec<Arc<Target>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A port of one's own, with or without somebody behind it.
enum Door {
    Open(TcpListener),
    /// Bound and not listening: nobody answers, and nobody else gets the port.
    Shut(TcpSocket),
}

impl Door {
    fn new(manner: Manner) -> io::Result<Self> {
        if manner == Manner::Gone {
            let socket = TcpSocket::new_v4()?;
            socket.bind(ANY_PORT)?;
            return Ok(Self::Shut(socket));
        }
        let listener = TcpListener::bind(ANY_PORT)?;
        listener.set_nonblocking(true)?;
        Ok(Self::Open(listener))
    }

    fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Open(listener) => listener.local_addr(),
            Self::Shut(socket) => socket.local_addr(),
        }
    }
}

impl Host {
    /// Starts one target for each part.
    pub(super) fn start(cast: &[Part]) -> io::Result<Self> {
        let doors = cast.iter().map(|part| Door::new(part.manner));
        let doors = doors.collect::<io::Result<Vec<_>>>()?;
        let addresses = doors.iter().map(Door::address);
        let addresses = addresses.collect::<io::Result<Vec<_>>>()?;
        let address_of = |name: &str| {
            let mut named = cast.iter().zip(&addresses);
            named.find_map(|(part, address)| (part.name == name).then_some(*address))
        };
        let targets: Vec<_> = cast
            .iter()
            .zip(&addresses)
            .map(|(part, address)| {
                let onward = match part.manner {
                    Manner::Signpost(to) => address_of(to).map(|to| format!("http://{to}")),
                    Manner::Plain | Manner::Moody(_) | Manner::Gone => None,
                };
                Arc::new(Target::new(part.clone(), *address, onward))
            })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let served: Vec<_> = doors.into_iter().zip(targets.clone()).collect();
        let thread = std::thread::Builder::new()
            .name("drill-targets".into())
            .spawn(move || serve(&runtime, served, stopped))?;
        Ok(Self {
            targets,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(runtime: &Runtime, served: Vec<(Door, Arc<Target>)>, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async move {
        let mut listening = JoinSet::new();
        let mut shut = Vec::new();
        for (door, target) in served {
            match door {
                Door::Open(listener) => drop(listening.spawn(listen(listener, target))),
                Door::Shut(socket) => shut.push(socket),
            }
        }
        // Until the other end is dropped.
        let _ = stopped.await;
    });
}

async fn listen(listener: TcpListener, target: Arc<Target>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = Router::new().fallback(answer).with_state(target);
    axum::serve(listener, router).await
}

async fn answer(State(target): State<Arc<Target>>, uri: Uri) -> Response {
    let latency = target.part.latency;
    let visit = target.arrive(uri.path());
    tokio::time::sleep(latency).await;
    visit.answer()
}
