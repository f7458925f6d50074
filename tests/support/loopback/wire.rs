//! A connection's bytes: what is read, what is sent, and how it ends.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time;

use super::http1::{self, Framing};

/// The longest head, and the longest line of a chunked body, that is read. In bytes.
const LONGEST_HEAD: usize = 256 * 1024;

/// How often a connection that may not be read is looked at for its peer having left.
const GLANCE: Duration = Duration::from_millis(10);

/// A byte stream over TCP.
pub trait Peer: AsyncRead + AsyncWrite + Unpin + Send {
    /// The connection beneath.
    fn tcp(&self) -> &TcpStream;
}

impl Peer for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// A connection and what was read from it ahead of need.
pub struct Wire<S> {
    stream: S,
    ahead: BytesMut,
}

impl<S: Peer> Wire<S> {
    /// A connection of which nothing was read.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            ahead: BytesMut::new(),
        }
    }

    /// The next request's head with its empty line; `None` if the peer left before the first byte.
    pub async fn head(&mut self) -> io::Result<Option<Bytes>> {
        match self.through(b"\r\n\r\n").await {
            Ok(head) => Ok(Some(head)),
            Err(_) if self.ahead.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a body to its end, and tells of its bytes as they come.
    pub async fn body(&mut self, framing: Framing, received: impl Fn(usize)) -> io::Result<()> {
        match framing {
            Framing::Length(length) => self.skip(length, &received).await,
            Framing::Chunked => loop {
                let line = self.line().await?;
                let length = http1::chunk_length(&line).ok_or(io::ErrorKind::InvalidData)?;
                if length == 0 {
                    while !self.line().await?.is_empty() {}
                    return Ok(());
                }
                self.skip(length, &received).await?;
                if !self.line().await?.is_empty() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            },
        }
    }

    /// Sends all of these bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Waits; an error as soon as the peer leaves, be it only by closing its own direction.
    pub async fn pause(&mut self, length: Duration) -> io::Result<()> {
        if length.is_zero() {
            return Ok(());
        }
        let end = time::Instant::now() + length;
        loop {
            match time::timeout_at(end, self.fill()).await {
                Ok(filled) => filled?,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Waits until the peer leaves; what it still sends is lost.
    pub async fn until_left(&mut self) {
        while self.fill().await.is_ok() {
            self.ahead.clear();
        }
    }

    /// Waits until the peer leaves and reads nothing. A peer whose upload fills the buffers on the
    /// way is seen to leave only if it resets.
    pub async fn until_left_unread(&self) {
        let watched = Interest::READABLE | Interest::ERROR;
        while let Ok(ready) = self.stream.tcp().ready(watched).await {
            if ready.is_read_closed() || ready.is_error() {
                return;
            }
            time::sleep(GLANCE).await;
        }
    }

    /// Ends the connection in order.
    pub async fn close(mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Ends the connection with RST.
    pub fn reset(self) -> io::Result<()> {
        self.stream.tcp().set_zero_linger()
    }

    async fn line(&mut self) -> io::Result<Bytes> {
        let mut line = self.through(b"\r\n").await?;
        line.truncate(line.len() - 2);
        Ok(line)
    }

    async fn through(&mut self, end: &[u8]) -> io::Result<Bytes> {
        loop {
            let found = self.ahead.windows(end.len()).position(|seen| seen == end);
            match found {
                Some(start) => return Ok(self.ahead.split_to(start + end.len()).freeze()),
                None if self.ahead.len() > LONGEST_HEAD => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                None => self.fill().await?,
            }
        }
    }

    async fn skip(&mut self, length: u64, received: &impl Fn(usize)) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.ahead.is_empty() {
                self.fill().await?;
            }
            let here = self
                .ahead
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            self.ahead.advance(here);
            received(here);
            left -= here as u64;
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.ahead).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
