//! The life of one request.
//!
//! ```text
//! URL -> target key -> admission (envelope, token as debt, durable intent)
//!     -> wire -> departed -> head (what does it mean for the target?)
//!     -> end of body -> settled
//! ```
//!
//! [`Egress::send`] is the whole of it for one request; a redirect is another
//! request, on another permit. [`Egress::transmit`] is the part after the
//! grant. What cannot be proved unsent may have arrived.

mod classify;
mod client;
mod departure;
pub mod guard;
mod redirect;
mod reply;
mod room;
mod save;
pub mod warc;

use std::sync::Arc;

use bytes::Bytes;
use dashmap::DashSet;
use http::header::{self, HeaderMap, HeaderName};

pub use classify::Fault;
pub use client::{ClientError, Wire, loopback_client};
pub use redirect::next_hop;
pub use reply::{BodyFault, Reply};
pub use room::{LetGo, Surplus};
pub use save::{Bodies, Saved, Unsaved};

use crate::admission::{Admission, Ask, Closing, Ending, NoRoute, Permit, Route, Verdict, Word};
use crate::budget::{Deferral, Line, Never, Refusal};
use crate::outcome::End;
use crate::step::Step;
use crate::store;
use crate::target::{Located, Origin, Scheme};
use departure::{Journey, Leaving, Stamp};
use guard::Guard;

/// A request as it is to be sent.
#[derive(Clone)]
pub struct Request {
    /// The method, in capitals.
    pub method: String,
    /// Where to. May hold userinfo.
    pub url: String,
    /// Headers of the caller's own.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// A GET without headers or body.
    #[must_use]
    pub fn get(url: &str) -> Self {
        Self {
            method: "GET".into(),
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

/// What became of a call up to the head of its answer.
#[derive(Debug)]
pub enum Sent {
    /// An answer, whatever its status; its body is still to be read.
    Answered(Box<Reply>),
    /// Not now, by our own budget.
    Deferred(Deferral),
    /// Never, by us.
    Refused(Refusal),
    /// No answer.
    Failed(Fault),
}

/// What became of a granted request up to the head of its answer.
#[derive(Debug)]
pub enum Transmission {
    /// An answer; the permit lives on in it.
    Answered(Box<Reply>),
    /// Its target was paused or held after the grant; nothing was sent.
    CalledOff(Closing),
    /// No answer; the call is over.
    Failed(Fault, Closing),
}

/// Sends what is admitted.
#[derive(Debug)]
pub struct Egress {
    admission: Arc<Admission>,
    client: client::Client,
    guard: Arc<Guard>,
    /// HTTPS origins that speak HTTP/1.1, where a warm departure is exact.
    http1: DashSet<Origin>,
}

/// HTTPS origins remembered at most; beyond, they are learned anew.
const MOST_REMEMBERED: usize = 10_000;

impl Egress {
    /// An egress over `admission`.
    ///
    /// # Errors
    /// When the client cannot be set up.
    pub fn new(admission: Arc<Admission>, wire: &Wire) -> Result<Self, ClientError> {
        let client = client::Client::new(wire)?;
        Ok(Self {
            admission,
            client,
            guard: wire.guard.clone(),
            http1: DashSet::new(),
        })
    }

    /// The admission beneath.
    #[must_use]
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Finds the lane of a request, unless its address may not be called.
    ///
    /// # Errors
    /// A refusal, which is on record; no token was asked for.
    pub fn route(&self, request: &Request, step: &Step) -> Result<Route, NoRoute> {
        let route = self.admission.route(&request.url, &request.method, step)?;
        match self.guard.check_host(route.located.origin.host()) {
            Ok(()) => Ok(route),
            Err(blocked) => Err(self.blocked(&route.located.origin, &blocked, step).into()),
        }
    }

    /// The refusal of an address, which is on record with it.
    pub(crate) fn blocked(
        &self,
        origin: &Origin,
        blocked: &guard::Blocked,
        step: &Step,
    ) -> Refusal {
        let detail = blocked.to_string();
        let refusal = Refusal {
            reason: Never::AddressBlocked,
            target: origin.to_string(),
            detail,
        };
        self.admission.refuse(refusal, step)
    }

    /// Sends one request if its target's budget has room for it now.
    ///
    /// # Errors
    /// When nothing can be put on record: then nothing is sent.
    pub async fn send(&self, request: &Request, step: &Step) -> Result<Sent, store::Fault> {
        let route = match self.route(request, step) {
            Ok(route) => route,
            Err(NoRoute::Refused(refusal)) => return Ok(Sent::Refused(refusal)),
            Err(NoRoute::Unreadable(error)) => {
                return Err(store::Fault::Broken(error.to_string()));
            }
        };
        let user_agent = request.headers.get(header::USER_AGENT);
        let ask = Ask {
            user_agent: user_agent.and_then(|value| value.to_str().ok()),
            ..Ask::new(&request.method, route.located.url.path(), step)
        };
        loop {
            let permit = match self.admission.admit(&route.lane, &ask, Line::Join)? {
                Verdict::Deferred(deferral) => return Ok(Sent::Deferred(deferral)),
                Verdict::Refused(refusal) => return Ok(Sent::Refused(refusal)),
                Verdict::Granted(permit) => permit,
            };
            let (fault, closing) = match self.transmit(permit, request, &route.located).await? {
                Transmission::Answered(reply) => return Ok(Sent::Answered(reply)),
                // Asked again, it is told until when.
                Transmission::CalledOff(closing) => {
                    closing.commit().wait().await?;
                    continue;
                }
                Transmission::Failed(fault, closing) => (fault, closing),
            };
            closing.commit().wait().await?;
            return Ok(match fault {
                Fault::Blocked(blocked) => {
                    Sent::Refused(self.blocked(&route.located.origin, &blocked, step))
                }
                fault => Sent::Failed(fault),
            });
        }
    }

    /// Sends a granted request, up to the head of its answer.
    ///
    /// # Errors
    /// When its intent cannot be put on record: then it is not sent.
    pub async fn transmit(
        &self,
        mut permit: Permit,
        request: &Request,
        located: &Located,
    ) -> Result<Transmission, store::Fault> {
        permit.on_record().await?;
        if permit.is_called_off() {
            let closing = permit.abandon("its target was paused before it left");
            return Ok(Transmission::CalledOff(closing));
        }
        let Some(resolved) = permit.resolved() else {
            let fault = Fault::NotSent("its permit was used before".into());
            return Ok(Transmission::Failed(fault, permit.abandon("used before")));
        };
        let conduct = resolved.conduct().clone();
        let wire_request = match self.wire_request(request, located) {
            Ok(wire_request) => wire_request,
            Err(words) => {
                let closing = permit.abandon(&words);
                return Ok(Transmission::Failed(Fault::NotSent(words), closing));
            }
        };
        let journey = Arc::new(Journey::default());
        let departure = permit.dial();
        let stamp = self.stamp(&located.origin);
        let body = departure
            .map(|departure| Leaving::new(request.body.clone(), journey.clone(), departure, stamp));
        let wire_request =
            wire_request.body(body.map_or_else(reqwest::Body::default, reqwest::Body::wrap));
        let answered = tokio::time::timeout(conduct.timeout, journey.of(wire_request.send())).await;
        let taken = journey.was_taken();
        let fault = match answered {
            Ok(Ok(response)) => {
                return Ok(Transmission::Answered(Box::new(
                    self.answered(permit, response, located),
                )));
            }
            Ok(Err(error)) => classify::classify(error, taken),
            Err(_) if taken => Fault::Unanswered(format!("no answer within {:?}", conduct.timeout)),
            Err(_) => Fault::NotSent(format!("no connection within {:?}", conduct.timeout)),
        };
        Ok(Transmission::Failed(
            fault.clone(),
            Self::failed(permit, &fault),
        ))
    }

    fn stamp(&self, origin: &Origin) -> Stamp {
        match origin.scheme() {
            Scheme::Http => Stamp::WhenTaken,
            Scheme::Https if self.http1.contains(origin) => Stamp::WhenTaken,
            Scheme::Https => Stamp::AtHead,
        }
    }

    fn answered(
        &self,
        mut permit: Permit,
        response: reqwest::Response,
        located: &Located,
    ) -> Reply {
        if let Some(departure) = permit.dial() {
            departure.mark();
        }
        if located.origin.scheme() == Scheme::Https {
            if response.version() <= http::Version::HTTP_11 {
                if self.http1.len() >= MOST_REMEMBERED {
                    self.http1.clear();
                }
                self.http1.insert(located.origin.clone());
            } else {
                self.http1.remove(&located.origin);
            }
        }
        let wall = self.admission.clock().wall();
        Reply::new(permit, response, wall)
    }

    /// Settles a call that got no answer, and rests a target that cannot be
    /// reached, for all who wait for it.
    fn failed(mut permit: Permit, fault: &Fault) -> Closing {
        let words: Arc<str> = fault.words().into();
        let end = match fault {
            Fault::Blocked(_) => {
                permit.never_dialled();
                End::Abandoned
            }
            Fault::Unresolved(_) => {
                permit.never_dialled();
                permit.hear(Word::Unreachable(words.clone()));
                End::Abandoned
            }
            Fault::NotSent(_) => {
                permit.hear(Word::Unreachable(words.clone()));
                End::NotSent
            }
            Fault::Unable(_) => End::NotSent,
            Fault::Unanswered(_) => {
                // A probe without an answer is no sign that the target is back.
                if permit.is_probe() {
                    permit.hear(Word::Unreachable(words.clone()));
                }
                End::Unanswered
            }
        };
        permit.settle(Ending {
            error: Some(words),
            ..Ending::of(end)
        })
    }

    fn wire_request(
        &self,
        request: &Request,
        located: &Located,
    ) -> Result<reqwest::RequestBuilder, String> {
        let method = reqwest::Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|_| "its method is not one".to_owned())?;
        let mut headers = request.headers.clone();
        for name in NOT_THE_CALLERS {
            headers.remove(name);
        }
        let mut wire = self.client.get().request(method, located.url.clone());
        if let Some(credentials) = &located.credentials
            && !headers.contains_key(header::AUTHORIZATION)
        {
            wire = wire.basic_auth(credentials.username(), credentials.password());
        }
        wire = wire.headers(headers);
        match wire.try_clone().map(reqwest::RequestBuilder::build) {
            Some(Err(error)) => Err(classify::words(error)),
            _ => Ok(wire),
        }
    }
}

/// Headers that belong to the connection or decide where a request goes: what
/// is dialled is what was keyed.
const NOT_THE_CALLERS: [HeaderName; 9] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
];
