//! What an archive is given, where there is one.

use std::io;

use super::Fetch;
use crate::egress::warc::{Exchange, Payload};
use crate::egress::{Reply, Saved};
use crate::schedule::task::{Answer, Upshot};
use crate::schedule::work::Report;

impl Fetch {
    /// Lets go of an answer whose body is not kept.
    pub(super) async fn discard(
        &self,
        reply: Reply,
        exchange: Option<Exchange>,
        upshot: Upshot,
    ) -> Report {
        let (Some(archive), Some(exchange)) = (&self.archive, exchange) else {
            return Report {
                upshot,
                closing: reply.discard().await,
            };
        };
        let answer = Answer {
            status: Some(reply.status()),
            ..Answer::default()
        };
        let (closing, payload) = reply.discard_into_memory().await;
        let upshot = match archive.keep(exchange, payload).await {
            Ok(()) => upshot,
            Err(error) => self.unarchived(answer, &error),
        };
        Report { upshot, closing }
    }

    /// Archives an answer whose body has been saved.
    pub(super) async fn archived(
        &self,
        exchange: Option<Exchange>,
        saved: &Saved,
    ) -> io::Result<()> {
        let (Some(archive), Some(exchange)) = (&self.archive, exchange) else {
            return Ok(());
        };
        let payload = match &saved.path {
            Some(path) => Payload::File(self.bodies.whole(path), saved.bytes),
            None => Payload::Whole(bytes::Bytes::new()),
        };
        archive.keep(exchange, payload).await
    }

    /// An archive with a gap would not be noticed: the run stops, and the next one asks again.
    pub(super) fn unarchived(&self, answer: Answer, error: &io::Error) -> Upshot {
        let folder = self.archive.as_ref().map(|archive| archive.folder());
        let folder = folder
            .unwrap_or_else(|| std::path::Path::new("warc"))
            .display();
        let error = Some(format!(
            "the exchange could not be archived in {folder}: {error}"
        ));
        Upshot::Broken(Answer { error, ..answer })
    }
}
