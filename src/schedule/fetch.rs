//! The work that ships: an HTTP call, its body to disk.

mod archived;
mod news;

use std::sync::Arc;

use http::header;

use super::job::{Earlier, Job};
use super::ok_status::OkStatus;
use super::payload::HttpPayload;
use super::task::{Answer, Record, TaskCall, Upshot};
use super::work::{Report, Work};
use crate::admission::{Closing, Ending, NoRoute, Permit, Route};
use crate::budget::{Never, Refusal};
use crate::egress::warc::{Archive, Exchange};
use crate::egress::{
    Bodies, BodyFault, Egress, Fault, Reply, Request, Transmission, Unsaved, next_hop,
};
use crate::outcome::{End, Outcome};
use crate::step::Step;
use crate::store;
use crate::target::Located;
use crate::tolerance::Reading;
use news::{unchanged, validators};

/// HTTP calls through an egress, bodies into a folder.
#[derive(Debug)]
pub struct Fetch {
    egress: Arc<Egress>,
    bodies: Bodies,
    ok: OkStatus,
    job: Option<Arc<Job>>,
    archive: Option<Arc<Archive>>,
}

impl Fetch {
    /// Calls through `egress`; what they bring goes to `bodies`.
    #[must_use]
    pub fn new(egress: Arc<Egress>, bodies: Bodies) -> Self {
        Self {
            egress,
            bodies,
            ok: OkStatus::default(),
            job: None,
            archive: None,
        }
    }

    /// In refreshes of this job, asks for what was brought before only if it is another one by now.
    #[must_use]
    pub fn remembering(self, job: Arc<Job>) -> Self {
        Self {
            job: Some(job),
            ..self
        }
    }

    /// Keeps every exchange in this archive as well.
    #[must_use]
    pub fn archiving(self, archive: Option<Arc<Archive>>) -> Self {
        Self { archive, ..self }
    }

    /// Counts these statuses, and no others, as success.
    #[must_use]
    pub fn ok_status(self, ok: OkStatus) -> Self {
        Self { ok, ..self }
    }

    /// What to make of an answer, once it has been read.
    async fn answered(
        &self,
        mut reply: Reply,
        request: &Request,
        located: &Located,
        payload: &HttpPayload,
        earlier: Option<Earlier>,
    ) -> Report {
        let exchange = self.archive.as_ref();
        let exchange = exchange.map(|archive| archive.exchange(request, located, &reply));
        let status = reply.status();
        let answer = Answer {
            status: Some(status),
            content_type: content_type(&reply),
            ..Answer::default()
        };
        if let Reading::NotNow { .. } = reply.reading() {
            return self.discard(reply, exchange, Upshot::NotNow(answer)).await;
        }
        if let Some(next) = next_hop(request, status, reply.headers()) {
            let upshot = Upshot::Onward(onward(next, payload), answer);
            return self.discard(reply, exchange, upshot).await;
        }
        if let (304, Some(earlier)) = (status, earlier) {
            let upshot = Upshot::Final(Outcome::Succeeded, unchanged(earlier));
            return self.discard(reply, exchange, upshot).await;
        }
        match status {
            408 | 425 | 500..=599 if !self.ok.contains(status) => {
                let error = Some(format!("the target answered {status}"));
                let answer = Answer { error, ..answer };
                let doubtful = Upshot::Doubtful(answer);
                let Report { upshot, closing } = self.discard(reply, exchange, doubtful).await;
                let upshot = match upshot {
                    Upshot::Doubtful(answer) if is_explicit(status, &closing) => {
                        Upshot::Rejected(answer)
                    }
                    upshot => upshot,
                };
                Report { upshot, closing }
            }
            _ => self.read(&mut reply, answer, exchange).await.report(reply),
        }
    }

    async fn read(&self, reply: &mut Reply, answer: Answer, exchange: Option<Exchange>) -> Read {
        let outcome = if self.ok.contains(reply.status()) {
            Outcome::Succeeded
        } else {
            Outcome::Answered
        };
        match self.bodies.save(reply).await {
            Ok(saved) => {
                if let Err(error) = self.archived(exchange, &saved).await {
                    return Read {
                        upshot: self.unarchived(answer, &error),
                        body: Ok(()),
                    };
                }
                let answer = Answer {
                    bytes: saved.bytes,
                    body_path: saved.path,
                    validators: validators(reply),
                    ..answer
                };
                Read {
                    upshot: Upshot::Final(outcome, answer),
                    body: Ok(()),
                }
            }
            Err(unsaved) => {
                let answer = Answer {
                    bytes: reply.bytes(),
                    error: Some(unsaved.to_string()),
                    ..answer
                };
                match unsaved {
                    Unsaved::Body(fault @ BodyFault::TooLarge { .. }) => Read {
                        upshot: Upshot::Final(Outcome::Answered, answer),
                        body: Err(fault),
                    },
                    Unsaved::Body(fault) => Read {
                        upshot: Upshot::Doubtful(answer),
                        body: Err(fault),
                    },
                    Unsaved::Disk { .. } => Read {
                        upshot: Upshot::Broken(answer),
                        body: Ok(()),
                    },
                }
            }
        }
    }
}

/// Whether the target itself says that it has not acted. Without a word of its
/// own a 503 may come from anything on the way; 425 says it by its meaning
/// (RFC 8470, section 5.2).
fn is_explicit(status: u16, closing: &Closing) -> bool {
    let said_why = closing
        .settlement()
        .is_some_and(|settlement| settlement.bytes > 0);
    status == 425 || (matches!(status, 503 | 529) && said_why)
}

struct Read {
    upshot: Upshot,
    body: Result<(), BodyFault>,
}

impl Read {
    fn report(self, reply: Reply) -> Report {
        Report {
            upshot: self.upshot,
            closing: reply.end(self.body.as_ref().err()),
        }
    }
}

fn content_type(reply: &Reply) -> Option<String> {
    let value = reply.headers().get(header::CONTENT_TYPE)?;
    Some(
        String::from_utf8_lossy(value.as_bytes())
            .chars()
            .take(200)
            .collect(),
    )
}

/// The next hop as a call; headers that were looked up in the environment
/// stay names, and only those that may go along go along.
fn onward(next: Request, payload: &HttpPayload) -> TaskCall {
    let kept = payload.keeping(|name| next.headers.contains_key(name));
    let payload = HttpPayload {
        body: next.body.to_vec(),
        ..kept
    };
    TaskCall {
        url: next.url.into(),
        method: next.method.into(),
        payload: payload.encode().into(),
    }
}

fn request(call: &TaskCall) -> Result<(Request, HttpPayload), String> {
    let payload = HttpPayload::decode(&call.payload).ok_or("the task on record cannot be read")?;
    let headers = payload.to_headers(&|name| std::env::var(name).ok())?;
    let body = payload.body.clone().into();
    let request = Request {
        method: call.method.to_string(),
        url: call.url.to_string(),
        headers,
        body,
    };
    Ok((request, payload))
}

impl Work for Fetch {
    fn route(&self, call: &TaskCall, step: &Step) -> Result<Route, NoRoute> {
        let (method, url) = (call.method.to_string(), call.url.to_string());
        self.egress.route(
            &Request {
                method,
                ..Request::get(&url)
            },
            step,
        )
    }

    /// A value that is looked up in the environment stays a name.
    fn user_agent(&self, call: &TaskCall) -> Option<String> {
        let headers = HttpPayload::decode(&call.payload)?.headers.into_iter();
        let mut named = headers.filter(|(name, _)| name.eq_ignore_ascii_case("user-agent"));
        named.next().map(|(_, value)| value)
    }

    async fn run(self: Arc<Self>, record: Record, permit: Permit) -> Result<Report, store::Fault> {
        let (mut request, payload) = match request(&record.next) {
            Ok(request) => request,
            Err(words) => {
                let closing = permit.abandon(&words);
                return Ok(Report {
                    upshot: Upshot::Final(Outcome::Failed, Answer::error(words)),
                    closing,
                });
            }
        };
        let located = match crate::target::locate(&request.url) {
            Ok(located) => located,
            Err(rejection) => {
                let closing = permit.settle(Ending::of(End::Abandoned));
                let refusal = Refusal {
                    reason: Never::InvalidTarget,
                    target: String::new(),
                    detail: rejection.detail,
                };
                return Ok(Report {
                    upshot: Upshot::Refused(refusal),
                    closing,
                });
            }
        };
        let earlier = self.ask_for_news(&record, &mut request).await?;
        Ok(
            match self.egress.transmit(permit, &request, &located).await? {
                Transmission::Answered(reply) => {
                    self.answered(*reply, &request, &located, &payload, earlier)
                        .await
                }
                Transmission::CalledOff(closing) => Report {
                    upshot: Upshot::CalledOff,
                    closing,
                },
                Transmission::Failed(fault, closing) => {
                    let answer = Answer::error(fault.words());
                    let upshot = match fault {
                        Fault::Blocked(blocked) => Upshot::Refused(self.egress.blocked(
                            &located.origin,
                            &blocked,
                            &record.task.step,
                        )),
                        Fault::Unresolved(_) | Fault::NotSent(_) => Upshot::NotSent(answer),
                        Fault::Unable(_) => Upshot::Unable(answer),
                        Fault::Unanswered(_) => Upshot::Doubtful(answer),
                    };
                    Report { upshot, closing }
                }
            },
        )
    }
}
