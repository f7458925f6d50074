//! A server on the loopback interface for the examples: it answers every GET
//! with 200 and remembers which paths it was asked for.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// A server with a thread for each connection.
pub struct Server {
    origin: String,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts on a free port; ends with the process.
    pub fn start() -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let origin = format!("http://{}", listener.local_addr()?);
        let paths = Arc::new(Mutex::new(Vec::new()));
        let log = paths.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let log = log.clone();
                std::thread::spawn(move || answer(connection, &log));
            }
        });
        Ok(Self { origin, paths })
    }

    /// Scheme, address and port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The paths asked for, in the order of their arrival.
    pub fn paths(&self) -> Vec<String> {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.clone()
    }
}

/// Ends when the client leaves.
fn answer(connection: TcpStream, log: &Mutex<Vec<String>>) -> Option<()> {
    let mut writer = connection.try_clone().ok()?;
    let mut lines = BufReader::new(connection).lines();
    loop {
        let request = lines.next()?.ok()?;
        let path = request.split(' ').nth(1)?.to_owned();
        while !lines.next()?.ok()?.is_empty() {}
        let body = format!("this is {path}\n");
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(path);
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        writer.write_all(answer.as_bytes()).ok()?;
    }
}
