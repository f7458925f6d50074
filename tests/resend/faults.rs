//! What a call may meet, by name.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use crate::support::handmade::{hear, raw};
use crate::support::loopback::{Answer, Script, Target};
use crate::support::tls::{self, H2Script, StreamAnswer, TestCa};

/// For faults that are told by nothing but silence.
const IMPATIENT: Duration = Duration::from_millis(2500);
const PATIENT: Duration = Duration::from_secs(30);

/// A target whose first request meets a fault.
pub struct Faulty {
    /// Where tokens are spent: the target that is called, then those behind redirects.
    pub origins: Vec<String>,
    /// How long they may be silent.
    pub timeout: Duration,
    /// Those who log what arrives.
    pub targets: Vec<Target>,
    /// Keeps a port as the fault needs it.
    _kept: Option<Kept>,
}

/// See [`Faulty`]; dropped, the port is anybody's again.
enum Kept {
    Refusing(#[expect(dead_code, reason = "is held")] TcpSocket),
    Swamped(#[expect(dead_code, reason = "is held")] (TcpListener, Vec<TcpStream>)),
}

impl Faulty {
    /// The fault of this name; none if there is no such fault.
    pub fn named(name: &str, ca: &TestCa) -> Option<Self> {
        Some(match name {
            "connection refused" => Self::refusing(),
            "no connection in time" => Self::swamped().impatient(),
            "no such name" => Self::nameless(),
            "unknown authority" => Self::of([tls::unknown_ca()]),
            "handshake closed" => Self::of([tls::closing_in_handshake()]),
            "clear text in the handshake" => Self::of([speaking_in_clear_text()]),
            "reset in the handshake" => Self::of([resetting_in_the_handshake()]),
            "closed after reading" => Self::first(Answer::CloseAfterRequest),
            "closed after reading, under TLS" => {
                Self::of([tls::https(ca, once(Answer::CloseAfterRequest))])
            }
            "reset after reading" => Self::first(Answer::ResetAfterRequest),
            "silence" => Self::first(Answer::Silence).impatient(),
            "slow head" => Self::first(Answer::SlowHead {
                every: IMPATIENT / 8,
            })
            .impatient(),
            "stalled upload" => Self::first(Answer::StallUpload).impatient(),
            "garbage" => Self::first(Answer::Garbage(b"\x16\x03\x01 no HTTP\r\n\r\n".to_vec())),
            "head of 2 MB" => {
                let value = "v".repeat(2 << 20);
                Self::first(Answer::status(200).header("x-long", &value).into())
            }
            "HTTP/2 GOAWAY" => Self::streamed(ca, StreamAnswer::GoAway),
            "HTTP/2 REFUSED_STREAM" => Self::streamed(ca, StreamAnswer::Refuse),
            "body cut" => Self::first(Answer::CutBody {
                declared: 100,
                sent: 7,
            }),
            "chunks cut" => Self::first(Answer::CutChunked),
            "reset in the body" => Self::of([resetting_in_the_body()]),
            "stalled body" => Self::first(Answer::Drip {
                total: 10,
                every: PATIENT,
                chunk: 5,
            })
            .impatient(),
            status => return Self::answering(status),
        })
    }

    fn answering(name: &str) -> Option<Self> {
        let (status, rest) = name.split_at_checked(3)?;
        let reply = Answer::status(status.parse().ok()?);
        let soon = reply.clone().header("retry-after-ms", "50");
        Some(match rest {
            "" => Self::first(reply.body("because").into()),
            " empty" => Self::first(reply.into()),
            " later" => Self::first(soon.body("because").into()),
            " later, empty" => Self::first(soon.into()),
            " to nowhere" => Self::first(reply.header("location", "http://[::zz]/").into()),
            " to a close" => Self::redirecting(reply, Answer::CloseAfterRequest),
            " to a 429" => {
                let soon = Answer::status(429).header("retry-after-ms", "50");
                Self::redirecting(reply, soon.into())
            }
            _ => return None,
        })
    }

    fn of<const N: usize>(targets: [Target; N]) -> Self {
        Self {
            origins: targets.iter().map(Target::origin).collect(),
            timeout: PATIENT,
            targets: targets.into(),
            _kept: None,
        }
    }

    fn impatient(self) -> Self {
        Self {
            timeout: IMPATIENT,
            ..self
        }
    }

    fn first(fault: Answer) -> Self {
        Self::of([Target::start(once(fault))])
    }

    fn streamed(ca: &TestCa, fault: StreamAnswer) -> Self {
        let answered = Answer::status(200).into();
        Self::of([tls::h2(ca, H2Script::list(vec![fault, answered]))])
    }

    fn redirecting(reply: crate::support::loopback::Reply, then: Answer) -> Self {
        let there = Target::start(once(then));
        let reply = reply.header("location", &there.url("/there"));
        Self::of([Target::start(Script::always(reply)), there])
    }

    /// A name of its own, which nobody finds.
    fn nameless() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            origins: vec![format!("http://nowhere-{number}.test")],
            ..Self::of([])
        }
    }

    /// Bound and not listening, so that no other test is given the port meanwhile.
    fn refusing() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(any).expect("a free port");
        let addr = socket.local_addr().expect("a bound socket has an address");
        Self {
            origins: vec![format!("http://{addr}")],
            _kept: Some(Kept::Refusing(socket)),
            ..Self::of([])
        }
    }

    /// Accepts nobody, and has no room for more who wait to be.
    fn swamped() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(any).expect("a free port");
        let listener = socket.listen(1).expect("a bound socket listens");
        let addr = listener
            .local_addr()
            .expect("a bound socket has an address");
        let wait = Duration::from_millis(50);
        let waiting = std::iter::from_fn(|| TcpStream::connect_timeout(&addr, wait).ok());
        let waiting = waiting.collect();
        Self {
            origins: vec![format!("http://{addr}")],
            _kept: Some(Kept::Swamped((listener, waiting))),
            ..Self::of([])
        }
    }
}

/// Does this to the first request and answers the others.
fn once(fault: Answer) -> Script {
    Script::list(vec![fault, Answer::status(200).body("late").into()])
}

/// What a server says to a handshake on a port without TLS.
fn speaking_in_clear_text() -> Target {
    raw("https", |mut tcp, _, _| async move {
        tcp.read_u8().await?;
        tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await
    })
}

fn resetting_in_the_handshake() -> Target {
    raw("https", |mut tcp, _, _| async move {
        tcp.read_u8().await?;
        tcp.set_zero_linger()
    })
}

/// Resets the first connection in the middle of a body.
fn resetting_in_the_body() -> Target {
    raw("http", |mut tcp, log, nth| async move {
        hear(&mut tcp, &log).await?;
        let length = if nth == 0 { 100 } else { 4 };
        let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\nlate");
        tcp.write_all(reply.as_bytes()).await?;
        if nth == 0 {
            // The client must have read what was sent: RST throws away what it has not.
            tokio::time::sleep(Duration::from_millis(300)).await;
            tcp.set_zero_linger()?;
        }
        Ok(())
    })
}
