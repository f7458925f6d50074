//! An answer whose head has arrived. Its permit lives until its body ends.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;

use super::classify::words;
use super::warc::Payload;
use crate::admission::{Closing, Ending, Permit, Word};
use crate::outcome::End;
use crate::tolerance::{Reading, read};

/// An answer.
#[derive(Debug)]
pub struct Reply {
    permit: Permit,
    response: reqwest::Response,
    reading: Reading,
    peer: Option<IpAddr>,
    bytes: u64,
    timeout: Duration,
    max_body: u64,
    started: tokio::time::Instant,
}

/// Why a body did not arrive whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// The connection ended before the body did.
    #[error("the answer was cut after {bytes} bytes: {why}")]
    Cut {
        /// How many arrived.
        bytes: u64,
        /// How it ended.
        why: String,
    },
    /// It came too slowly.
    #[error("the answer stalled after {bytes} bytes")]
    Stalled {
        /// How many arrived.
        bytes: u64,
    },
    /// It is larger than allowed.
    #[error("the answer is larger than max_body = {max_body} bytes; it was not kept")]
    TooLarge {
        /// How much is allowed.
        max_body: u64,
    },
}

/// A body may take its timeout, and then must have come at least this fast on
/// average (bytes a second): no target can hold a worker for ever.
const SLOWEST: u64 = 1024;

/// Bytes of an unwanted body that are read to keep a connection.
const SHORT: u64 = 64 << 10;

impl Reply {
    pub(super) fn new(mut permit: Permit, response: reqwest::Response, wall: SystemTime) -> Self {
        let reading = read(response.status().as_u16(), response.headers(), wall);
        permit.hear(match &reading {
            Reading::Open => Word::Open,
            Reading::NotNow { asked, reason } => Word::NotNow(*asked, reason.clone()),
        });
        let conduct = permit
            .resolved()
            .map(|resolved| resolved.conduct().clone())
            .unwrap_or_default();
        let peer = response.remote_addr().map(|address| address.ip());
        Self {
            permit,
            response,
            reading,
            peer,
            bytes: 0,
            timeout: conduct.timeout,
            max_body: conduct.max_body,
            started: tokio::time::Instant::now(),
        }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The version of HTTP that was spoken.
    #[must_use]
    pub fn version(&self) -> http::Version {
        self.response.version()
    }

    /// The address that answered.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// What the head means for the target.
    #[must_use]
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Bytes of the body read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next part of the body; none at its end.
    ///
    /// # Errors
    /// When it does not arrive whole. What has been read is no answer then.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyFault> {
        let too_large = BodyFault::TooLarge {
            max_body: self.max_body,
        };
        if self
            .response
            .content_length()
            .is_some_and(|length| length > self.max_body)
        {
            return Err(too_large);
        }
        let stalled = BodyFault::Stalled { bytes: self.bytes };
        let slowest = self.timeout + Duration::from_secs(self.bytes / SLOWEST);
        if self.started.elapsed() > slowest {
            return Err(stalled);
        }
        let chunk = match tokio::time::timeout(self.timeout, self.response.chunk()).await {
            Err(_) => return Err(stalled),
            Ok(Err(error)) => {
                return Err(BodyFault::Cut {
                    bytes: self.bytes,
                    why: words(error),
                });
            }
            Ok(Ok(chunk)) => chunk,
        };
        self.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.bytes > self.max_body {
            return Err(too_large);
        }
        Ok(chunk)
    }

    /// The whole body as text, of at most `limit` bytes; the call is over.
    ///
    /// # Errors
    /// When it does not arrive whole.
    pub async fn text(mut self, limit: usize) -> Result<String, BodyFault> {
        let mut body = Vec::new();
        let read = loop {
            match self.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= limit => {
                    body.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    break Err(BodyFault::TooLarge {
                        max_body: limit as u64,
                    });
                }
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        drop(self.end(read.as_ref().err()));
        read.map(|()| String::from_utf8_lossy(&body).into_owned())
    }

    /// Reads what is left of a body that nobody wants, if it is short, so
    /// that the connection can be used again.
    pub async fn discard(mut self) -> Closing {
        while self.bytes <= SHORT && matches!(self.chunk().await, Ok(Some(_))) {}
        self.end(None)
    }

    /// The same, but for what it has read: the body, or the beginning of one that is long or was
    /// cut.
    pub async fn discard_into_memory(mut self) -> (Closing, Payload) {
        let mut read = Vec::new();
        while self.bytes <= SHORT {
            match self.chunk().await {
                Ok(Some(chunk)) => read.extend_from_slice(&chunk),
                Ok(None) => return (self.end(None), Payload::Whole(read.into())),
                Err(_) => break,
            }
        }
        (self.end(None), Payload::Beginning(read.into()))
    }

    /// Ends the call, whose body has been read to its end or to a fault.
    pub fn end(self, fault: Option<&BodyFault>) -> Closing {
        let end = match (&self.reading, fault) {
            (Reading::NotNow { .. }, _) => End::Throttled,
            (Reading::Open, None | Some(BodyFault::TooLarge { .. })) => End::Answered,
            (Reading::Open, Some(_)) => End::Partial,
        };
        let error: Option<Arc<str>> = fault.map(|fault| fault.to_string().into());
        self.permit.settle(Ending {
            end,
            status: Some(self.response.status().as_u16()),
            bytes: self.bytes,
            peer: self.peer,
            error,
        })
    }
}
