//! Tasks that are complete are asked again, in rounds: each task once a round, however often its
//! runs are interrupted.
//!
//! A task that is asked again gets a new number, so the round begins at a number: whatever was
//! accepted since is of this round. What a target needs to say "not modified" is kept by the hash
//! of the task's id, where the next answer takes its place: a tag, a date and the place of the
//! result that names the body, some 40 to 80 bytes for each answer that has a tag or a date.

use http::HeaderMap;
use http::header::{ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use serde::{Deserialize, Serialize};

use super::{Job, ResultLine, lock};
use crate::store::{Changes, Space, StoreError, numbered};

/// Where a round of a job began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// 0 before the first refresh.
    pub number: u64,
    /// The number of its first task.
    pub(super) first: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// A refresh whose list has not been gone through to its end.
    Open,
    #[default]
    Ended,
}

/// What becomes of a read that is complete when it is handed over once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CompleteReads {
    #[default]
    Left,
    AskedAgain,
}

/// What a job knows of its refreshes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refresh {
    pub(super) round: Round,
    /// For as long as this process runs.
    complete_reads: CompleteReads,
}

impl Refresh {
    pub(super) fn of(round: Round) -> Self {
        Self {
            round,
            complete_reads: CompleteReads::default(),
        }
    }

    /// Whether a task of this number and method, which is known, is to be asked again.
    pub(super) fn asks_again(&self, number: u64, method: &str) -> bool {
        self.complete_reads == CompleteReads::AskedAgain
            && number < self.round.first
            && matches!(method, "GET" | "HEAD")
    }
}

/// How a refresh begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// A new round: every read that is complete is asked again.
    Next,
    /// The round that was interrupted goes on: what it has brought already is not asked again.
    Resumed,
    /// Tasks of another run are not complete yet: they are done, and nothing is asked again.
    Unfinished,
}

/// What a target calls the state of what it answered with (RFC 9110, section 8.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    etag: Option<String>,
    /// Seconds of the epoch; only what gives the same text again is kept.
    last_modified: Option<u64>,
}

/// The longest entity tag that is kept, in bytes: some servers put a page into theirs.
const LONGEST_TAG: usize = 256;

impl Validators {
    /// Those of an answer; none where it has none.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name| headers.get(name)?.to_str().ok();
        let etag = text(ETAG).filter(|tag| is_entity_tag(tag) && tag.len() <= LONGEST_TAG);
        let validators = Self {
            etag: etag.map(str::to_owned),
            last_modified: text(LAST_MODIFIED).and_then(seconds),
        };
        let is_any = validators.etag.is_some() || validators.last_modified.is_some();
        is_any.then_some(validators)
    }

    /// The headers that ask for an answer only if it is another one by now (RFC 9110, sections
    /// 13.1.2 and 13.1.3; RFC 9111, section 4.3.1).
    pub fn conditions(&self) -> impl Iterator<Item = (HeaderName, String)> {
        let date = |seconds| {
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            httpdate::fmt_http_date(at)
        };
        let tag = self.etag.clone().map(|tag| (IF_NONE_MATCH, tag));
        let since = self.last_modified.map(date);
        tag.into_iter()
            .chain(since.map(|since| (IF_MODIFIED_SINCE, since)))
    }
}

/// RFC 9110, section 8.8.3.
fn is_entity_tag(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    let inside = opaque
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| {
        inside
            .bytes()
            .all(|byte| byte == b'!' || (b'#'..=b'~').contains(&byte))
    })
}

fn seconds(text: &str) -> Option<u64> {
    let at = httpdate::parse_http_date(text).ok()?;
    let seconds = at.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    (httpdate::fmt_http_date(at) == text).then_some(seconds)
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    validators: Validators,
    /// The place of the result they belong to.
    place: u64,
}

/// What a task brought the last time it had a whole answer with validators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// What the target called it.
    pub validators: Validators,
    /// The result of that time.
    pub line: ResultLine,
}

impl Job {
    /// From here on reads that are complete are asked again when they are handed over. To be called
    /// before anything is handed over; what began is durable then.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn begin_refresh(&self) -> Result<Begun, StoreError> {
        let record = self.record();
        if record.round.state == State::Open {
            self.ask_again();
            return Ok(Begun::Resumed);
        }
        if self.pending().next().transpose()?.is_some() {
            return Ok(Begun::Unfinished);
        }
        self.keep_round(Round {
            number: record.round.number + 1,
            first: record.next,
            state: State::Open,
        })?;
        self.ask_again();
        Ok(Begun::Next)
    }

    fn ask_again(&self) {
        lock(&self.refresh).complete_reads = CompleteReads::AskedAgain;
    }

    /// The list of a refresh has been gone through, and everything is complete.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn end_refresh(&self) -> Result<(), StoreError> {
        let round = lock(&self.refresh).round;
        self.keep_round(Round {
            state: State::Ended,
            ..round
        })
    }

    fn keep_round(&self, round: Round) -> Result<(), StoreError> {
        lock(&self.refresh).round = round;
        let mut changes = Changes::default();
        changes.put(Space::Round, &numbered(self.number), &round);
        self.store.write(changes).detach();
        self.store.settle()
    }

    /// What a task brought before; nothing in a job that was never refreshed.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn earlier(&self, id: &str) -> Result<Option<Earlier>, StoreError> {
        if lock(&self.refresh).round.number == 0 {
            return Ok(None);
        }
        let kept = self
            .store
            .get::<Kept>(Space::Validators, &self.id_key(id))?;
        let Some(Kept { validators, place }) = kept else {
            return Ok(None);
        };
        let line = self.result(place)?;
        let line = line.and_then(|line| serde_json::from_str(&line).ok());
        Ok(line.map(|line| Earlier { validators, line }))
    }

    /// A task without an answer this time may still be asked on condition the next time.
    pub(super) fn remember(
        &self,
        changes: &mut Changes,
        place: u64,
        line: &ResultLine,
        validators: Option<&Validators>,
    ) {
        let round = lock(&self.refresh).round;
        let key = self.id_key(&line.id);
        match validators.cloned() {
            Some(validators) => {
                changes.put(Space::Validators, &key, &Kept { validators, place });
            }
            None if round.number > 0 && line.outcome.has_answer() => {
                changes.delete(Space::Validators, &key);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        let validators = Validators::of(&map).into_iter();
        validators
            .flat_map(|validators| validators.conditions().collect::<Vec<_>>())
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }

    #[test]
    fn what_a_target_called_its_answer_is_sent_back_as_it_was() {
        const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (headers, sent) in [
            (vec![], vec![]),
            (
                vec![("etag", "\"a-b\"")],
                vec![("if-none-match", "\"a-b\"")],
            ),
            (vec![("etag", "W/\"\"")], vec![("if-none-match", "W/\"\"")]),
            (
                vec![("etag", "\"x\""), ("last-modified", DATE)],
                vec![("if-none-match", "\"x\""), ("if-modified-since", DATE)],
            ),
            // Not in the form that is sent: another text would come back.
            (
                vec![("last-modified", "Sunday, 06-Nov-94 08:49:37 GMT")],
                vec![],
            ),
            (vec![("last-modified", "yesterday")], vec![]),
            (vec![("etag", "bare")], vec![]),
            (vec![("etag", "\"a\" , \"b\"")], vec![]),
        ] {
            let sent: Vec<_> = sent
                .into_iter()
                .map(|(name, value): (&str, &str)| (name.to_owned(), value.to_owned()))
                .collect();
            assert_eq!(conditions(&headers), sent, "{headers:?}");
        }
        let long = format!("\"{}\"", "x".repeat(LONGEST_TAG));
        assert_eq!(conditions(&[("etag", &long)]), []);
    }
}
