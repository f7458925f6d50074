//! The walk of a connection: head, log, script, body, answer, and again while it is kept alive.

use std::io;

use super::answer::{Answer, Reply};
use super::http1::{Head, Persistence, response_head};
use super::log::{ConnectionLog, OpenRequest, Request};
use super::script::Script;
use super::wire::{Peer, Wire};

/// The largest piece of a body that is made up, in bytes.
const PIECE: usize = 64 * 1024;

enum Ending {
    KeepOpen,
    Close,
    Reset,
}

impl From<Persistence> for Ending {
    fn from(persistence: Persistence) -> Self {
        match persistence {
            Persistence::KeepAlive => Self::KeepOpen,
            Persistence::Close => Self::Close,
        }
    }
}

/// Serves HTTP/1.1 on a connection until it ends. An error means that the peer left or broke the
/// protocol.
pub async fn serve<S: Peer>(stream: S, script: &Script, log: &ConnectionLog) -> io::Result<()> {
    let mut wire = Wire::new(stream);
    while let Some(bytes) = wire.head().await? {
        let ending = match Head::parse(&bytes) {
            Some(head) => {
                let open = log.arrive(&head.request);
                let answer = script.answer(&head.request, open.earlier());
                exchange(&mut wire, head, answer, open).await?
            }
            None => refuse(&mut wire, log).await?,
        };
        match ending {
            Ending::KeepOpen => {}
            Ending::Close => return wire.close().await,
            Ending::Reset => return wire.reset(),
        }
    }
    wire.close().await
}

/// What cannot be read has still arrived, so it is in the log.
async fn refuse<S: Peer>(wire: &mut Wire<S>, log: &ConnectionLog) -> io::Result<Ending> {
    let open = log.arrive(&Request::now("", "", Vec::new()));
    open.verdict(400);
    wire.send(&response_head(
        400,
        [("content-length", "0")],
        Persistence::Close,
    ))
    .await?;
    Ok(Ending::Close)
}

async fn exchange<S: Peer>(
    wire: &mut Wire<S>,
    head: Head,
    answer: Answer,
    open: OpenRequest,
) -> io::Result<Ending> {
    let Head {
        request,
        framing,
        persistence,
    } = head;
    if !matches!(answer, Answer::StallUpload) {
        wire.body(framing, |bytes| open.received(bytes)).await?;
    }
    match answer {
        Answer::Reply(reply) => {
            wire.pause(reply.after).await?;
            open.verdict(reply.status);
            wire.send(&whole(&reply, &request, persistence)).await?;
            Ok(persistence.into())
        }
        Answer::CloseAfterRequest => Ok(Ending::Close),
        Answer::ResetAfterRequest => Ok(Ending::Reset),
        Answer::CutBody { declared, sent } => {
            open.verdict(200);
            let mut bytes = sized_head(declared as u64, persistence);
            bytes.resize(bytes.len() + sent, b'.');
            wire.send(&bytes).await?;
            Ok(Ending::Close)
        }
        Answer::CutChunked => {
            open.verdict(200);
            let chunked = [("transfer-encoding", "chunked")];
            let mut bytes = response_head(200, chunked, persistence);
            bytes.extend_from_slice(b"5\r\nfirst\r\n");
            wire.send(&bytes).await?;
            Ok(Ending::Close)
        }
        Answer::Silence => {
            wire.until_left().await;
            Ok(Ending::Close)
        }
        Answer::StallUpload => {
            wire.until_left_unread().await;
            Ok(Ending::Close)
        }
        Answer::SlowHead { every } => {
            open.verdict(200);
            for byte in sized_head(0, persistence) {
                wire.pause(every).await?;
                wire.send(&[byte]).await?;
            }
            Ok(persistence.into())
        }
        Answer::Drip {
            total,
            every,
            chunk,
        } => {
            open.verdict(200);
            wire.send(&sized_head(total as u64, persistence)).await?;
            for piece in vec![b'.'; total].chunks(chunk) {
                wire.pause(every).await?;
                wire.send(piece).await?;
            }
            Ok(persistence.into())
        }
        Answer::HugeBody(length) => {
            open.verdict(200);
            wire.send(&sized_head(length, persistence)).await?;
            let zeros = vec![0; PIECE];
            for _ in 0..length / PIECE as u64 {
                wire.send(&zeros).await?;
            }
            let rest = zeros.into_iter().take((length % PIECE as u64) as usize);
            wire.send(&rest.collect::<Vec<_>>()).await?;
            Ok(persistence.into())
        }
        Answer::Garbage(bytes) => {
            wire.send(&bytes).await?;
            Ok(Ending::Close)
        }
    }
}

fn sized_head(content_length: u64, persistence: Persistence) -> Vec<u8> {
    let length = content_length.to_string();
    response_head(200, [("content-length", length.as_str())], persistence)
}

fn whole(reply: &Reply, request: &Request, persistence: Persistence) -> Vec<u8> {
    // RFC 9110 §6.4.1: these statuses have no content, whatever the script says.
    let contentless = matches!(reply.status, 100..=199 | 204 | 304);
    let own_length = reply
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = reply.body.len().to_string();
    let true_length = (!contentless && !own_length).then_some(("content-length", length.as_str()));
    let headers = reply
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let mut bytes = response_head(reply.status, headers.chain(true_length), persistence);
    if !contentless && request.method != "HEAD" {
        bytes.extend_from_slice(&reply.body);
    }
    bytes
}
