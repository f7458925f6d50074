//! HTTP/2 (RFC 9113) with the two ways of a server to say that it did not process a request.

use std::future::poll_fn;
use std::panic::resume_unwind;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time;

use super::super::loopback::{ConnectionLog, OpenRequest, Reply, Request, Script};
use super::disown::{Disowning, LastStream};

/// A script for streams.
pub type H2Script = Script<StreamAnswer>;

/// The answer to one request over HTTP/2.
#[derive(Clone, Debug)]
pub enum StreamAnswer {
    /// Reads the whole request and answers it.
    Reply(Reply),
    /// Sends GOAWAY (NO_ERROR) that names the stream before this one as the last processed, and
    /// answers neither this stream nor a later one of the connection. Earlier streams go on.
    GoAway,
    /// Sends RST_STREAM (REFUSED_STREAM).
    Refuse,
}

impl From<Reply> for StreamAnswer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// Serves a connection until it ends. An error means that the peer left or broke the protocol.
pub async fn serve<S>(stream: S, script: H2Script, log: ConnectionLog) -> Result<(), h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let last = LastStream::default();
    let mut connection = h2::server::handshake(Disowning::new(stream, last.clone())).await?;
    let mut replies = JoinSet::new();
    // Kept, for to drop them would reset their streams.
    let mut disowned = Vec::new();
    loop {
        let (request, mut respond) = tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(accepted) => accepted?,
                None => return Ok(()),
            },
            Some(ended) = replies.join_next() => match ended {
                Ok(()) => continue,
                Err(panicked) => resume_unwind(panicked.into_panic()),
            },
        };
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("", |path| path.as_str());
        let seen = Request::now(head.method.as_str(), path, headers(&head.headers));
        let open = log.arrive(&seen);
        if !disowned.is_empty() {
            disowned.push((body, respond));
            continue;
        }
        match script.answer(&seen, open.earlier()) {
            StreamAnswer::Reply(reply) => {
                replies.spawn(async move {
                    answer(seen, body, respond, reply, open).await.ok();
                });
            }
            StreamAnswer::GoAway => {
                // A client's streams have odd numbers (RFC 9113 §5.1.1).
                last.set(respond.stream_id().as_u32().saturating_sub(2));
                connection.graceful_shutdown();
                disowned.push((body, respond));
            }
            StreamAnswer::Refuse => respond.send_reset(Reason::REFUSED_STREAM),
        }
    }
}

async fn answer(
    request: Request,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    reply: Reply,
    open: OpenRequest,
) -> Result<(), h2::Error> {
    while let Some(bytes) = body.data().await {
        let length = bytes?.len();
        body.flow_control().release_capacity(length)?;
        open.received(length);
    }
    tokio::select! {
        () = time::sleep(reply.after) => {}
        reset = poll_fn(|cx| respond.poll_reset(cx)) => return reset.map(drop),
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    let response = response.body(()).expect("the script's reply is valid");
    open.verdict(reply.status);
    let empty = reply.body.is_empty() || request.method == "HEAD";
    let mut stream = respond.send_response(response, empty)?;
    if !empty {
        stream.send_data(reply.body, true)?;
    }
    Ok(())
}

fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect()
}
