//! What a target asked for outlives the gate that heard it.

use std::time::{Duration, SystemTime};

use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, eventually, text};

#[test]
fn a_pause_with_an_hour_to_go_is_kept_over_a_kill_and_listed_with_its_reason() {
    let refusal = Answer::status(429).header("retry-after", "3600");
    let target = Target::start(Script::always(refusal));
    let site = Site::new(&format!(
        "[[target]]\nmatch = \"{}\"\nrate = \"50/s\"\nburst = 5\n",
        target.origin()
    ));
    site.tasks((0..5).map(|number| target.url(&format!("/{number}"))));

    let mut run = site.run();
    site.until_open(&mut run);
    let listed = || site.row(&["targets"])["pause"].clone();
    eventually("the pause is in force", || listed().is_object());
    let before = listed();
    assert!(run.kill());
    let arrived = target.arrivals().len();
    assert!(arrived > 0);

    for _ in 0..2 {
        let again = site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "1s"]);
        let again = again.with(75);
        assert!(again.err.contains("5 left"), "{}", again.err);
        assert_eq!(target.arrivals().len(), arrived);
        // Nobody runs now: the store alone tells it.
        let row = site.row(&["targets"]);
        assert_eq!((text(&row, "state"), &row["pause"]), ("paused", &before));
        assert_eq!(row["ready_at"], before["until"]);
    }
    assert_eq!(text(&before, "because"), "throttled");
    assert!(text(&before, "reason").contains("429"), "{before}");
    assert!(text(&before, "reason").contains("3600"), "{before}");
    let until: jiff::Timestamp = text(&before, "until").parse().unwrap();
    let left = SystemTime::from(until)
        .duration_since(SystemTime::now())
        .unwrap();
    let hour = Duration::from_secs(3_600);
    assert!(left <= hour && left > hour - Duration::from_secs(60));
}
