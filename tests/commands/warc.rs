//! `run --warc`: exchanges as WARC files, read by a strict reader of our own.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use flate2::bufread::GzDecoder;
use serde_json::json;

use crate::support::loopback::{Answer, Request, Script, Target};
use crate::support::site::{Site, eventually, text};
use crate::{patient, rule};

/// A record; names of its head in lower case.
struct Found {
    head: BTreeMap<String, String>,
    block: Vec<u8>,
}

impl Found {
    fn get(&self, name: &str) -> &str {
        self.head.get(name).map_or("", String::as_str)
    }

    fn is(&self, kind: &str) -> bool {
        self.get("warc-type") == kind
    }

    /// The head and the body of the message in the block.
    fn message(&self) -> (String, &[u8]) {
        let end = self.block.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = self.block.split_at(end.unwrap() + 4);
        (String::from_utf8(head.to_vec()).unwrap(), body)
    }
}

fn files(site: &Site) -> Vec<PathBuf> {
    let entries = fs::read_dir(site.path("out/warc")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The records of a file that consists of whole gzip members of one record each.
fn records(file: &PathBuf) -> Vec<Found> {
    let bytes = fs::read(file).unwrap();
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let mut member = GzDecoder::new(rest);
        let mut record = Vec::new();
        member.read_to_end(&mut record).unwrap();
        rest = member.into_inner();
        records.push(read(&record));
    }
    let info = &records[0];
    assert!(info.is("warcinfo"), "{}", file.display());
    assert_eq!(
        info.get("warc-filename"),
        file.file_name().unwrap().to_str().unwrap()
    );
    assert_eq!(info.get("content-type"), "application/warc-fields");
    assert!(records[1..].iter().all(|record| !record.is("warcinfo")));
    records
}

fn read(record: &[u8]) -> Found {
    let end = record
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = std::str::from_utf8(&record[..end]).unwrap();
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("WARC/1.1"));
    let mut found = BTreeMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let before = found.insert(name.to_ascii_lowercase(), value.to_owned());
        assert!(before.is_none(), "{name} twice");
    }
    let length: usize = found["content-length"].parse().unwrap();
    let block = &record[end + 4..end + 4 + length];
    assert_eq!(&record[end + 4 + length..], b"\r\n\r\n");
    let id = &found["warc-record-id"];
    assert!(id.starts_with("<urn:uuid:") && id.ends_with('>'), "{id}");
    assert!(found["warc-date"].ends_with('Z'));
    Found {
        head: found,
        block: block.to_vec(),
    }
}

/// Pairs of a response and its request.
fn pairs(records: Vec<Found>) -> Vec<(Found, Found)> {
    let mut pairs = Vec::new();
    let mut records = records.into_iter().skip(1);
    while let Some(response) = records.next() {
        let request = records.next().unwrap();
        assert!(response.is("response") && request.is("request"));
        assert_eq!(
            request.get("warc-concurrent-to"),
            response.get("warc-record-id")
        );
        for name in ["warc-target-uri", "warc-date", "warc-ip-address"] {
            assert_eq!(request.get(name), response.get(name), "{name}");
        }
        let (_, payload) = response.message();
        assert_eq!(response.get("warc-payload-digest"), digest(payload));
        pairs.push((response, request));
    }
    pairs
}

fn digest(payload: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, payload);
    let bits: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:08b}"))
        .collect();
    let letter = |five: &[u8]| {
        let five = u8::from_str_radix(std::str::from_utf8(five).unwrap(), 2).unwrap();
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(five)])
    };
    let letters: String = bits.as_bytes().chunks(5).map(letter).collect();
    format!("sha1:{letters}")
}

#[test]
fn every_answer_is_archived_with_its_request_and_no_secret() {
    let pause = Answer::status(429)
        .header("retry-after", "1")
        .body("slow down");
    let long = "x".repeat(6 << 20);
    let script = Script::by_path([
        (
            "/page",
            Script::always(
                Answer::status(200)
                    .header("x-Served", "by me")
                    .body("a page"),
            ),
        ),
        (
            "/long",
            Script::always(Answer::status(200).body(long.clone())),
        ),
        ("/empty", Script::always(Answer::status(204))),
        (
            "/hop",
            Script::always(
                Answer::status(302)
                    .header("location", "/page?hop")
                    .body("over there"),
            ),
        ),
        (
            "/busy",
            Script::list(vec![pause, Answer::status(200).body("now")]),
        ),
        ("/down", Script::always(Answer::status(500).body("broken"))),
        ("/post", Script::always(Answer::status(200).body("taken"))),
    ]);
    let target = Target::start(script);
    let site = Site::new(&rule(&target, "100/s", 20));
    let with_userinfo = target
        .url("/page?u")
        .replace("http://", "http://ana:hunter2@");
    let headers = json!({"x-plain": "env:SECRET", "authorization": "Bearer hunter2", "cookie": "hunter2", "accept-language": "eo"});
    site.tasks([
        json!({"url": target.url("/page?a=1#part"), "headers": headers}),
        json!({"url": with_userinfo}),
        json!({"url": target.url("/long")}),
        json!({"url": target.url("/empty")}),
        json!({"url": target.url("/hop")}),
        json!({"url": target.url("/busy")}),
        json!({"url": target.url("/down"), "max_attempts": 1}),
        json!({"url": target.url("/none")}),
        json!({"url": target.url("/page"), "method": "HEAD"}),
        json!({"url": target.url("/post"), "method": "POST", "body": "a question"}),
    ]);
    let mut command = site.command(&["run", "tasks.jsonl", "--out", "out", "--warc"]);
    command.env("SECRET", "hunter2");
    site.launch(command).end().with(3);
    let files = files(&site);
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(
        files[0].to_str().unwrap().ends_with("-00001.warc.gz"),
        "{files:?}"
    );
    let records = records(&files[0]);
    for record in &records {
        let block = String::from_utf8_lossy(&record.block);
        assert!(!block.contains("hunter2") && !record.get("warc-target-uri").contains("hunter2"));
    }
    let pairs = pairs(records);
    let mut archived: Vec<_> = pairs
        .iter()
        .map(|(response, request)| {
            assert_eq!(response.get("warc-ip-address"), "127.0.0.1");
            assert_eq!(response.get("warc-protocol"), "http/1.1");
            let line = request.message().0.lines().next().unwrap().to_owned();
            let status = response.message().0.split(' ').nth(1).unwrap().to_owned();
            let path = line.split(' ').nth(1).unwrap();
            assert_eq!(response.get("warc-target-uri"), target.url(path));
            format!("{} {status}", line.strip_suffix(" HTTP/1.1").unwrap())
        })
        .collect();
    let arrivals = target.arrivals().into_iter();
    let mut arrived: Vec<_> = arrivals
        .map(|arrival| format!("{} {} {}", arrival.method, arrival.path, arrival.verdict))
        .collect();
    archived.sort();
    arrived.sort();
    assert_eq!(archived, arrived);

    let of = |path: &str, method: &str| {
        let start = format!("{method} {path} ");
        pairs
            .iter()
            .find(|(_, request)| request.message().0.starts_with(&start))
            .unwrap()
    };
    let (response, request) = of("/page?a=1", "GET");
    let (head, body) = response.message();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("\r\nx-served: by me\r\n"),
        "{head}"
    );
    assert_eq!(body, b"a page");
    let (head, _) = request.message();
    let host = target.addr();
    assert!(
        head.contains(&format!("\r\nhost: {host}\r\n"))
            && head.contains("\r\naccept-language: eo\r\n"),
        "{head}"
    );
    assert_eq!(of("/long", "GET").0.message().1, long.as_bytes());
    assert_eq!(of("/down", "GET").0.message().1, b"broken");
    assert_eq!(of("/hop", "GET").0.message().1, b"over there");
    assert_eq!(of("/page", "HEAD").0.message().1, b"");
    assert_eq!(of("/post", "POST").1.message().1, b"a question");
    // Bodies are kept as without it.
    let page = site
        .results()
        .into_iter()
        .find(|result| text(result, "final_url").ends_with("?hop"));
    let body = site.path("out").join(text(&page.unwrap(), "body_path"));
    assert_eq!(fs::read(body).unwrap(), b"a page");
}

#[test]
fn a_body_in_chunks_is_archived_without_them_and_its_head_says_so() {
    let target = Target::start(Script::always(Answer::Garbage(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"
            .to_vec(),
    )));
    let site = Site::new(&rule(&target, "100/s", 20));
    site.tasks([target.url("/")]);
    site.say(&["run", "tasks.jsonl", "--out", "out", "--warc"])
        .with(0);
    let pairs = pairs(records(&files(&site)[0]));
    let (head, body) = pairs[0].0.message();
    assert!(
        head.contains("\r\nx-orig-transfer-encoding: chunked\r\n"),
        "{head}"
    );
    assert!(!head.contains("\r\ntransfer-encoding"), "{head}");
    assert_eq!(body, b"one two");
}

#[test]
fn a_file_that_is_large_enough_is_closed_and_the_next_one_begun() {
    let script = |request: &Request, _| Answer::status(200).body(request.path.repeat(100));
    let target = Target::start(Script::new(script));
    let site = Site::new(&rule(&target, "1000/s", 50));
    site.tasks((0..40).map(|number| target.url(&format!("/{number}"))));
    let run = [
        "run",
        "tasks.jsonl",
        "--out",
        "out",
        "--warc",
        "--warc-size",
        "4kB",
    ];
    site.say(&run).with(0);
    let files = files(&site);
    assert!(files.len() > 3, "{files:?}");
    let (last, full) = files.split_last().unwrap();
    for file in full {
        let size = fs::metadata(file).unwrap().len();
        assert!((4000..6000).contains(&size), "{size}");
    }
    assert!(
        last.to_str()
            .unwrap()
            .ends_with(&format!("-{:05}.warc.gz", files.len()))
    );
    let pairs: usize = files.iter().map(|file| pairs(records(file)).len()).sum();
    assert_eq!(pairs, 40);
    let said = site
        .say(&["run", "tasks.jsonl", "--warc-size", "4kB"])
        .with(2);
    assert!(said.err.contains("--warc"), "{}", said.err);
}

#[test]
fn a_killed_run_leaves_whole_records_and_the_next_one_begins_a_file_of_its_own() {
    let target = patient(std::time::Duration::from_millis(5));
    let site = Site::new(&rule(&target, "400/s", 20));
    site.tasks((0..200).map(|number| target.url(&format!("/{number}"))));
    let run = ["run", "tasks.jsonl", "--out", "out", "--warc"];
    let mut runs = 0;
    for most in [40, 90, 140] {
        let process = site.start(&run);
        let results = || fs::read_to_string(site.path("out/results.jsonl")).unwrap_or_default();
        eventually("some are complete", || results().lines().count() >= most);
        runs += u32::from(process.kill());
        let open = files(&site);
        let is_open = |file: &&PathBuf| file.extension().is_some_and(|end| end == "open");
        assert_eq!(open.iter().filter(is_open).count(), 1, "{open:?}");
        // What a kill in the middle of a record leaves.
        let torn = open.iter().find(is_open).unwrap();
        let whole = fs::read(torn).unwrap();
        let beginning = &whole[..whole.len().min(30)];
        fs::write(torn, [&whole[..], beginning].concat()).unwrap();
    }
    assert_eq!(runs, 3);
    site.say(&run).with(0);
    let files = files(&site);
    assert_eq!(files.len(), 4, "{files:?}");
    let mut archived = BTreeMap::new();
    for file in &files {
        for record in records(file) {
            if record.is("response") {
                *archived
                    .entry(record.get("warc-target-uri").to_owned())
                    .or_insert(0) += 1;
            }
        }
    }
    // Each answer whose result is on record, and perhaps one more of a call that a kill cut.
    assert_eq!(archived.len(), 200);
    assert!(archived.values().sum::<usize>() <= target.arrivals().len());
}
