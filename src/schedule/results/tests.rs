use tempfile::TempDir;

use super::*;

/// A store with results, and the file that should come of it.
struct Case {
    folder: TempDir,
    lines: Vec<String>,
}

impl Case {
    fn new(count: usize) -> Self {
        let line = |n| format!(r#"{{"id":"t{n}","error":"{}"}}"#, "é".repeat(n % 5));
        Self {
            folder: TempDir::new().unwrap(),
            lines: (0..count).map(line).collect(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("results.jsonl")
    }

    fn left(&self, content: impl AsRef<[u8]>) {
        fs::write(self.path(), content).unwrap();
    }

    fn found(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn whole(&self, count: usize) -> String {
        self.lines[..count]
            .iter()
            .map(|line| format!("{line}\n"))
            .collect()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn try_open(&self, count: usize) -> io::Result<Results> {
        let stored = |place| Ok(self.lines.get(usize::try_from(place).unwrap()).cloned());
        Results::open(&self.path(), &stored, count as u64)
    }

    fn open(&self, count: usize) -> Results {
        let results = self.try_open(count).unwrap();
        assert_eq!(self.found(), self.whole(count));
        assert_eq!(results.len(), count as u64);
        results
    }
}

#[test]
fn a_file_that_is_missing_is_made_from_the_store() {
    for count in [0, 1, 100_000] {
        let case = Case::new(count);
        let results = case.open(count);
        assert_eq!(
            (results.set_aside(), results.is_empty()),
            (None, count == 0)
        );
    }
}

#[test]
fn a_crash_at_any_byte_leaves_nothing_that_is_not_mended() {
    let case = Case::new(5);
    let (full, from) = (case.whole(5), case.whole(3).len());
    for count in 3..=5 {
        let most = case.whole(count).len();
        for cut in from..=most {
            case.left(&full.as_bytes()[..cut]);
            let mut results = case.open(count);
            assert_eq!(results.set_aside(), None, "{count} {cut}");
            for place in count..5 {
                results.append(place as u64, &case.lines[place]).unwrap();
            }
            assert_eq!(case.found(), full);
        }
    }
    assert_eq!(case.names(), ["results.jsonl"]);
}

#[test]
fn a_file_that_does_not_belong_to_the_store_is_set_aside_whole() {
    let case = Case::new(3);
    let first = case.whole(1);
    let mut set_aside = vec![];
    for foreign in [
        "{\"id\":\"other\"}\n".to_owned(),
        "no line at all".to_owned(),
        "\n".to_owned(),
        format!("{}{{\"id\":\"t3\"}}\n", case.whole(3)),
        format!("{}{{\"id\":\"t3\"", case.whole(3)),
        format!("{first}{{\"id\":\"x1\""),
        format!("{first}{}", "\0".repeat(4096)),
        case.whole(3).replace("t2", "x2"),
        "x".repeat(1_000_000) + "\n",
    ] {
        case.left(&foreign);
        let mut results = case.open(3);
        let kept = results.set_aside().unwrap().to_owned();
        assert_eq!(fs::read_to_string(&kept).unwrap(), foreign);
        assert!(!set_aside.contains(&kept), "{kept:?}");
        set_aside.push(kept);
        results.append(3, "{}").unwrap();
        assert_eq!(case.found(), case.whole(3) + "{}\n");
    }
    assert_eq!(case.names().len(), 1 + set_aside.len());
    assert_eq!(case.names()[1], "results.jsonl.old-1");
}

#[test]
fn a_file_ahead_of_its_store_is_set_aside() {
    let case = Case::new(5);
    case.left(case.whole(5));
    let results = case.open(2);
    assert_eq!(
        fs::read_to_string(results.set_aside().unwrap()).unwrap(),
        case.whole(5)
    );
}

#[test]
fn what_an_interrupted_rebuilding_left_is_removed() {
    let case = Case::new(3);
    case.left(case.whole(1));
    let new = beside(&case.path(), ".new");
    fs::write(&new, "half of").unwrap();
    case.open(3);
    assert_eq!(case.names(), ["results.jsonl"]);
}

#[test]
fn results_are_written_in_the_order_of_their_places_however_they_arrive() {
    let orders = (0..120).map(|number: usize| {
        let mut left: Vec<usize> = (0..5).collect();
        let picks = [24, 6, 2, 1, 1].map(|weight| number / weight);
        picks.map(|pick| left.remove(pick % left.len()))
    });
    for order in orders {
        let case = Case::new(7);
        let mut results = case.open(2);
        let mut arrived = vec![];
        for place in order.map(|place| place + 2) {
            arrived.push(place);
            results.append(place as u64, &case.lines[place]).unwrap();
            let next = (2..).find(|place| !arrived.contains(place)).unwrap();
            assert_eq!(case.found(), case.whole(next), "{order:?}");
            assert_eq!(results.len(), next as u64);
        }
    }
}

#[test]
fn a_result_that_is_there_already_is_not_written_twice() {
    let case = Case::new(3);
    let mut results = case.open(3);
    for place in 0..3 {
        results.append(place, &case.lines[0]).unwrap();
    }
    assert_eq!(case.found(), case.whole(3));
}

#[test]
fn what_is_not_one_line_is_refused() {
    let case = Case::new(1);
    let mut results = case.open(1);
    for line in ["", "\n", "{}\n", "{}\n{}"] {
        assert_eq!(
            results.append(1, line).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }
    assert_eq!(case.found(), case.whole(1));
}

#[test]
fn a_store_with_a_gap_is_an_error_and_the_file_stays() {
    let case = Case::new(2);
    case.left(case.whole(2));
    let error = case.try_open(4).unwrap_err();
    assert_eq!(error.to_string(), "the store lacks the result 2");
    assert_eq!(case.found(), case.whole(2));
    case.left("{\"id\":\"other\"}\n");
    assert!(case.try_open(4).is_err());
    assert_eq!(case.found(), "{\"id\":\"other\"}\n");
}

#[test]
fn a_store_that_cannot_be_read_is_an_error() {
    let case = Case::new(1);
    let fails = |_| Err(io::Error::other("no"));
    assert!(Results::open(&case.path(), &fails, 1).is_err());
    assert!(
        Results::open(case.folder.path(), &fails, 0).is_err(),
        "a folder is no file"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_could_not_be_written_is_written_with_the_next_one() {
    let case = Case::new(3);
    let mut results = case.open(1);
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let good = std::mem::replace(&mut results.file, full);
    results.append(2, &case.lines[2]).unwrap();
    assert!(results.append(1, &case.lines[1]).is_err());
    assert_eq!(results.len(), 1);
    assert_eq!(results.tail, Tail::Torn, "/dev/full cannot be cut back");
    results.file = good;
    results.file.write_all(b"half a li").unwrap();
    results.append(1, &case.lines[1]).unwrap();
    assert_eq!(case.found(), case.whole(3));
    assert_eq!(results.tail, Tail::Whole);
}
