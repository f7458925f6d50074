//! What is told of a complete task: one line of `results.jsonl`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use super::task::{Answer, Record};
use crate::budget::rfc3339;
use crate::clock::Moment;
use crate::outcome::Outcome;
use crate::target::{TargetKey, locate};

/// A complete task. The order of the fields is theirs in the line; what is not known is `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultLine {
    /// The task's id.
    pub id: Arc<str>,
    /// The URL that was asked for, without userinfo; as it was written where it had none.
    pub url: String,
    /// The URL that gave the answer, without userinfo; another one after a redirect.
    pub final_url: Option<String>,
    /// The target, with its class.
    pub target: Option<String>,
    /// The class alone.
    pub class: Option<String>,
    /// Who caused it.
    pub agent: Arc<str>,
    /// In which of its runs.
    pub trajectory: Option<Arc<str>>,
    /// At which step of that run.
    pub step: Option<Arc<str>>,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer's status.
    pub status: Option<u16>,
    /// Calls that were sent and not refused with "not now".
    pub attempts: u32,
    /// How often it was told to wait.
    pub deferrals: u32,
    /// When it was accepted; RFC 3339, UTC, like all times here.
    pub queued_at: String,
    /// When its first call was granted.
    pub started_at: Option<String>,
    /// When it was complete.
    pub completed_at: String,
    /// Bytes of the answer's body.
    pub bytes: Option<u64>,
    /// The answer's media type.
    pub content_type: Option<String>,
    /// Where the body is, relative to the output folder.
    pub body_path: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl ResultLine {
    /// The result of a task that is complete `now`. `wall_offset` are nanoseconds from a moment to
    /// the wall clock.
    #[must_use]
    pub fn new(
        record: &Record,
        target: Option<&TargetKey>,
        outcome: Outcome,
        answer: &Answer,
        now: Moment,
        wall_offset: i64,
    ) -> Self {
        let task = &record.task;
        let at = |moment| rfc3339(moment, wall_offset);
        // Without a status nothing answered: then there are no bytes either, not zero of them.
        let answered = |_| {
            (
                without_userinfo(&record.next.url).into_owned(),
                answer.bytes,
            )
        };
        let (final_url, bytes) = answer.status.map(answered).unzip();
        Self {
            id: task.id.clone(),
            url: without_userinfo(&task.call.url).into_owned(),
            final_url,
            target: target.map(ToString::to_string),
            class: target.map(|target| target.class.as_str().to_owned()),
            agent: task.step.agent.clone(),
            trajectory: named(&task.step.trajectory),
            step: named(&task.step.step),
            outcome,
            status: answer.status,
            attempts: record.attempts,
            deferrals: record.deferrals,
            queued_at: at(record.queued),
            started_at: record.started.map(at),
            completed_at: at(now),
            bytes,
            content_type: answer.content_type.clone(),
            body_path: answer.body_path.clone(),
            error: answer.error.clone(),
        }
    }
}

fn named(name: &Arc<str>) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| name.clone())
}

/// A URL without userinfo; as it was written where it had none.
#[must_use]
pub fn without_userinfo(url: &str) -> Cow<'_, str> {
    match locate(url) {
        Ok(located) if located.credentials.is_none() => url.into(),
        Ok(_) => bare(url).map_or_else(|| behind_userinfo(url), |url| String::from(url).into()),
        Err(_) => behind_userinfo(url),
    }
}

fn bare(url: &str) -> Option<Url> {
    let mut url = Url::parse(url).ok()?;
    url.set_password(None).ok()?;
    url.set_username("").ok()?;
    Some(url)
}

/// In a text that is no URL, userinfo may be anything up to the last `@`.
fn behind_userinfo(text: &str) -> Cow<'_, str> {
    text.rsplit_once('@').map_or(text, |(_, rest)| rest).into()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::schedule::task::{Repeat, Task, TaskCall};
    use crate::step::Step;

    fn record(url: &str, next: &str, step: Step) -> Record {
        let call = |url: &str| TaskCall {
            url: url.into(),
            method: "GET".into(),
            payload: [].into(),
        };
        let task = Task {
            id: "t1".into(),
            call: call(url),
            step,
            priority: 0,
            not_before: None,
            deadline: None,
            max_attempts: NonZeroU32::MIN,
            cost: NonZeroU32::MIN,
            repeat: Repeat::Safe,
        };
        Record {
            next: call(next),
            ..Record::new(task, Moment::from_nanos(1_000_000_000))
        }
    }

    fn line(
        record: &Record,
        target: Option<&TargetKey>,
        outcome: Outcome,
        answer: &Answer,
    ) -> String {
        let now = Moment::from_nanos(3_000_000_000);
        let line = ResultLine::new(record, target, outcome, answer, now, 60_000_000_000);
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<ResultLine>(&text).unwrap(), line);
        text
    }

    #[test]
    fn a_result_has_its_fields_in_the_order_that_is_promised() {
        let step = Step::new("scout", "run-17", "4", "map the field");
        let mut record = record("http://u:p@a.test/x?q#f", "http://u:p@b.test/y", step);
        record.started = Some(Moment::from_nanos(2_000_000_001));
        record.attempts = 2;
        record.deferrals = 7;
        let answer = Answer {
            status: Some(200),
            bytes: 12,
            content_type: Some("text/html".into()),
            body_path: Some("bodies/ab/cd/abcd".into()),
            error: None,
            validators: None,
        };
        let target = "http://b.test#search".parse().unwrap();
        assert_eq!(
            line(&record, Some(&target), Outcome::Succeeded, &answer),
            concat!(
                r#"{"id":"t1","url":"http://a.test/x?q#f","final_url":"http://b.test/y","#,
                r#""target":"http://b.test#search","class":"search","agent":"scout","#,
                r#""trajectory":"run-17","step":"4","outcome":"succeeded","status":200,"#,
                r#""attempts":2,"deferrals":7,"queued_at":"1970-01-01T00:01:01.000Z","#,
                r#""started_at":"1970-01-01T00:01:02.001Z","#,
                r#""completed_at":"1970-01-01T00:01:03.000Z","bytes":12,"#,
                r#""content_type":"text/html","body_path":"bodies/ab/cd/abcd","error":null}"#
            )
        );
    }

    #[test]
    fn what_is_not_known_is_null() {
        let record = record("http://a.test/", "http://a.test/", Step::default());
        assert_eq!(
            line(
                &record,
                None,
                Outcome::Expired,
                &Answer::error("its deadline passed")
            ),
            concat!(
                r#"{"id":"t1","url":"http://a.test/","final_url":null,"target":null,"#,
                r#""class":null,"agent":"unattributed","trajectory":null,"step":null,"#,
                r#""outcome":"expired","status":null,"attempts":0,"deferrals":0,"#,
                r#""queued_at":"1970-01-01T00:01:01.000Z","started_at":null,"#,
                r#""completed_at":"1970-01-01T00:01:03.000Z","bytes":null,"content_type":null,"#,
                r#""body_path":null,"error":"its deadline passed"}"#
            )
        );
    }

    #[test]
    fn userinfo_is_left_out_and_other_urls_stay_as_they_were_written() {
        for (url, shown) in [
            ("HTTP://A.test:80/%7ex?b#c", "HTTP://A.test:80/%7ex?b#c"),
            ("http://a.test/@me?u@v", "http://a.test/@me?u@v"),
            ("http://hunter:seven@a.test/@me", "http://a.test/@me"),
            ("http://hunter@a.test", "http://a.test/"),
            ("http:hunter:seven@a.test/x", "http://a.test/x"),
            ("ftp://hunter:seven@a.test/x", "a.test/x"),
            ("hunter:seven@a.test/x", "a.test/x"),
            ("http://hunter:seven@@[::zz]/", "[::zz]/"),
            ("no URL at all", "no URL at all"),
        ] {
            assert_eq!(without_userinfo(url), shown, "{url}");
        }
    }
}
