//! Targets behind TLS: HTTP/1.1, HTTP/2, and two whose handshake fails.

mod ca;
mod disown;
mod http2;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::loopback::{Answer, Peer, Script, Target, serve};

pub use ca::TestCa;
pub use http2::{H2Script, StreamAnswer};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// More than a client's first message, in bytes.
const CLIENT_HELLO: usize = 16 * 1024;

impl Peer for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// An HTTPS target on 127.0.0.1 that speaks HTTP/1.1 only.
pub fn https(ca: &TestCa, script: Script) -> Target {
    let acceptor = TlsAcceptor::from(Arc::new(ca.server_config("http/1.1")));
    let judges = script.judges();
    Target::launch(LOCALHOST, "https", judges, move |tcp, log| {
        let (acceptor, script) = (acceptor.clone(), script.clone());
        async move {
            if let Ok(tls) = acceptor.accept(tcp).await {
                serve(tls, &script, &log).await.ok();
            }
        }
    })
}

/// An HTTPS target on 127.0.0.1 that speaks HTTP/2 only. Each stream is an arrival.
pub fn h2(ca: &TestCa, script: H2Script) -> Target {
    let acceptor = TlsAcceptor::from(Arc::new(ca.server_config("h2")));
    let judges = script.judges();
    Target::launch(LOCALHOST, "https", judges, move |tcp, log| {
        let (acceptor, script) = (acceptor.clone(), script.clone());
        async move {
            if let Ok(tls) = acceptor.accept(tcp).await {
                http2::serve(tls, script, log).await.ok();
            }
        }
    })
}

/// An HTTPS target whose certificate was issued by an authority that nobody knows.
pub fn unknown_ca() -> Target {
    https(&TestCa::new(), Script::always(Answer::status(200)))
}

/// A target that reads the beginning of the TLS handshake and closes.
pub fn closing_in_handshake() -> Target {
    Target::launch(LOCALHOST, "https", Vec::new(), |mut tcp, _| async move {
        // Read, for to close over unread bytes would reset.
        let mut hello = Vec::with_capacity(CLIENT_HELLO);
        tcp.read_buf(&mut hello).await.ok();
    })
}
