//! Names a chosen last stream in GOAWAY frames. The h2 crate counts every stream that it has read as
//! processed, so a server on it cannot disown one, which real servers do when they shut down.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The length of a frame's header (RFC 9113 §4.1), where the payload's length is the first three
/// bytes and the type is the fourth.
const HEADER: usize = 9;

/// The type of a GOAWAY frame, whose payload begins with the four bytes of the last stream
/// (RFC 9113 §6.8).
const GOAWAY: u8 = 7;

/// The last stream that a connection owns to have processed.
#[derive(Clone, Default)]
pub struct LastStream(Arc<AtomicU32>);

impl LastStream {
    /// Takes effect on the GOAWAY frames that are written from now on.
    pub fn set(&self, id: u32) {
        self.0.store(id, Ordering::Relaxed);
    }
}

/// The bytes of a server's side of an HTTP/2 connection, with GOAWAY frames amended.
pub struct Disowning<S> {
    stream: S,
    last: LastStream,
    place: Place,
}

impl<S> Disowning<S> {
    /// Wraps a connection on which no frame was written.
    pub fn new(stream: S, last: LastStream) -> Self {
        Self {
            stream,
            last,
            place: Place::default(),
        }
    }
}

/// How far into a frame the next byte is.
#[derive(Clone, Default)]
struct Place {
    offset: usize,
    payload: usize,
    kind: u8,
}

impl Place {
    fn pass(&mut self, byte: u8, last: [u8; 4]) -> u8 {
        let offset = self.offset;
        self.offset += 1;
        let mut passed = byte;
        match offset {
            0 => self.payload = usize::from(byte),
            1 | 2 => self.payload = self.payload << 8 | usize::from(byte),
            3 => self.kind = byte,
            HEADER.. if self.kind == GOAWAY => {
                passed = last.get(offset - HEADER).copied().unwrap_or(byte);
            }
            _ => {}
        }
        if self.offset >= HEADER && self.offset == HEADER + self.payload {
            self.offset = 0;
        }
        passed
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Disowning<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let last = self.last.0.load(Ordering::Relaxed).to_be_bytes();
        let mut place = self.place.clone();
        let amended: Vec<u8> = bytes.iter().map(|&byte| place.pass(byte, last)).collect();
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &amended))?;
        for &byte in bytes.iter().take(written) {
            self.place.pass(byte, last);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Disowning<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
