//! The guard behind a real client, seen from the side of a loopback target.

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "looks at the client from outside"
)]

use std::error::Error;
use std::future::ready;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate::egress::guard::{Guard, GuardedResolver, Lookup, blocked_in, unresolved_in};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const OPEN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
// Closed, but of this machine, so that a broken guard sends nothing into anybody's network.
const CLOSED: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// Answers every connection once, closes it and counts it.
struct Target {
    port: u16,
    arrivals: Arc<AtomicUsize>,
}

impl Target {
    async fn start() -> Self {
        let listener = TcpListener::bind((OPEN, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let arrivals = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&arrivals);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                stream
                    .write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
                    .await
                    .unwrap();
            }
        });
        Self { port, arrivals }
    }

    fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/", self.port)
    }

    fn arrivals(&self) -> usize {
        self.arrivals.load(Ordering::SeqCst)
    }
}

struct Names {
    lookup: Lookup,
    asked: Arc<AtomicUsize>,
}

/// Gives the n-th answer to the n-th look-up, and the last one from then on.
fn answering(answers: &[&[IpAddr]]) -> Names {
    let answers: Vec<Vec<IpAddr>> = answers.iter().map(|answer| answer.to_vec()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let lookup: Lookup = Arc::new(move |_| {
        let nth = counter.fetch_add(1, Ordering::SeqCst);
        let answer = answers.get(nth).or(answers.last()).cloned();
        let answer = answer.ok_or_else(|| io::Error::other("no such name"));
        Box::pin(ready(answer))
    });
    Names { lookup, asked }
}

fn client(lookup: Lookup) -> reqwest::Client {
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls())
        .dns_resolver(GuardedResolver::new(Arc::new(guard), lookup))
        .build()
        .unwrap()
}

fn tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

#[tokio::test]
async fn a_name_in_an_open_range_is_reached() {
    let target = Target::start().await;
    let names = answering(&[&[OPEN]]);
    let url = target.url("inside.example");
    let answer = client(names.lookup).get(url).send().await.unwrap();
    assert_eq!(answer.status(), 204);
    assert_eq!(target.arrivals(), 1);
}

#[tokio::test]
async fn one_blocked_address_refuses_the_name_and_nothing_arrives() {
    for answer in [[OPEN, CLOSED], [CLOSED, OPEN]] {
        let target = Target::start().await;
        let names = answering(&[&answer]);
        let url = target.url("mixed.example");
        let error = client(names.lookup).get(url).send().await.unwrap_err();
        let blocked = blocked_in(&error).unwrap();
        assert_eq!(blocked.address_or_name, "::1");
        assert_eq!(blocked.why, "loopback addresses");
        assert!(error.is_connect() && error.is_dns() && !error.is_timeout());
        assert!(!unresolved_in(&error));
        assert_eq!(target.arrivals(), 0);
        assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn an_answer_that_turns_private_is_refused_on_the_next_connection() {
    let target = Target::start().await;
    let names = answering(&[&[OPEN], &[CLOSED]]);
    let client = client(names.lookup);
    let url = target.url("rebind.example");
    assert_eq!(client.get(&url).send().await.unwrap().status(), 204);
    let error = client.get(&url).send().await.unwrap_err();
    assert_eq!(blocked_in(&error).unwrap().address_or_name, "::1");
    assert_eq!(target.arrivals(), 1);
}

#[tokio::test]
async fn localhost_is_reached_over_its_open_family() {
    for host in ["localhost", "localhost.", "api.localhost"] {
        let target = Target::start().await;
        let names = answering(&[&[CLOSED, OPEN]]);
        let url = target.url(host);
        let answer = client(names.lookup).get(url).send().await.unwrap();
        assert_eq!(answer.remote_addr().unwrap().ip(), OPEN);
        assert_eq!(target.arrivals(), 1);
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_told_from_a_blocked_one() {
    for names in [answering(&[&[]]), answering(&[])] {
        let target = Target::start().await;
        let url = target.url("nowhere.example");
        let error = client(names.lookup).get(url).send().await.unwrap_err();
        assert!(unresolved_in(&error));
        assert!(error.is_connect() && error.is_dns());
        assert_eq!(blocked_in(&error), None);
        assert_eq!(target.arrivals(), 0);
    }
}

#[tokio::test]
async fn a_target_that_does_not_listen_is_neither() {
    let port = {
        let listener = TcpListener::bind((OPEN, 0)).await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("http://inside.example:{port}/");
    let names = answering(&[&[OPEN]]);
    let error = client(names.lookup).get(url).send().await.unwrap_err();
    assert!(error.is_connect() && !error.is_dns());
    assert!(!unresolved_in(&error));
    assert_eq!(blocked_in(&error), None);
}

// Why literals need `Guard::check_host`: the client never asks a resolver for them.
#[tokio::test]
async fn a_literal_passes_by_the_resolver() {
    let target = Target::start().await;
    let names = answering(&[&[CLOSED]]);
    let url = target.url("2130706433");
    let answer = client(names.lookup).get(url).send().await.unwrap();
    assert_eq!(answer.remote_addr().unwrap().ip(), OPEN);
    assert_eq!(names.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_refusal_is_the_root_of_the_chain() {
    let names = answering(&[&[CLOSED]]);
    let error = client(names.lookup)
        .get("http://inside.example/")
        .send()
        .await
        .unwrap_err();
    let mut root: &dyn Error = &error;
    while let Some(source) = root.source() {
        root = source;
    }
    assert_eq!(
        root.to_string(),
        "loopback addresses are not reachable from here"
    );
}
