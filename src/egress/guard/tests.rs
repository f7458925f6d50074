use std::collections::HashMap;
use std::error::Error;
use std::future::ready;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ipnet::IpNet;
use reqwest::dns::{Name, Resolve};
use url::Url;

use super::*;

const ADDRESSES: &str = include_str!("../../../tests/cases/addresses.tsv");
const ANSWERS: &str = include_str!("../../../tests/cases/answers.tsv");

struct Row<'a> {
    subject: &'a str,
    guard: Guard,
    outcome: &'a str,
}

fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [subject, ranges, outcome, _why] = columns[..] else {
                panic!("not four columns: {line:?}");
            };
            Row {
                subject,
                guard: guard(ranges),
                outcome,
            }
        })
}

fn guard(ranges: &str) -> Guard {
    Guard::new(listed::<IpNet>(ranges))
}

fn listed<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> Vec<T> {
    text.split(',')
        .filter(|item| !item.is_empty())
        .map(|item| item.parse().unwrap())
        .collect()
}

fn answering(answer: &str) -> Lookup {
    let answer = match answer {
        "!" => None,
        addresses => Some(listed::<IpAddr>(addresses)),
    };
    Arc::new(move |_| {
        let answer = answer.clone().ok_or(io::ErrorKind::NotFound.into());
        Box::pin(ready(answer))
    })
}

async fn resolved(
    resolver: &GuardedResolver,
    name: &str,
) -> Result<Vec<IpAddr>, Box<dyn Error + Send + Sync>> {
    let name: Name = name.parse().unwrap();
    let found = resolver.resolve(name).await?;
    Ok(found.map(|address| address.ip()).collect())
}

#[test]
fn every_literal_of_the_table_is_judged() {
    let mut judged = 0;
    for Row {
        subject,
        guard,
        outcome,
    } in rows(ADDRESSES)
    {
        let url = Url::parse(subject).unwrap();
        let found = match guard.check_host(url.host_str().unwrap()) {
            Ok(()) => "open".to_owned(),
            Err(blocked) => blocked.why.to_owned(),
        };
        assert_eq!(found, outcome, "{subject}");
        judged += 1;
    }
    assert_eq!(judged, ADDRESSES.lines().count() - 1);
}

#[test]
fn a_host_is_judged_alike_before_and_after_it_was_normalised() {
    for Row { subject, guard, .. } in rows(ADDRESSES) {
        let url = Url::parse(subject).unwrap();
        let (_, rest) = subject.split_once("//").unwrap();
        let (written, _) = rest.split_once('/').unwrap();
        let written = match url.port() {
            Some(port) => written.strip_suffix(&format!(":{port}")).unwrap(),
            None => written,
        };
        let why = |host| guard.check_host(host).map_err(|blocked| blocked.why);
        assert_eq!(why(written), why(url.host_str().unwrap()), "{subject}");
    }
}

#[test]
fn what_is_no_host_is_blocked() {
    let open_to_all = guard("0.0.0.0/0,::/0");
    for host in [
        "",
        "[",
        "[]",
        "[::1",
        "::1",
        "[::1%25lo]",
        "[fe80::1%eth0]",
        "256.256.256.256",
        "1.2.3.4.5",
        "0x100000000",
        "a b",
        "user@example.com",
        "example.com:80",
        "example.com/path",
        "exam\u{0}ple.com",
    ] {
        let blocked = open_to_all.check_host(host).unwrap_err();
        assert_eq!(blocked.why, "hosts that cannot be read", "{host:?}");
        assert_eq!(blocked.address_or_name, host);
    }
}

#[test]
fn a_refusal_reads_as_a_sentence_and_names_what_was_judged() {
    let guard = guard("");
    for (host, judged, sentence) in [
        (
            "169.254.169.254",
            "169.254.169.254",
            "link-local addresses are not reachable from here",
        ),
        (
            "[::ffff:a00:1]",
            "10.0.0.1",
            "private addresses are not reachable from here",
        ),
        (
            "[64:ff9b::a00:1]",
            "64:ff9b::a00:1",
            "private addresses are not reachable from here",
        ),
        (
            "Api.Localhost.",
            "Api.Localhost.",
            "loopback names are not reachable from here",
        ),
    ] {
        let blocked = guard.check_host(host).unwrap_err();
        assert_eq!(blocked.address_or_name, judged);
        assert_eq!(blocked.to_string(), sentence);
    }
}

#[tokio::test]
async fn every_answer_of_the_table_is_judged() {
    let mut judged = 0;
    for Row {
        subject,
        guard,
        outcome,
    } in rows(ANSWERS)
    {
        let (name, answer) = subject.split_once('=').unwrap();
        let resolver = GuardedResolver::new(Arc::new(guard), answering(answer));
        let found = match resolved(&resolver, name).await {
            Ok(addresses) => {
                let addresses: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
                addresses.join(",")
            }
            Err(error) => match blocked_in(&*error) {
                Some(blocked) => {
                    assert!(!unresolved_in(&*error), "{subject}");
                    blocked.why.to_owned()
                }
                None => {
                    assert!(unresolved_in(&*error), "{subject}: {error}");
                    "unresolved".to_owned()
                }
            },
        };
        assert_eq!(found, outcome, "{subject}");
        judged += 1;
    }
    assert_eq!(judged, ANSWERS.lines().count() - 1);
}

#[tokio::test]
async fn an_answer_that_turns_private_is_judged_anew() {
    let asked = AtomicUsize::new(0);
    let lookup: Lookup = Arc::new(move |_| {
        let answer = match asked.fetch_add(1, Ordering::Relaxed) {
            0 => "93.184.216.34",
            _ => "169.254.169.254",
        };
        Box::pin(ready(Ok(listed(answer))))
    });
    let resolver = GuardedResolver::new(Arc::new(guard("")), lookup);
    let first = resolved(&resolver, "rebind.example").await.unwrap();
    assert_eq!(first, listed::<IpAddr>("93.184.216.34"));
    let error = resolved(&resolver, "rebind.example").await.unwrap_err();
    let blocked = blocked_in(&*error).unwrap();
    assert_eq!(blocked.address_or_name, "169.254.169.254");
}

#[tokio::test]
async fn a_failed_look_up_keeps_its_cause_and_an_empty_one_says_so() {
    let open = Arc::new(guard(""));
    let failing = GuardedResolver::new(Arc::clone(&open), answering("!"));
    let error = resolved(&failing, "unknown.example").await.unwrap_err();
    assert_eq!(error.to_string(), "unknown.example could not be looked up");
    let source: &io::Error = error.source().unwrap().downcast_ref().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::NotFound);

    let empty = GuardedResolver::new(open, answering(""));
    let error = resolved(&empty, "empty.example").await.unwrap_err();
    assert_eq!(error.to_string(), "empty.example has no address");
    assert!(matches!(
        error.downcast_ref(),
        Some(Unresolved::NoAddress { name }) if name == "empty.example"
    ));
}

#[test]
fn a_refusal_is_found_under_io_errors_too() {
    let blocked = guard("").check_host("10.0.0.1").unwrap_err();
    let wrapped = io::Error::other(io::Error::other(blocked.clone()));
    assert_eq!(blocked_in(&wrapped), Some(&blocked));
    assert!(!unresolved_in(&wrapped));

    let name = "empty.example".to_owned();
    let wrapped = io::Error::other(Unresolved::NoAddress { name });
    assert!(unresolved_in(&wrapped));
    assert_eq!(blocked_in(&wrapped), None);

    let other = io::Error::from(io::ErrorKind::ConnectionRefused);
    assert_eq!(blocked_in(&other), None);
    assert!(!unresolved_in(&other));
}

#[tokio::test]
async fn pins_answer_for_their_names_and_leave_the_rest_to_the_fallback() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let fallback: Lookup = Arc::new(move |name| {
        log.lock().unwrap().push(name);
        Box::pin(ready(Ok(listed("192.0.2.1"))))
    });
    let pins = HashMap::from([
        ("Pinned.Example.".to_owned(), listed("192.0.2.7,192.0.2.8")),
        ("nowhere.example".to_owned(), Vec::new()),
    ]);
    let lookup = pinned_lookup(pins, fallback);
    for (name, answer) in [
        ("pinned.example", "192.0.2.7,192.0.2.8"),
        ("PINNED.example.", "192.0.2.7,192.0.2.8"),
        ("nowhere.example", ""),
        ("www.pinned.example", "192.0.2.1"),
    ] {
        let found = lookup(name.to_owned()).await.unwrap();
        assert_eq!(found, listed::<IpAddr>(answer), "{name}");
    }
    assert_eq!(*asked.lock().unwrap(), ["www.pinned.example"]);
}

#[tokio::test]
async fn the_system_knows_localhost() {
    let found = system_lookup()("localhost".to_owned()).await.unwrap();
    assert!(!found.is_empty());
    assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
}

#[test]
fn what_a_client_shares_between_threads_may_be_shared() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Guard>();
    shared::<GuardedResolver>();
    shared::<Blocked>();
    shared::<Unresolved>();
}
