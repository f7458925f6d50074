//! The house is built in one order, and this file keeps it.
//!
//! The `mod` lines of `src/lib.rs` are the order of dependence: a room may name
//! the rooms listed before it, and no other. A file too long to be held in
//! one's head and a module named for anything are refused in the same way.
//! Comments and tests are exempt. Lines are trusted to lie as rustfmt lays them.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Lines a file may have outside its tests.
const LONGEST: usize = 400;
/// Names that say nothing about what a module holds, so that everything ends there.
const VAGUE: [&str; 5] = ["error", "types", "utils", "common", "app_state"];

/// The text of every source file, by its path below `src`.
type House = BTreeMap<String, String>;

#[derive(Debug, PartialEq, Eq)]
struct Fault {
    file: String,
    line: usize,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Upward(String),
    NoRoom(String),
    Unlisted,
    TooLong(usize),
    Vague(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src/{}:{}: ", self.file, self.line)?;
        match &self.what {
            What::Upward(room) => write!(f, "`{room}` stands further down in lib.rs"),
            What::NoRoom(name) => write!(f, "`crate::{name}` is no room; name the room it is in"),
            What::Unlisted => write!(f, "the file belongs to no room of lib.rs"),
            What::TooLong(lines) => write!(f, "{lines} lines are no test; {LONGEST} may be"),
            What::Vague(name) => write!(f, "`{name}` could hold anything; name what it holds"),
        }
    }
}

/// A file as the rules see it.
struct Source<'a> {
    file: &'a str,
    /// Its lines, empty where a comment or a test stood, so that places keep their numbers.
    code: String,
    /// How many lines are no test.
    length: usize,
    /// Modules that it declares for tests only, as paths without `.rs`.
    test_modules: Vec<String>,
}

impl<'a> Source<'a> {
    fn read(file: &'a str, text: &str) -> Self {
        let mut source = Self {
            file,
            code: String::new(),
            length: 0,
            test_modules: Vec::new(),
        };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.trim_start() == "#[cfg(test)]" {
                source.skip_test(margin(line), &mut lines);
            } else {
                source.code.push_str(without_comment(line));
                source.length += 1;
            }
            source.code.push('\n');
        }
        source
    }

    /// Passes over the item that follows `#[cfg(test)]`. A module with its body ends the file:
    /// clippy's `items_after_test_module` holds that nothing follows it.
    fn skip_test<'t>(&mut self, depth: usize, lines: &mut impl Iterator<Item = &'t str>) {
        let mut to_end = false;
        for line in lines {
            self.code.push('\n');
            if margin(line) != depth || to_end {
                continue;
            }
            if let Some(name) = modules(line).next() {
                let module = folder(self.file) + name;
                self.test_modules.push(module);
                to_end = true;
            }
            if line.ends_with([';', '}', ',']) {
                break;
            }
        }
    }

    /// The first part of its path: `budget` for `budget.rs` and `budget/limit.rs`.
    fn room(&self) -> &'a str {
        let first = self.file.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Every name that stands right below the crate's root in a path, with its line.
    fn below_root(&self) -> Vec<(usize, &str)> {
        self.named("crate::", heads)
    }

    /// The same where a path climbs to the root by `super::`.
    fn below_root_by_super(&self) -> Vec<(usize, &str)> {
        let depth = folder(self.file).matches('/').count();
        self.named("super::", |mut rest| {
            let mut climbed = 1;
            while let Some(higher) = rest.strip_prefix("super::") {
                (rest, climbed) = (higher, climbed + 1);
            }
            if climbed == depth {
                heads(rest)
            } else {
                Vec::new()
            }
        })
    }

    fn named<'s>(
        &'s self,
        start: &'static str,
        names: impl Fn(&'s str) -> Vec<&'s str>,
    ) -> Vec<(usize, &'s str)> {
        let mut found = Vec::new();
        for (before, rest) in around(&self.code, start) {
            let line = before.matches('\n').count() + 1;
            found.extend(names(rest).into_iter().map(|name| (line, name)));
        }
        found
    }
}

/// Every fault of a house, file by file.
fn faults(house: &House) -> Vec<Fault> {
    let sources: Vec<_> = house
        .iter()
        .map(|(file, text)| Source::read(file, text))
        .collect();
    let map = sources.iter().find(|source| source.file == "lib.rs");
    let rooms: Vec<&str> = map
        .iter()
        .flat_map(|source| modules(&source.code))
        .collect();
    let test_modules: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| &source.test_modules)
        .map(String::as_str)
        .collect();
    sources
        .iter()
        .filter(|source| !is_test(source.file, &test_modules))
        .flat_map(|source| faults_of(source, &rooms))
        .collect()
}

fn faults_of(source: &Source<'_>, rooms: &[&str]) -> Vec<Fault> {
    let at = |line, what| Fault {
        file: source.file.to_owned(),
        line,
        what,
    };
    let mut found = Vec::new();
    if source.length > LONGEST {
        found.push(at(1, What::TooLong(source.length)));
    }
    for (line, name) in source.named("mod ", |rest| vec![word(rest)]) {
        if VAGUE.contains(&name) {
            found.push(at(line, What::Vague(name.to_owned())));
        }
    }
    if matches!(source.room(), "lib" | "main" | "bin") {
        return found;
    }
    let Some(own) = rooms.iter().position(|room| *room == source.room()) else {
        found.push(at(1, What::Unlisted));
        return found;
    };
    let is_later = |name: &str| {
        rooms
            .iter()
            .position(|room| *room == name)
            .map(|at| at > own)
    };
    for (line, name) in source.below_root() {
        match is_later(name) {
            Some(true) => found.push(at(line, What::Upward(name.to_owned()))),
            Some(false) => {}
            None => found.push(at(line, What::NoRoom(name.to_owned()))),
        }
    }
    // A name that is no room passes here: from an inline module `super` is its own file.
    for (line, name) in source.below_root_by_super() {
        if is_later(name) == Some(true) {
            found.push(at(line, What::Upward(name.to_owned())));
        }
    }
    found
}

fn is_test(file: &str, test_modules: &BTreeSet<&str>) -> bool {
    let path = Path::new(file).with_extension("");
    path.ancestors().any(|part| {
        part.to_str()
            .is_some_and(|part| test_modules.contains(part))
    })
}

/// Where the modules declared in `file` lie: `budget/` for `budget.rs` and `budget/mod.rs`.
fn folder(file: &str) -> String {
    match file.rsplit_once('/') {
        Some((inside, "mod.rs")) => format!("{inside}/"),
        None if matches!(file, "lib.rs" | "main.rs") => String::new(),
        _ => format!("{}/", file.strip_suffix(".rs").unwrap_or(file)),
    }
}

/// The modules that `code` declares, in its order.
fn modules(code: &str) -> impl Iterator<Item = &str> {
    around(code, "mod ").map(|(_, rest)| word(rest))
}

/// What lies before and after each `start` that is not the end of a longer word.
fn around<'a>(code: &'a str, start: &'static str) -> impl Iterator<Item = (&'a str, &'a str)> {
    code.match_indices(start)
        .map(|(place, _)| code.split_at(place))
        .filter(|(before, _)| !before.ends_with(is_word))
        .filter_map(move |(before, found)| Some((before, found.strip_prefix(start)?)))
}

/// The first name of a path, or of each path in a braced group.
fn heads(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![word(rest)];
    };
    let mut depth = 1;
    let is_end = move |letter| {
        depth += brace(letter);
        depth == 0
    };
    let (inside, _) = group.split_at(group.find(is_end).unwrap_or(group.len()));
    let mut depth = 0;
    let is_between = move |letter| {
        depth += brace(letter);
        depth == 0 && letter == ','
    };
    inside
        .split(is_between)
        .map(word)
        .filter(|name| !name.is_empty())
        .collect()
}

fn brace(letter: char) -> i32 {
    match letter {
        '{' => 1,
        '}' => -1,
        _ => 0,
    }
}

/// The identifier that `text` starts with; `*` is one here.
fn word(text: &str) -> &str {
    let text = text.trim_start();
    if text.starts_with('*') {
        return "*";
    }
    text.split(|letter| !is_word(letter))
        .next()
        .unwrap_or_default()
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn margin(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// `line` up to a `//` that stands in no string.
fn without_comment(line: &str) -> &str {
    line.match_indices("//")
        .map(|(place, _)| line.split_at(place).0)
        .find(|code| code.matches('"').count() % 2 == 0)
        .unwrap_or(line)
}

fn read_into(house: &mut House, folder: &Path, src: &Path) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_into(house, &path, src);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
            house.insert(file, std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_room_stands_on_the_rooms_above_its_line() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut house = House::new();
    read_into(&mut house, &src, &src);
    let found: Vec<String> = faults(&house).iter().map(ToString::to_string).collect();
    assert!(house.len() > 1, "no rooms below {}", src.display());
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

fn fault(file: &str, line: usize, what: What) -> Fault {
    Fault {
        file: file.to_owned(),
        line,
        what,
    }
}

/// The faults of a house of the rooms `clock`, `budget`, `cli` with `text` as its file `file`.
fn faults_with(file: &str, text: &str) -> Vec<Fault> {
    let map = "pub mod clock;\nmod budget;\n#[cfg(feature = \"cli\")]\npub mod cli;";
    let mut house = house(&[("lib.rs", map), ("clock.rs", ""), ("cli.rs", "")]);
    house.extend(self::house(&[("budget/mod.rs", ""), (file, text)]));
    faults(&house)
}

fn house(files: &[(&str, &str)]) -> House {
    files
        .iter()
        .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn a_use_of_a_later_room_is_found_at_its_line() {
    let rows = [
        (1, "budget", "use crate::budget;"),
        (2, "cli", "\npub(crate) use crate::cli::A;"),
        (1, "cli", "use crate::{\n    clock,\n    cli::{B, C},\n};"),
        (1, "budget", "use crate::{clock::{self, A}, budget::*};"),
        (2, "cli", "fn f() {\n    crate::cli::go();\n}"),
        (1, "cli", "pub(in crate::cli) fn f() {}"),
        (1, "cli", "#[serde(with = \"crate::cli::a\")]"),
        (1, "cli", "const A: &str = \"a://b\"; use crate::cli;"),
        (1, "cli", "use super::cli::A;"),
        (1, "budget", "use super::{budget, clock::A as B};"),
        (4, "cli", "#[cfg(test)]\nmod tests;\n\nuse crate::cli::A;"),
        (3, "cli", "#[cfg(test)]\nuse crate::cli;\nuse crate::cli;"),
        (4, "cli", "#[cfg(test)]\nfn f() {\n}\nuse crate::cli;"),
        (3, "cli", "    #[cfg(test)]\n    a: A,\n    b: crate::cli,"),
    ];
    for (line, room, text) in rows {
        let upward = fault("clock.rs", line, What::Upward(room.into()));
        assert_eq!(faults_with("clock.rs", text), [upward], "{text}");
    }
    for (file, text) in [
        ("budget/mod.rs", "use super::cli::A;"),
        ("budget/limit.rs", "use super::super::cli::A;"),
    ] {
        let upward = fault(file, 1, What::Upward("cli".into()));
        assert_eq!(faults_with(file, text), [upward]);
    }
}

#[test]
fn an_earlier_room_and_a_comment_and_a_test_are_free() {
    let rows = [
        ("cli.rs", "use crate::{budget::A, clock};\nuse crate::cli;"),
        ("budget/mod.rs", "use super::clock;\nuse crate::clock::A;"),
        ("budget/limit.rs", "use super::cli::ThatOfTheBudget;"),
        ("clock.rs", "//! [`crate::cli`]\nfn f() {} // crate::cli"),
        ("clock.rs", "#[cfg(test)]\nmod tests {\n    use crate::cli;"),
        ("clock.rs", "#[cfg(test)]\nmod tests {\n}\n\";\ncrate::cli;"),
        (
            "clock.rs",
            "#[cfg(test)]\nfn f() {\n    a;\n    crate::cli\n}",
        ),
        ("clock.rs", "mod sealed {\n    impl A for super::B {}\n}"),
        ("clock.rs", "my_crate::cli::go();"),
        ("lib.rs", "mod clock;\nmod budget;\nmod cli;\nuse crate::A;"),
        ("main.rs", "use tidegate::cli;\nuse crate::anything;"),
    ];
    for (file, text) in rows {
        assert_eq!(faults_with(file, text), [], "{file}: {text}");
    }
}

#[test]
fn a_file_is_a_test_only_where_its_parent_says_so() {
    let rows = [
        ("clock.rs", "#[cfg(test)]\nmod tests;", "tests.rs", 0),
        ("clock.rs", "#[cfg(test)]\nmod tests;", "tests/more.rs", 0),
        ("clock/mod.rs", "#[cfg(test)]\nmod tests;", "tests.rs", 0),
        ("clock.rs", "#[cfg(test)]\nmod tests;", "testing.rs", 1),
        ("clock.rs", "mod tests;", "tests.rs", 1),
    ];
    for (parent, text, child, count) in rows {
        let map = ("lib.rs", "mod clock;\nmod cli;");
        let child = format!("clock/{child}");
        let house = house(&[map, (parent, text), (&child, "use crate::cli::A;")]);
        assert_eq!(faults(&house).len(), count, "{parent}: {text} {child}");
    }
}

#[test]
fn a_room_is_not_reached_through_the_window_of_lib_rs() {
    for (text, name) in [("use crate::Flags;", "Flags"), ("use crate::*;", "*")] {
        let no_room = fault("clock.rs", 1, What::NoRoom(name.into()));
        assert_eq!(faults_with("clock.rs", text), [no_room]);
    }
}

#[test]
fn a_file_outside_every_room_is_found() {
    for file in ["attic.rs", "attic/mod.rs", "attic/box.rs"] {
        assert_eq!(faults_with(file, ""), [fault(file, 1, What::Unlisted)]);
    }
}

#[test]
fn line_401_before_the_tests_is_one_too_many() {
    let tests = "#[cfg(test)]\nmod tests {\n".to_owned() + &"    // a test\n".repeat(500);
    for file in ["clock.rs", "main.rs", "budget/limit.rs"] {
        let code = "// a line\n".repeat(LONGEST);
        assert_eq!(faults_with(file, &format!("{code}{tests}")), []);
        let too_long = fault(file, 1, What::TooLong(401));
        let text = format!("{code}// one more\n{tests}");
        assert_eq!(faults_with(file, &text), [too_long]);
    }
    let below = format!("#[cfg(test)]\nmod tests;\n{}", "// a line\n".repeat(401));
    assert_eq!(faults_with("clock.rs", &below).len(), 1);
}

#[test]
fn a_module_named_for_anything_is_found() {
    for name in VAGUE {
        for (file, text, line) in [
            ("clock.rs", format!("pub(crate) mod {name};"), 1),
            ("budget/mod.rs", format!("mod limit;\nmod {name} {{\n}}"), 2),
            ("lib.rs", format!("mod clock;\nmod budget;\nmod {name};"), 3),
        ] {
            let vague = fault(file, line, What::Vague(name.into()));
            assert!(faults_with(file, &text).contains(&vague), "{text}");
        }
    }
    let longer = "mod errors_of_the_clock;\nmod typesetting;";
    assert_eq!(faults_with("clock.rs", longer), []);
}

#[test]
fn every_fault_says_where_it_is() {
    let whats = [
        What::Upward("cli".into()),
        What::NoRoom("Flags".into()),
        What::Unlisted,
        What::TooLong(401),
        What::Vague("utils".into()),
    ];
    for what in whats {
        let said = fault("clock.rs", 7, what).to_string();
        assert!(said.starts_with("src/clock.rs:7: "), "{said}");
    }
}
