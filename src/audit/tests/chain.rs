use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use super::bench::*;
use crate::audit::*;
use crate::store::Space;

fn truncations(bench: &Bench) -> Vec<(u64, u64)> {
    let truncation = |found: &Recorded| match found.event {
        Event::Truncated {
            expected, found, ..
        } => Some((expected, found)),
        _ => None,
    };
    bench.all().iter().filter_map(truncation).collect()
}

fn cut(bench: &Bench, length: u64) {
    let file = File::options().write(true).open(bench.volume()).unwrap();
    file.set_len(length).unwrap();
}

fn some_calls(bench: &Bench, number: u64) {
    for _ in 0..number {
        bench.call(
            intent("https://a.test", "scout", bench.now()),
            Duration::from_millis(400),
        );
    }
}

#[test]
fn the_chain_goes_on_over_restarts() {
    let mut bench = Bench::new();
    for round in 0..5 {
        some_calls(&bench, 100 + round);
        if round % 2 == 0 {
            bench.log().close().wait_blocking().unwrap();
        }
        bench.restart();
        bench.assert_chained();
    }
    assert!(bench.segments().len() > 10);
    assert_eq!(truncations(&bench), []);
}

#[test]
fn the_chain_goes_on_where_a_late_event_is_packed_alone() {
    let mut bench = Bench::new();
    some_calls(&bench, 48);
    let long_ago = Event::Closed {
        gate: 9,
        at: START.before(HOUR),
    };
    bench.log().note(long_ago.clone()).detach();
    bench.clock.advance(2 * MINUTE);
    bench.log().turn();
    assert_eq!(
        bench.segments().len(),
        2,
        "the late event has a segment of its own"
    );
    bench.restart();
    some_calls(&bench, 48);
    bench.assert_chained();
    assert_eq!(bench.segments().len(), 3);
    let then = Filter {
        to: Some(START),
        ..Filter::default()
    };
    let read = bench.read(then);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].event, long_ago);
}

#[test]
fn an_end_that_was_cut_off_is_noticed_once() {
    let mut bench = Bench::new();
    some_calls(&bench, 200);
    bench.log().close().wait_blocking().unwrap();
    let last = bench.segments().pop().unwrap();
    let length = std::fs::metadata(bench.volume()).unwrap().len();
    cut(&bench, length - (12 + last.bytes as u64));
    let number = last.header.place.number;
    bench.restart();
    assert_eq!(truncations(&bench), [(number, number - 1)]);
    bench.restart();
    some_calls(&bench, 100);
    bench.log().close().wait_blocking().unwrap();
    bench.restart();
    assert_eq!(truncations(&bench), [(number, number - 1)]);
    bench.assert_chained();
}

#[test]
fn a_record_that_was_emptied_is_noticed() {
    let mut bench = Bench::new();
    some_calls(&bench, 100);
    bench.log().close().wait_blocking().unwrap();
    let segments = bench.segments();
    let number = segments.last().unwrap().header.place.number;
    cut(&bench, 0);
    bench.restart();
    assert_eq!(truncations(&bench), [(number, 0)]);
}

#[test]
fn a_head_that_lags_or_cannot_be_read_is_no_truncation() {
    let mut bench = Bench::new();
    for head in [None, Some("{}"), Some(""), Some("\u{0}")] {
        some_calls(&bench, 100);
        bench.log().close().wait_blocking().unwrap();
        let file = bench.folder().join("head");
        match head {
            None => std::fs::remove_file(&file).unwrap(),
            Some(text) => std::fs::write(&file, text).unwrap(),
        }
        bench.restart();
        assert_eq!(truncations(&bench), []);
    }
}

#[test]
fn the_head_beside_the_record_never_leads_it() {
    let bench = Bench::new();
    let file = bench.folder().join("head");
    for _ in 0..60 {
        some_calls(&bench, 10);
        bench.flush();
        let Ok(text) = std::fs::read(&file) else {
            continue;
        };
        let head: head::Head = serde_json::from_slice(&text).unwrap();
        let segments = bench.segments();
        let named = segments
            .iter()
            .find(|segment| segment.header.place.number == head.number);
        assert_eq!(named.unwrap().hash, head.hash);
    }
    assert!(file.exists());
}

#[test]
fn a_damaged_segment_is_an_error_and_hides_no_other() {
    let bench = Bench::new();
    some_calls(&bench, 48 * 5);
    let segments = bench.segments();
    let before: usize = segments[..2].iter().map(|segment| 12 + segment.bytes).sum();
    let file = File::options().write(true).open(bench.volume()).unwrap();
    file.write_all_at(&[0xFF; 40], before as u64 + 12).unwrap();
    let read: Vec<_> = events(bench.store(), Filter::default()).unwrap().collect();
    assert_eq!(read.iter().filter(|found| found.is_err()).count(), 1);
    assert_eq!(read.iter().filter(|found| found.is_ok()).count(), 48 * 4);
}

#[test]
fn an_event_whose_name_is_gone_is_an_error_and_not_left_out() {
    let bench = Bench::new();
    some_calls(&bench, 60);
    bench.flush();
    let mut names = bench
        .store()
        .scan::<String>(Space::Name, ..)
        .map(Result::unwrap);
    let (name, _) = names.find(|(_, text)| text == "scout").unwrap();
    drop(names);
    bench.change(|changes| changes.delete(Space::Name, &name));
    let read: Vec<_> = events(bench.store(), Filter::default()).unwrap().collect();
    assert_eq!(read.iter().filter(|found| found.is_err()).count(), 1);
    assert_eq!(
        read.iter().filter(|found| found.is_ok()).count(),
        12,
        "what is in no segment yet"
    );
}

/// Events that can be read, and errors.
fn readable(bench: &Bench, filter: Filter) -> (usize, usize) {
    bench.flush();
    let (whole, damaged): (Vec<_>, Vec<_>) = events(bench.store(), filter)
        .unwrap()
        .partition(Result::is_ok);
    let whole: Vec<_> = whole.into_iter().map(Result::unwrap).collect();
    (calls(&whole).len(), damaged.len())
}

/// Turns over every bit of a byte of the front of a segment.
fn damage(path: &std::path::Path, at: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
}

fn of_agent() -> Filter {
    Filter {
        agent: Some("scout".into()),
        from: Some(START.before(HOUR)),
        ..Filter::default()
    }
}

#[test]
fn a_damaged_front_at_the_end_of_the_log_hides_no_other_segment_before_or_after_a_restart() {
    for segment in [0, 2, 4] {
        for offset in 0..12 {
            let mut bench = Bench::new();
            some_calls(&bench, 48 * 5);
            let segments = bench.segments();
            assert_eq!(segments.len(), 5);
            let before: usize = segments[..segment]
                .iter()
                .map(|found| 12 + found.bytes)
                .sum();
            damage(&bench.volume(), (before + offset) as u64);
            // A time that is wrong costs nothing; a length costs its segment.
            let lost = usize::from(offset < 4);
            for filter in [Filter::default(), of_agent()] {
                let read = readable(&bench, filter);
                assert_eq!(read, (48 * (5 - lost), lost), "{segment} {offset}");
            }
            bench.restart();
            some_calls(&bench, 48 * 2);
            for _ in 0..2 {
                for filter in [Filter::default(), of_agent()] {
                    let read = readable(&bench, filter);
                    assert_eq!(read, (48 * (7 - lost), lost), "{segment} {offset}");
                }
                // Another day: what was loose is in a block then.
                bench.log().close().wait_blocking().unwrap();
                bench.clock.advance(24 * HOUR);
                bench.log().close().wait_blocking().unwrap();
                bench.restart();
            }
        }
    }
}

#[test]
fn a_damaged_front_in_a_block_hides_no_other_segment() {
    for offset in 0..12 {
        let mut bench = Bench::new();
        some_calls(&bench, 48 * 5);
        let first = bench.segments()[0].bytes;
        let path = bench.volume();
        bench.clock.advance(24 * HOUR);
        bench.log().close().wait_blocking().unwrap();
        damage(&path, (12 + first + offset) as u64);
        let lost = usize::from(offset < 4);
        for _ in 0..2 {
            for filter in [Filter::default(), of_agent()] {
                let read = readable(&bench, filter);
                assert_eq!(read, (48 * (5 - lost), lost), "{offset}");
            }
            bench.restart();
        }
    }
}
