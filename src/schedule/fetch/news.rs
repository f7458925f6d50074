//! Asking again for what was brought before, on condition that it is another one by now (RFC 9110,
//! section 13; RFC 9111, section 4.3).

use http::header::{self, HeaderName};

use super::Fetch;
use crate::egress::{Reply, Request};
use crate::schedule::job::{Earlier, Validators};
use crate::schedule::result_line::without_userinfo;
use crate::schedule::task::{Answer, Record};
use crate::store;

/// Headers by which a task has conditions of its own, or asks for a part (RFC 9110, sections 13.1
/// and 14.2).
const CONDITIONAL: [HeaderName; 6] = [
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    header::RANGE,
];

impl Fetch {
    /// Puts the conditions of a refresh into a request, and returns what they are about: a body
    /// that this very URL gave, and that is still there. Conditions of the task's own stay alone.
    pub(super) async fn ask_for_news(
        &self,
        record: &Record,
        request: &mut Request,
    ) -> Result<Option<Earlier>, store::Fault> {
        let Some(job) = &self.job else {
            return Ok(None);
        };
        let is_read = matches!(request.method.as_str(), "GET" | "HEAD");
        if !is_read
            || CONDITIONAL
                .iter()
                .any(|name| request.headers.contains_key(name))
        {
            return Ok(None);
        }
        let earlier = job.earlier(&record.task.id);
        let earlier = earlier.map_err(|error| store::Fault::Broken(error.to_string()))?;
        let Some(earlier) = earlier else {
            return Ok(None);
        };
        let line = &earlier.line;
        let is_there = match (&line.body_path, line.bytes) {
            (Some(path), Some(bytes)) => self.bodies.holds(path, bytes).await,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if !is_there || line.final_url.as_deref() != Some(&*without_userinfo(&request.url)) {
            return Ok(None);
        }
        let mut asked = None;
        for (name, value) in earlier.validators.conditions() {
            if let Ok(value) = value.parse() {
                request.headers.insert(name, value);
                asked = Some(());
            }
        }
        Ok(asked.map(|()| earlier))
    }
}

/// Those of a whole answer with what was asked for: a later one can be compared with it.
pub(super) fn validators(reply: &Reply) -> Option<Validators> {
    match reply.status() {
        206 => None,
        200..=299 => Validators::of(reply.headers()),
        _ => None,
    }
}

/// The answer "not modified" to a question of ours: the body of before stands, and so does what the
/// target calls it.
pub(super) fn unchanged(earlier: Earlier) -> Answer {
    let Earlier { validators, line } = earlier;
    Answer {
        status: Some(304),
        bytes: line.bytes.unwrap_or(0),
        content_type: line.content_type,
        body_path: line.body_path,
        error: None,
        validators: Some(validators),
    }
}
