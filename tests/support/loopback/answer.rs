//! What a target can do to a request, from a plain reply to the ways in which a peer misbehaves.

use std::time::Duration;

use bytes::Bytes;

/// The answer to one request over HTTP/1.1.
///
/// Unless it says otherwise, an answer reads the whole request first, has status 200 where it has a
/// status, and leaves the connection open when the client does.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A well-formed response.
    Reply(Reply),
    /// Closes (FIN) without a byte.
    CloseAfterRequest,
    /// Resets (RST) without a byte.
    ResetAfterRequest,
    /// Declares more body than it sends, then closes.
    CutBody {
        /// The `content-length`, in bytes.
        declared: usize,
        /// The body bytes that are sent.
        sent: usize,
    },
    /// Sends one chunk and closes with no terminal chunk.
    CutChunked,
    /// Never answers; holds the connection until the peer leaves or the target stops.
    Silence,
    /// Sends an empty response one byte at a time.
    SlowHead {
        /// The pause before each byte.
        every: Duration,
    },
    /// Sends the head at once and the body in pieces.
    Drip {
        /// The body's length in bytes.
        total: usize,
        /// The pause before each piece.
        every: Duration,
        /// The length of a piece in bytes.
        chunk: usize,
    },
    /// Streams this many zero bytes, or until the client leaves.
    HugeBody(u64),
    /// Sends these bytes in place of a response, then closes.
    Garbage(Vec<u8>),
    /// Reads nothing after the head; holds the connection until the peer is seen to leave or the
    /// target stops.
    StallUpload,
}

impl Answer {
    /// Begins a plain reply.
    pub fn status(status: u16) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            after: Duration::ZERO,
        }
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// A well-formed response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) after: Duration,
}

impl Reply {
    /// Adds a header. A `content-length` of one's own takes the place of the true one.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits this long between the end of the request and the first byte of the response. A client
    /// that leaves meanwhile ends the request.
    #[must_use]
    pub fn after(mut self, latency: Duration) -> Self {
        self.after = latency;
        self
    }
}
