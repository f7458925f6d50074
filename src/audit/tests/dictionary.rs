use std::time::Duration;

use super::bench::*;
use crate::audit::names::{Lexicon, Names};
use crate::store::{Changes, Space};

#[test]
fn a_string_is_written_once_and_known_after_a_restart() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        for _ in 0..60 {
            bench.call(
                intent("https://a.test", "scout", bench.now()),
                Duration::from_millis(1),
            );
        }
        bench.restart();
    }
    // Target, method, agent, trajectory, goal, what we call ourselves.
    assert_eq!(bench.store().scan_bytes(Space::Name, ..).count(), 6);
}

#[test]
fn a_writer_remembers_so_many_strings_and_no_more() {
    let bench = Bench::new();
    let mut names = Names::remembering(bench.store(), 0, 4).unwrap();
    let mut written = Vec::new();
    let mut changes = Changes::default();
    for n in 0..100 {
        let texts = [format!("trajectory {n}"), "always".to_owned()];
        for text in texts {
            let number = names.number(&text, &mut changes);
            written.push((number, text));
        }
        assert!(names.remembered() <= 8);
    }
    let always: Vec<_> = written
        .iter()
        .filter(|(_, text)| text == "always")
        .collect();
    assert!(
        always.iter().all(|(number, _)| *number == always[0].0),
        "what is in use is kept"
    );
    assert_ne!(
        names.number("trajectory 0", &mut changes),
        written[0].0,
        "what is not is forgotten"
    );
    bench.store().write(changes).wait_blocking().unwrap();
    let mut lexicon = Lexicon::of(bench.store());
    for (number, text) in &written {
        assert_eq!(&*lexicon.text(*number).unwrap(), text);
    }
    let mut next = Names::remembering(bench.store(), 0, 4).unwrap();
    let mut changes = Changes::default();
    assert_eq!(next.number("trajectory 0", &mut changes), 101);
    assert!(changes.is_empty());
    assert_eq!(
        next.number("new", &mut changes),
        102,
        "a number is never given twice"
    );
}

#[test]
fn a_number_without_a_name_and_a_name_that_is_no_target_are_errors() {
    let bench = Bench::new();
    let mut names = Names::load(bench.store(), 0).unwrap();
    bench.change(|changes| {
        names.number("not a target", changes);
    });
    let mut lexicon = Lexicon::of(bench.store());
    assert!(lexicon.text(0).is_ok());
    assert!(lexicon.text(1).is_err());
    assert!(lexicon.target(0).is_err());
    assert!(lexicon.scope(0).is_err());
}
