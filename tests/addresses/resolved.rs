//! Addresses behind a name. They are known only once a permit is there, which is given back.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tidegate::egress::Sent;
use tidegate::egress::guard::Lookup;
use tidegate::outcome::{End, Outcome};

use crate::support::gate::{rate, task};
use crate::support::loopback::{Answer, Script, Target};
use crate::{NAMES, is_refused, opening, rows};

const OPEN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Of this machine, with a target on it, and in no open range.
const CLOSED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Gives the n-th answer to the n-th look-up, whatever the name, and the last one from then on.
fn answering(answers: Vec<Vec<IpAddr>>) -> (Lookup, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let lookup: Lookup = Arc::new(move |_| {
        let nth = count.fetch_add(1, Ordering::SeqCst);
        let answer = answers.get(nth).or(answers.last()).cloned();
        let answer = answer.filter(|found| !found.is_empty());
        Box::pin(std::future::ready(
            answer.ok_or_else(|| io::Error::other("no such name")),
        ))
    });
    (lookup, asked)
}

#[tokio::test]
async fn every_name_with_a_closed_address_is_refused_and_takes_nothing() {
    let target = Target::start(Script::always(Answer::status(200)));
    let mut asserted = 0;
    for (row, allowed, why) in rows(NAMES) {
        let (name, answer) = row.split_once('=').unwrap();
        let is_localhost = name.to_ascii_lowercase().contains("localhost") && allowed.is_empty();
        if !why.ends_with("addresses") || is_localhost {
            continue;
        }
        asserted += 1;
        let answer = answer.split(',').map(|ip| ip.parse().unwrap()).collect();
        let mut setup = opening(allowed);
        setup.wire.lookup = answering(vec![answer]).0;
        let gate = setup.open();
        let url = format!("http://{name}:{}/", target.addr().port());
        is_refused(&gate, &url, why).await;
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let ends = gate
            .ends(&format!("http://{name}:{}", target.addr().port()))
            .await;
        assert_eq!(ends, [End::Abandoned; 2], "{row}");
    }
    assert!(asserted >= 9, "{asserted}");
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn the_token_of_a_refused_name_is_there_for_the_next_call() {
    let target = Target::start(Script::always(Answer::status(200)));
    let (lookup, _) = answering(vec![vec![OPEN, CLOSED], vec![OPEN]]);
    let mut setup = opening("127.0.0.1/32");
    setup.wire.lookup = lookup;
    let gate = setup.rule("inside.test", vec![rate("1/h", 1)]).open();
    let url = format!("http://inside.test:{}/", target.addr().port());
    assert!(matches!(gate.send("GET", &url).await, Sent::Refused(_)));
    assert_eq!(gate.left(&url), 1);
    assert!(matches!(gate.send("GET", &url).await, Sent::Answered(_)));
    assert_eq!((gate.left(&url), target.arrivals().len()), (0, 1));
}

#[tokio::test]
async fn a_name_that_changes_its_answer_is_judged_at_every_connection() {
    let open = Target::start(Script::always(Answer::CloseAfterRequest));
    let port = open.addr().port();
    let (lookup, asked) = answering(vec![vec![OPEN], vec![CLOSED]]);
    let mut setup = opening("127.0.0.1/32");
    setup.wire.lookup = lookup;
    let gate = setup.open();
    let url = format!("http://rebind.test:{port}/");
    // The first attempt is not answered, so that the second one is about the same task.
    let results = gate
        .run(vec![task(&json!({"url": url, "max_attempts": 9}))])
        .await;
    assert_eq!(results[0].outcome, Outcome::Refused);
    assert_eq!(asked.load(Ordering::SeqCst), 2, "one look-up a connection");
    assert_eq!(open.arrivals().len(), 1);
    assert_eq!(gate.spent(&url), 1, "the first attempt's");
    let ends = gate.ends(&format!("http://rebind.test:{port}")).await;
    assert_eq!(ends, [End::Unanswered, End::Abandoned]);
}

#[tokio::test]
async fn what_was_judged_is_what_is_dialled() {
    let script = || Script::always(Answer::status(200).header("connection", "close"));
    let (open, closed) = (Target::start(script()), Target::on(CLOSED, script()));
    // A client that asked again before dialling would be told the other address.
    let (lookup, asked) = answering(vec![vec![OPEN], vec![CLOSED], vec![OPEN], vec![CLOSED]]);
    let mut setup = opening("127.0.0.1/32");
    setup.wire.lookup = lookup;
    let gate = setup.open();
    for port in [open.addr().port(), closed.addr().port()] {
        gate.send("GET", &format!("http://rebind.test:{port}/"))
            .await;
    }
    assert_eq!((open.arrivals().len(), closed.connections()), (1, 0));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
