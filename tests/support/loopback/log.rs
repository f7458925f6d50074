//! The record of what arrived, in the order in which it did.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A request's head.
#[derive(Clone, Debug)]
pub struct Request {
    /// When the head was complete. Of requests sent without waiting for the response before, the
    /// later ones count as complete when the target turns to them.
    pub at: Instant,
    /// The method as sent.
    pub method: String,
    /// The request target as sent, query included.
    pub path: String,
    /// Lower-case names and values, in the order sent.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// A request whose head is complete at this moment.
    pub fn now(method: &str, path: &str, headers: Vec<(String, String)>) -> Self {
        Self {
            at: Instant::now(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
        }
    }

    /// The first value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }
}

/// One request as the target saw it.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When the request's head was complete.
    pub at: Instant,
    /// The same instant, measured from the target's start.
    pub since_start: Duration,
    /// The method as sent; empty if the head could not be read as HTTP.
    pub method: String,
    /// The request target as sent, query included; empty if the head could not be read as HTTP.
    pub path: String,
    /// Lower-case names and values, in the order sent.
    pub headers: Vec<(String, String)>,
    /// Body bytes received so far, without the framing.
    pub body_len: usize,
    /// Which connection brought it, counted from 0 in the order of accepting.
    pub connection: u64,
    /// Requests open at this target when the head was complete, this one included.
    pub in_flight: usize,
    /// The status of the response whose sending began, 0 if none did (yet).
    pub verdict: u16,
}

impl Arrival {
    /// The first value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }
}

fn first<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(header, _)| header == name)
        .map(|(_, value)| value.as_str())
}

/// The log of one target.
pub(super) struct Log {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arrivals: Vec<Arrival>,
    connections: u64,
    in_flight: usize,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            state: Mutex::default(),
        }
    }

    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        self.state().arrivals.clone()
    }

    pub(super) fn connections(&self) -> usize {
        usize::try_from(self.state().connections).expect("connections fit in memory")
    }

    pub(super) fn connected(self: &Arc<Self>) -> ConnectionLog {
        let mut state = self.state();
        let connection = state.connections;
        state.connections += 1;
        ConnectionLog {
            log: Arc::clone(self),
            connection,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log as one connection writes it.
#[derive(Clone)]
pub struct ConnectionLog {
    log: Arc<Log>,
    connection: u64,
}

impl ConnectionLog {
    /// Records a request, which is open until the returned guard is dropped.
    pub fn arrive(&self, request: &Request) -> OpenRequest {
        let mut state = self.log.state();
        state.in_flight += 1;
        let arrival = Arrival {
            at: request.at,
            since_start: request.at.saturating_duration_since(self.log.start),
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            body_len: 0,
            connection: self.connection,
            in_flight: state.in_flight,
            verdict: 0,
        };
        state.arrivals.push(arrival);
        OpenRequest {
            log: Arc::clone(&self.log),
            index: state.arrivals.len() - 1,
        }
    }
}

/// A request that has arrived and is not over yet.
#[must_use = "a request is open while this lives"]
pub struct OpenRequest {
    log: Arc<Log>,
    index: usize,
}

impl OpenRequest {
    /// How many requests came before this one.
    pub fn earlier(&self) -> usize {
        self.index
    }

    /// Adds body bytes that were received.
    pub fn received(&self, bytes: usize) {
        self.amend(|arrival| arrival.body_len += bytes);
    }

    /// Sets the status; called just before the status is sent, so that a client that has seen it
    /// finds it in the log.
    pub fn verdict(&self, status: u16) {
        self.amend(|arrival| arrival.verdict = status);
    }

    fn amend(&self, change: impl FnOnce(&mut Arrival)) {
        if let Some(arrival) = self.log.state().arrivals.get_mut(self.index) {
            change(arrival);
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.log.state().in_flight -= 1;
    }
}
