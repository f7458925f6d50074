//! Targets written by hand, for one test each.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::loopback::{ConnectionLog, Request, Target};

/// A target that does this with the n-th connection, counted from 0, until it returns.
pub fn raw<F>(
    scheme: &'static str,
    serve: impl Fn(TcpStream, ConnectionLog, usize) -> F + Send + 'static,
) -> Target
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let count = AtomicUsize::new(0);
    Target::launch(
        Ipv4Addr::LOCALHOST.into(),
        scheme,
        Vec::new(),
        move |tcp, log| {
            let serving = serve(tcp, log, count.fetch_add(1, Ordering::Relaxed));
            async move {
                // The client may leave at any point.
                serving.await.ok();
            }
        },
    )
}

/// Reads a request without a body; its head is what the log shows.
pub async fn hear(tcp: &mut TcpStream, log: &ConnectionLog) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split(' ');
    let (method, path) = (words.next(), words.next());
    let request = Request::now(
        method.unwrap_or_default(),
        path.unwrap_or_default(),
        Vec::new(),
    );
    log.arrive(&request).verdict(200);
    Ok(())
}
