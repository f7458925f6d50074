//! Addresses that stand in the URL itself.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use tidegate::egress::Sent;

use crate::support::gate::names;
use crate::support::loopback::{Answer, Script, Target};
use crate::{URLS, is_refused, opening, rows};

#[tokio::test]
async fn every_closed_address_is_refused_and_takes_nothing() {
    let mut by_ranges: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (url, allowed, expected) in rows(URLS) {
        if expected != "open" {
            by_ranges.entry(allowed).or_default().push((url, expected));
        }
    }
    assert!(by_ranges.values().map(Vec::len).sum::<usize>() > 60);
    for (allowed, urls) in by_ranges {
        for (url, why) in urls {
            // A gate each, for two spellings of one address share a budget and a record.
            is_refused(&opening(allowed).open(), url, why).await;
        }
    }
}

#[tokio::test]
async fn a_range_opens_its_own_addresses_and_no_others() {
    let at = |last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    let (open, closed) = (Target::on(at(1), answered()), Target::on(at(2), answered()));
    let gate = opening("127.0.0.1/32").open();
    is_refused(&gate, &closed.url("/"), "loopback addresses").await;
    let sent = gate.send("GET", &open.url("/")).await;
    assert!(matches!(sent, Sent::Answered(_)), "{sent:?}");
    assert_eq!((open.arrivals().len(), closed.connections()), (1, 0));
}

#[tokio::test]
async fn every_spelling_of_an_open_address_is_the_same_target() {
    let target = Target::start(answered());
    let gate = opening("127.0.0.0/8").open();
    let port = target.addr().port();
    for (number, host) in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"]
        .into_iter()
        .enumerate()
    {
        let sent = gate.send("GET", &format!("http://{host}:{port}/")).await;
        assert!(matches!(sent, Sent::Answered(_)), "{host}: {sent:?}");
        assert_eq!(target.arrivals().len(), number + 1, "{host}");
        assert_eq!(gate.spent(&target.origin()), number as u64 + 1, "{host}");
    }
}

#[tokio::test]
async fn localhost_needs_an_open_range_and_is_called_over_its_open_family() {
    let target = Target::start(answered());
    let port = target.addr().port();
    let both = [
        IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        IpAddr::from([127, 0, 0, 1]),
    ];
    for host in ["localhost", "localhost.", "LOCALHOST", "api.localhost"] {
        let url = format!("http://{host}:{port}/");
        let mut setup = opening("");
        setup.wire.lookup = names([("localhost", &both), ("api.localhost", &both)]);
        is_refused(&setup.open(), &url, "loopback names").await;
        assert_eq!(target.connections(), 0, "{host}");
    }
    for (number, host) in ["localhost", "localhost.", "LOCALHOST", "api.localhost"]
        .into_iter()
        .enumerate()
    {
        let mut setup = opening("127.0.0.0/8");
        setup.wire.lookup = names([("localhost", &both), ("api.localhost", &both)]);
        let gate = setup.open();
        let sent = gate.send("GET", &format!("http://{host}:{port}/")).await;
        assert!(matches!(sent, Sent::Answered(_)), "{host}: {sent:?}");
        assert_eq!(target.arrivals().len(), number + 1, "{host}");
    }
}

fn answered() -> Script {
    Script::always(Answer::status(200))
}
