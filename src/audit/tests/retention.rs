use std::time::Duration;

use super::bench::*;
use crate::audit::retention::pruned;
use crate::audit::*;
use crate::store::Space;

const DAY: Duration = Duration::from_hours(24);

/// Ten calls a day, from noon of the first day on.
fn days(bench: &Bench, days: u32) {
    for day in 0..days {
        for n in 0..10 {
            let target = format!("https://day{day}-{n}.test");
            bench.call(intent(&target, "scout", bench.now()), MINUTE);
            bench.clock.advance(2 * HOUR);
        }
        bench.clock.advance(4 * HOUR - 10 * MINUTE);
    }
    bench.log().close().wait_blocking().unwrap();
}

fn retain(bench: &Bench, keep: Duration) {
    while bench.log().retain(keep).unwrap() == Retained::More {}
}

fn volumes(bench: &Bench) -> usize {
    std::fs::read_dir(bench.folder().join("record"))
        .unwrap()
        .count()
}

/// What is left is one chain, and begins where the record says it was cut.
fn assert_whole(bench: &Bench) {
    bench.flush();
    let cut = pruned(bench.store())
        .unwrap()
        .map(|cut| cut.head)
        .unwrap_or_default();
    let (mut number, mut hash) = (cut.number, cut.hash);
    for segment in bench.segments() {
        let place = segment.header.place;
        assert_eq!((place.number, place.previous), (number + 1, hash));
        (number, hash) = (place.number, segment.hash);
    }
    let all = bench.all();
    let told = all.iter().rev().find_map(|found| match &found.event {
        Event::Pruned { segment, hash, .. } => Some((*segment, hash.to_string())),
        _ => None,
    });
    if let Some((segment, told)) = told {
        assert_eq!(segment, cut.number);
        assert_eq!(told, blake3::Hash::from_bytes(cut.hash).to_hex().as_str());
    }
}

#[test]
fn whole_days_go_and_the_rest_is_a_chain_that_begins_where_the_record_says() {
    let mut bench = Bench::new();
    days(&bench, 6);
    let before = bench.all();
    let names = bench.store().scan_bytes(Space::Name, ..).count();
    assert_eq!(volumes(&bench), 7);
    retain(&bench, 30 * DAY);
    assert_eq!(bench.all(), before, "nothing is old enough");
    retain(&bench, 2 * DAY);
    // It is noon: of the day before yesterday some is within two days.
    assert_eq!(volumes(&bench), 3);
    let from = bench.now().before(2 * DAY + 12 * HOUR);
    let left = bench.all();
    let kept: Vec<_> = before
        .iter()
        .filter(|found| found.event.at() >= from)
        .collect();
    assert!(kept.len() > 20);
    assert!(
        left.iter().take(kept.len()).eq(kept),
        "what is kept is as it was"
    );
    let told = left.iter().filter_map(|found| match &found.event {
        Event::Pruned { day, .. } => Some(&**day),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(
        told,
        ["2025-12-01", "2025-12-02", "2025-12-03", "2025-12-04"]
    );
    assert!(bench.store().scan_bytes(Space::Name, ..).count() < names / 2);
    assert_whole(&bench);
    assert!(bench.restart().is_empty());
    assert_eq!(bench.all(), left);
    days(&bench, 1);
    assert_whole(&bench);
    let truncated = |found: &Recorded| matches!(found.event, Event::Truncated { .. });
    assert!(!bench.all().iter().any(truncated));
}

#[test]
fn calls_under_way_and_the_day_that_is_written_to_stay() {
    let mut bench = Bench::new();
    let (number, durable) = bench
        .log()
        .begin(intent("https://a.test", "scout", bench.now()));
    durable.wait_blocking().unwrap();
    days(&bench, 1);
    bench.clock.advance(90 * DAY);
    retain(&bench, Duration::ZERO);
    bench.flush();
    assert_eq!(under_way(bench.store()).unwrap().len(), 1);
    assert_eq!(bench.restart()[0].number, number);
    assert_whole(&bench);
}

#[test]
fn a_kill_within_a_pruning_leaves_a_store_that_opens() {
    let mut bench = Bench::new();
    days(&bench, 4);
    let folder = bench.folder().join("record");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let first = std::fs::read(&files[0]).unwrap();
    assert_eq!(bench.log().retain(DAY).unwrap(), Retained::More);
    assert!(!files[0].exists());
    // As if it had been killed before the file went.
    std::fs::write(&files[0], first).unwrap();
    bench.restart();
    assert!(
        !files[0].exists(),
        "what is pruned on record is gone when it is opened"
    );
    assert_whole(&bench);
    retain(&bench, DAY);
    assert_whole(&bench);
}

#[test]
fn a_reading_that_goes_on_passes_over_what_was_pruned() {
    let bench = Bench::new();
    days(&bench, 5);
    let expected = bench.all().len();
    let mut reading = events(bench.store(), Filter::default()).unwrap();
    let first = reading.next().unwrap().unwrap();
    retain(&bench, DAY);
    let rest: Vec<_> = reading.map(Result::unwrap).collect();
    assert!(rest.len() < expected && rest.iter().all(|found| found.number != first.number));
}

/// A year, in nanoseconds.
const YEAR: i64 = 365 * 86_400_000_000_000;

#[test]
fn a_boot_with_the_clock_far_ahead_lets_nothing_go() {
    let mut bench = Bench::new();
    days(&bench, 6);
    let before = bench.all();
    bench.clock.boot(73 * YEAR);
    bench.restart();
    days(&bench, 1);
    retain(&bench, 90 * DAY);
    let left = bench.all();
    assert!(left.iter().take(before.len()).eq(&before));
    assert_whole(&bench);
}

#[test]
fn days_begin_and_go_again_after_a_boot_with_the_clock_far_ahead() {
    for first in [None, Some(2)] {
        let mut bench = Bench::new();
        first.into_iter().for_each(|some| days(&bench, some));
        bench.clock.boot(73 * YEAR);
        bench.restart();
        days(&bench, 2);
        bench.clock.boot(0);
        bench.restart();
        let before = volumes(&bench);
        days(&bench, 6);
        assert!(volumes(&bench) >= before + 4, "{first:?}");
        retain(&bench, 2 * DAY);
        assert!((3..=4).contains(&volumes(&bench)), "{first:?}");
        assert_whole(&bench);
    }
}

#[test]
fn a_day_goes_with_what_the_disk_had_not_yet_of_it() {
    let bench = Bench::new();
    bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
    bench.log().close().wait_blocking().unwrap();
    // Closed, and in no segment when the day is over.
    bench.call(intent("https://late.test", "scout", bench.now()), MINUTE);
    bench.flush();
    bench.clock.advance(90 * DAY);
    let mut slow = crate::store::Changes::default();
    slow.then(|| std::thread::sleep(Duration::from_millis(300)));
    bench.store().write(slow).detach();
    bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
    bench.log().close().detach();
    retain(&bench, 30 * DAY);
    assert_whole(&bench);
    let known: Vec<_> = frames::volumes(bench.store())
        .map(|entry| entry.unwrap().0)
        .collect();
    assert_eq!(known.len(), 1);
    let blocks = bench.store().scan_bytes(Space::Block, ..);
    let of_known = blocks.filter(|entry| entry.as_ref().unwrap().0[..8] == known[0].to_be_bytes());
    let all = bench.store().scan_bytes(Space::Block, ..).count();
    assert_eq!(of_known.count(), all, "no block of a day that is gone");
}

fn copied(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn a_database_from_a_backup_costs_nothing_of_the_newer_record_beside_it() {
    for pruned in [false, true] {
        let mut bench = Bench::new();
        days(&bench, 3);
        bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
        bench.log().close().wait_blocking().unwrap();
        if pruned {
            bench.log().retain(DAY).unwrap();
        }
        bench.stop();
        let backup = tempfile::tempdir().unwrap();
        let database = bench.folder().join("db");
        copied(&database, backup.path());
        bench.restart();
        days(&bench, 3);
        bench.stop();
        let record = bench.folder().join("record");
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            std::fs::read(entry.unwrap().path()).unwrap()
        };
        let before: Vec<_> = std::fs::read_dir(&record).unwrap().map(read).collect();
        std::fs::remove_dir_all(&database).unwrap();
        copied(backup.path(), &database);
        bench.restart();
        days(&bench, 1);
        bench.restart();
        bench.flush();
        let after: Vec<_> = std::fs::read_dir(&record).unwrap().map(read).collect();
        for bytes in before {
            assert!(after.iter().any(|after| after.starts_with(&bytes)));
        }
    }
}

#[test]
fn a_copy_that_would_leave_too_little_room_is_refused_and_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let (tight, to) = (folder.path().join("tight"), folder.path().join("to"));
    let store = crate::store::Store::open(&tight, crate::store::IfMissing::Create, u64::MAX / 2);
    let store = store.unwrap();
    let error = copy(&store, &to).unwrap_err().to_string();
    assert!(error.contains("min_free = "), "{error}");
    assert!(!to.join("tidegate-store").exists());
}
