//! Writes that are under way when the gate is killed.

use serde_json::json;

use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, eventually, text};

const WRITES: usize = 200;

#[test]
fn a_write_that_was_under_way_at_a_kill_is_ambiguous_and_never_sent_again() {
    let target = Target::start(Script::always(Answer::Silence));
    let site = Site::new(&format!(
        "[[target]]\nmatch = \"{}\"\nrate = \"2000/s\"\nburst = 400\nconcurrency = 200\n",
        target.origin()
    ));
    site.tasks(
        (0..WRITES)
            .map(|number| json!({"url": target.url(&format!("/{number}")), "method": "POST"})),
    );
    let run = site.run();
    eventually("all are under way", || target.arrivals().len() == WRITES);
    assert!(run.kill());
    // The first thing the next gate could do is to send them again.
    let said = site.run().end().with(3);
    assert!(said.err.contains("200 ambiguous; 0 left"), "{}", said.err);
    assert_eq!(target.arrivals().len(), WRITES);
    let results = site.results();
    assert_eq!(results.len(), WRITES);
    for result in results {
        assert_eq!(
            (text(&result, "outcome"), &result["attempts"]),
            ("ambiguous", &1.into())
        );
    }
}
