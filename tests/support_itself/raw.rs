//! A client with no mind of its own.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::PATIENCE;

/// How a connection ended, as its client saw it.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    Closed,
    Reset,
    /// It had not when the client's patience did.
    Open,
}

/// What a client read, and what came then.
#[derive(Debug)]
pub struct Heard {
    pub bytes: Vec<u8>,
    pub ended: Ended,
}

impl Heard {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

pub struct Raw(TcpStream);

impl Raw {
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("the target listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("settable");
        stream.set_write_timeout(Some(PATIENCE)).expect("settable");
        Self(stream)
    }

    pub fn patience(&self, patience: Duration) {
        self.0.set_read_timeout(Some(patience)).expect("settable");
        self.0.set_write_timeout(Some(patience)).expect("settable");
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("the target reads");
    }

    /// Sends until the other side takes no more, or `most` bytes; how many it took.
    pub fn flood(&mut self, most: usize) -> usize {
        let block = [b'u'; 16 * 1024];
        let mut sent = 0;
        while sent < most {
            match self.0.write(&block) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the flood ended with {error}"),
            }
        }
        sent
    }

    /// Reads exactly this many bytes.
    pub fn hear(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).expect("that many bytes");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads to the end.
    pub fn hear_out(&mut self) -> Heard {
        let mut bytes = Vec::new();
        let ended = match self.0.read_to_end(&mut bytes) {
            Ok(_) => Ended::Closed,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ended::Reset,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ended::Open,
            Err(error) => panic!("the connection ended with {error}"),
        };
        Heard { bytes, ended }
    }
}

/// A request with no body that lets the connection live on.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: t\r\n\r\n")
}

/// Sends one request on a connection of its own and reads to the end.
pub fn ask(addr: SocketAddr, path: &str) -> Heard {
    let mut raw = Raw::connect(addr);
    raw.send(format!(
        "GET {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n"
    ));
    raw.hear_out()
}

/// The status of a response.
pub fn status(heard: &Heard) -> u16 {
    let text = heard.text();
    let digits = text.split(' ').nth(1).expect("a status line");
    digits.parse().expect("a status")
}
