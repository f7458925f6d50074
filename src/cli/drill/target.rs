//! A target of the drill: it judges what arrives, answers by its manner, and
//! keeps a log of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tokio::time::Instant;

use super::cast::{Manner, Part, SULK};
use super::judge::{Judge, Judgement};

/// The first part of the path of a call that a signpost sends on.
pub(super) const MOVED: &str = "/moved";

/// A target.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) part: Part,
    pub(super) address: SocketAddr,
    /// Where calls that have moved are sent on to.
    onward: Option<String>,
    begun: Instant,
    log: Mutex<Log>,
}

/// One request, as its target saw it.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// How long after the target's start.
    pub(super) at: Duration,
    pub(super) path: String,
    /// What it was answered with; none while it is open.
    pub(super) status: Option<StatusCode>,
}

/// Everything a target saw.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) arrivals: Vec<Arrival>,
    /// Arrivals that it does not tolerate.
    pub(super) over: u64,
    /// Arrivals while it had asked to be left alone.
    pub(super) early: u64,
    /// The most requests that were open at once.
    pub(super) most: u32,
    open: u32,
    judge: Judge,
    left_alone_until: Duration,
    moods: u64,
}

impl Target {
    pub(super) fn new(part: Part, address: SocketAddr, onward: Option<String>) -> Self {
        let log = Log {
            arrivals: Vec::new(),
            over: 0,
            early: 0,
            most: 0,
            open: 0,
            judge: Judge::new(&part.limit),
            left_alone_until: Duration::ZERO,
            moods: 0,
        };
        Self {
            part,
            address,
            onward,
            begun: Instant::now(),
            log: Mutex::new(log),
        }
    }

    /// Scheme, address and port.
    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request arrives.
    pub(super) fn arrive(self: Arc<Self>, path: &str) -> Visit {
        let mut log = self.log();
        // Under the lock, so that arrivals are judged in their order.
        let at = self.begun.elapsed();
        let judgement = log.judge.arrive(at);
        log.over += u64::from(judgement != Judgement::Within);
        log.early += u64::from(at < log.left_alone_until);
        log.open += 1;
        log.most = log.most.max(log.open);
        log.arrivals.push(Arrival {
            at,
            path: path.to_owned(),
            status: None,
        });
        let index = log.arrivals.len() - 1;
        let reply = match judgement {
            Judgement::Over(wait) => Reply::Refuse(wait.as_secs() + 1),
            Judgement::Within if self.is_in_a_mood(&mut log) => Reply::Refuse(SULK),
            Judgement::Within => match (&self.onward, path.strip_prefix(MOVED)) {
                (Some(onward), Some(rest)) => Reply::SendOn(format!("{onward}{rest}")),
                _ => Reply::Serve,
            },
        };
        drop(log);
        Visit {
            target: self,
            index,
            reply,
        }
    }

    /// Moods come evenly over the planned calls.
    fn is_in_a_mood(&self, log: &mut Log) -> bool {
        let Manner::Moody(moods) = self.part.manner else {
            return false;
        };
        let next = self.part.planned * (log.moods + 1) / (moods + 1);
        let due = log.moods < moods && log.arrivals.len() as u64 > next;
        log.moods += u64::from(due);
        due
    }
}

/// A request that is being answered; open until it is dropped.
#[derive(Debug)]
pub(super) struct Visit {
    target: Arc<Target>,
    index: usize,
    reply: Reply,
}

#[derive(Clone, Debug)]
enum Reply {
    Serve,
    /// Not for so many seconds.
    Refuse(u64),
    SendOn(String),
}

impl Visit {
    /// The answer.
    pub(super) fn answer(self) -> Response {
        let name = self.target.part.name;
        let response = match &self.reply {
            Reply::Serve => format!("{name} serves\n").into_response(),
            Reply::Refuse(seconds) => {
                let until = self.target.begun.elapsed() + Duration::from_secs(*seconds);
                let mut log = self.target.log();
                log.left_alone_until = log.left_alone_until.max(until);
                let retry_after = [(header::RETRY_AFTER, seconds.to_string())];
                (StatusCode::TOO_MANY_REQUESTS, retry_after).into_response()
            }
            Reply::SendOn(url) => {
                (StatusCode::FOUND, [(header::LOCATION, url.clone())]).into_response()
            }
        };
        if let Some(arrival) = self.target.log().arrivals.get_mut(self.index) {
            arrival.status = Some(response.status());
        }
        response
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.target.log().open -= 1;
    }
}
