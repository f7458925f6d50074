use std::io::{BufReader, Cursor, Read};
use std::time::Duration;

use super::*;
use crate::clock::Moment;
use crate::schedule::HttpPayload;
use crate::schedule::task::{Repeat, Task};
use crate::step::Step;

fn env(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("hunter2".into()),
        "BROKEN" => Some("hunter2\n".into()),
        _ => None,
    }
}

/// The wall clock is an hour ahead of decision time.
const CONTEXT: Context<'static> = Context {
    env: &env,
    wall_offset: 3_600_000_000_000,
    template: None,
    wanted: None,
};

fn new(line: &str) -> NewTask {
    let read = read_line(line, 1, &CONTEXT).unwrap_or_else(|bad| panic!("{line}: {bad}"));
    read.unwrap_or_else(|| panic!("{line} is no task"))
}

fn task(line: &str) -> Task {
    new(line).task
}

fn with(rest: &str) -> String {
    format!(r#"{{"url":"http://a.test/",{rest}}}"#)
}

fn checked(file: &str) -> Checked {
    check(file.as_bytes(), CONTEXT).unwrap()
}

fn shown(checked: &Checked) -> Vec<String> {
    checked.bad.iter().map(ToString::to_string).collect()
}

#[test]
fn a_url_is_enough() {
    let bare = task("http://a.test/x?q=1#top");
    assert_eq!(bare, task(r#"{"url":"http://a.test/x?q=1#top"}"#));
    assert_eq!(
        (&*bare.call.url, &*bare.call.method),
        ("http://a.test/x?q=1#top", "GET")
    );
    assert!(bare.call.payload.is_empty());
    assert_eq!(bare.id.len(), 32);
    assert_eq!(
        (bare.priority, bare.cost.get(), bare.max_attempts.get()),
        (0, 1, 5)
    );
    assert_eq!(
        (bare.not_before, bare.deadline, bare.repeat),
        (None, None, Repeat::Safe)
    );
    assert_eq!(bare.step, Step::default());
}

#[test]
fn a_get_that_a_program_asks_for_is_the_same_task_as_a_line() {
    let url = "http://a.test/x?q=1#top";
    let (line, asked) = (new(url), NewTask::get(url, Step::default()));
    assert_eq!((line.task, line.content), (asked.task, asked.content));
}

#[test]
fn every_field_is_read() {
    let task = task(concat!(
        r#"{"id":"t1","url":"https://u:p@a.test/","method":"post","#,
        r#""headers":{"accept":"text/html","authorization":"env:TOKEN"},"body":"é","#,
        r#""agent":"scout","trajectory":"run-17","step":"4","goal":"map the field","#,
        r#""priority":-7,"not_before":"1970-01-01T02:00:00+00:30","#,
        r#""deadline":"1970-01-01T02:00:00.5Z","max_attempts":1,"cost":4294967295,"#,
        r#""idempotency_key":"k 1"}"#
    ));
    assert_eq!(&*task.id, "t1");
    assert_eq!(
        (&*task.call.url, &*task.call.method),
        ("https://u:p@a.test/", "POST")
    );
    let payload = HttpPayload::decode(&task.call.payload).unwrap();
    let headers = [
        ("accept", "text/html"),
        ("authorization", "env:TOKEN"),
        ("idempotency-key", "k 1"),
    ];
    let kept = payload
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    assert!(kept.eq(headers));
    assert_eq!(payload.body, "é".as_bytes());
    assert_eq!(
        task.step,
        Step::new("scout", "run-17", "4", "map the field")
    );
    assert_eq!(
        (task.priority, task.cost.get(), task.max_attempts.get()),
        (-7, u32::MAX, 1)
    );
    let at = |millis| Some(Moment::ZERO.after(Duration::from_millis(millis)));
    assert_eq!(task.not_before, at(30 * 60_000));
    assert_eq!(task.deadline, at(60 * 60_000 + 500));
    assert_eq!(task.repeat, Repeat::Safe);
}

#[test]
fn null_is_not_given() {
    let nulls = FIELD_NAMES
        .map(|field| format!(r#""{field}":null"#))
        .join(",");
    assert_eq!(task(&with(&nulls)), task("http://a.test/"));
}

const FIELD_NAMES: [&str; 14] = [
    "id",
    "method",
    "headers",
    "body",
    "agent",
    "trajectory",
    "step",
    "goal",
    "priority",
    "not_before",
    "deadline",
    "max_attempts",
    "cost",
    "idempotency_key",
];

#[test]
fn only_what_is_safe_or_carries_a_key_may_be_repeated() {
    for (rest, repeat) in [
        (r#""method":"HEAD""#, Repeat::Safe),
        (r#""method":"GET","body":"x""#, Repeat::Safe),
        (r#""method":"options""#, Repeat::Safe),
        (r#""method":"POST""#, Repeat::Never),
        (r#""method":"PUT""#, Repeat::Never),
        (r#""method":"DELETE""#, Repeat::Never),
        (r#""method":"PROPFIND""#, Repeat::Never),
        (r#""method":"POST","idempotency_key":"k""#, Repeat::Safe),
        (
            r#""method":"POST","headers":{"idempotency-key":"k"}"#,
            Repeat::Never,
        ),
    ] {
        assert_eq!(task(&with(rest)).repeat, repeat, "{rest}");
    }
}

#[test]
fn blank_lines_and_comments_are_no_tasks() {
    for line in [
        "",
        " \t",
        "\r\n",
        "# http://a.test/",
        "  #",
        "\u{feff}",
        "\u{feff}# list",
    ] {
        assert_eq!(
            read_line(line, 1, &CONTEXT).map(|new| new.is_none()),
            Ok(true),
            "{line:?}"
        );
    }
}

#[test]
fn every_kind_of_bad_line_is_named_with_its_field_and_repeats_no_secret() {
    let text = "must be a string";
    let whole = "must be a whole number";
    let count = "must be a whole number from 1 to";
    let rfc3339 = "must be a time with its offset";
    let json = "is not a JSON object on one line: ";
    let key = "must be printable ASCII";
    let a_with = |field: &str, value: &str| with(&format!(r#""{field}":{value}"#));
    let header = |name: &str, value: &str| a_with("headers", &format!(r#"{{"{name}":{value}}}"#));
    let mut rows: Vec<(String, Option<&str>, &str)> = vec![
        (
            "hunter2".into(),
            Some("url"),
            "has no scheme; write https:// or http:// before it",
        ),
        (
            "http://hunter2:hunter2@a.test../?hunter2".into(),
            Some("url"),
            "empty label",
        ),
        (
            "ftp://hunter2@a.test/?hunter2".into(),
            Some("url"),
            "unsupported_scheme",
        ),
        (
            "http://a.test/ hunter2".into(),
            Some("url"),
            "holds a space",
        ),
        (
            "http://a.test/\thunter2".into(),
            Some("url"),
            "holds a space",
        ),
        (
            r#""http://hunter2@a.test/""#.into(),
            None,
            "begins with a quote; write the URL alone",
        ),
        (
            r#"["http://hunter2@a.test/"]"#.into(),
            None,
            "is a JSON array; a list has one task a line",
        ),
        ("{".into(), None, "EOF while parsing an object at column 1"),
        (r#"{"url":"http://hunter2@a.test/""#.into(), None, json),
        (
            r#"{"url":"http://a.test/","body":"hunter2}"#.into(),
            None,
            json,
        ),
        (
            r#"{"url":"http://a.test/"} {"url":"http://hunter2@a.test/"}"#.into(),
            None,
            json,
        ),
        (r#"{url:"http://hunter2@a.test/"}"#.into(), None, json),
        (format!(r#"{{"body":{}1"#, "[".repeat(1000)), None, json),
        ("{}".into(), Some("url"), "is missing"),
        (r#"{"url":null}"#.into(), Some("url"), "is missing"),
        (r#"{"url":""}"#.into(), Some("url"), "invalid_target"),
        (
            r#"{"url":"hunter2:hunter2@a.test/?hunter2"}"#.into(),
            Some("url"),
            "unsupported_scheme",
        ),
        (
            a_with("url", r#""http://hunter2@b.test/""#),
            Some("url"),
            "is given twice",
        ),
        (
            a_with("uri", r#""hunter2""#),
            Some("uri"),
            "is no field of a task; did you mean `url`?",
        ),
        (
            a_with("notBefore", "1"),
            Some("notBefore"),
            "did you mean `not_before`?",
        ),
        (
            a_with("weight", "1"),
            Some("weight"),
            "there are id, url, method",
        ),
        (a_with("x=hunter2", "1"), Some("x…"), "is no field"),
        (a_with(r"\u001b[31mhunter2", "1"), Some("…"), "is no field"),
        (a_with("id", r#""""#), Some("id"), "is empty"),
        (
            a_with("method", r#""hunter2 x""#),
            Some("method"),
            "is no HTTP method",
        ),
        (
            a_with("method", r#""""#),
            Some("method"),
            "is no HTTP method",
        ),
        (
            a_with("method", r#""CoNNeCT""#),
            Some("method"),
            "opens a tunnel",
        ),
        (
            a_with("headers", r#"[["x","hunter2"]]"#),
            Some("headers"),
            "must be an object",
        ),
        (
            a_with("headers", r#""x: hunter2""#),
            Some("headers"),
            "must be an object",
        ),
        (header("x-key", "7"), Some("headers.x-key"), text),
        (
            header("x-key", r#"["hunter2"]"#),
            Some("headers.x-key"),
            text,
        ),
        (header("x-key", "null"), Some("headers.x-key"), text),
        (
            header("X-Key", r#""1","x-key":"hunter2""#),
            Some("headers.x-key"),
            "is given twice",
        ),
        (
            header("x-key", r#""1","x-key":"1""#),
            Some("headers.x-key"),
            "is given twice",
        ),
        (
            header("x-key", r#""hunter2\r\nhost: b""#),
            Some("headers.x-key"),
            "line break",
        ),
        (
            header("x: hunter2", r#""1""#),
            Some("headers.x"),
            "its name holds a character",
        ),
        (header("x: hunter2", "1"), Some("headers.x…"), text),
        (
            header("", r#""hunter2""#),
            Some("headers"),
            "its name holds a character",
        ),
        (
            header("x-key", r#""env:""#),
            Some("headers.x-key"),
            "takes the name of an",
        ),
        (
            header("x-key", r#""env:hunter2 x""#),
            Some("headers.x-key"),
            "takes the name of an",
        ),
        (
            header("x-key", r#""env:UNSET""#),
            Some("headers.x-key"),
            "variable UNSET is not set",
        ),
        (
            header("x-key", r#""env:BROKEN""#),
            Some("headers.x-key"),
            "variable BROKEN holds",
        ),
        (
            header("Host", r#""hunter2""#),
            Some("headers.Host"),
            "is taken from the URL",
        ),
        (
            header("content-length", r#""1""#),
            Some("headers.content-length"),
            "from the body",
        ),
        (
            header("te", r#""trailers""#),
            Some("headers.te"),
            "belongs to the connection",
        ),
        (
            header("proxy-authorization", r#""hunter2""#),
            Some("headers.proxy-authorization"),
            "would be shown to the target",
        ),
        (a_with("priority", "1.5"), Some("priority"), whole),
        (a_with("priority", "2147483648"), Some("priority"), whole),
        (a_with("priority", r#""hunter2""#), Some("priority"), whole),
        (a_with("priority", "true"), Some("priority"), whole),
        (
            a_with("priority", "99999999999999999999"),
            Some("priority"),
            whole,
        ),
        (
            a_with("not_before", r#""2026-12-01T03:41:01""#),
            Some("not_before"),
            rfc3339,
        ),
        (
            a_with("not_before", r#""tomorrow""#),
            Some("not_before"),
            rfc3339,
        ),
        (
            a_with("deadline", r#""2026-02-30T00:00:00Z""#),
            Some("deadline"),
            rfc3339,
        ),
        (a_with("deadline", "1790000000"), Some("deadline"), text),
        (
            with(r#""not_before":"2026-12-01T03:00:00+01:00","deadline":"2026-12-01T02:00:00Z""#),
            Some("deadline"),
            "is not after not_before",
        ),
        (
            a_with("idempotency_key", r#""""#),
            Some("idempotency_key"),
            key,
        ),
        (
            a_with("idempotency_key", r#"" hunter2""#),
            Some("idempotency_key"),
            key,
        ),
        (
            a_with("idempotency_key", r#""hunter2\n""#),
            Some("idempotency_key"),
            key,
        ),
        (
            a_with("idempotency_key", r#""hünter2""#),
            Some("idempotency_key"),
            key,
        ),
        (
            a_with("idempotency_key", r#""env:TOKEN""#),
            Some("idempotency_key"),
            "cannot come from the environment",
        ),
        (
            with(r#""idempotency_key":"k","headers":{"Idempotency-Key":"hunter2"}"#),
            Some("idempotency_key"),
            "is among the headers as well",
        ),
    ];
    for field in ["max_attempts", "cost"] {
        for value in ["0", "-1", "4294967296", r#""hunter2""#, "{}"] {
            rows.push((a_with(field, value), Some(field), count));
        }
    }
    for field in [
        "id",
        "body",
        "agent",
        "trajectory",
        "step",
        "goal",
        "method",
        "idempotency_key",
    ] {
        for value in ["7", "true", r#"{"hunter2":1}"#, r#"["hunter2"]"#, "1e3"] {
            rows.push((a_with(field, value), Some(field), text));
        }
    }
    for (line, field, message) in rows {
        let bad = read_line(&line, 7, &CONTEXT).map(|_| ()).expect_err(&line);
        assert_eq!(bad.field.as_deref(), field, "{line}: {bad}");
        assert!(bad.message.contains(message), "{line}: {bad}");
        let place = field.map_or("line 7: ".into(), |field| format!("line 7: {field}: "));
        assert_eq!(bad.to_string(), format!("{place}{}", bad.message));
        assert!(!bad.to_string().contains("unter2"), "{bad}");
        assert!(!bad.to_string().contains('\u{1b}'), "{bad}");
    }
}

#[test]
fn an_id_is_the_hash_of_method_url_and_body_and_of_nothing_else() {
    let id = |rest: &str| task(&with(rest)).id;
    let same = id(r#""method":"post","body":"b""#);
    for rest in [
        r#""method":"POST","body":"b","agent":"scout","priority":3"#,
        r#""body":"b","method":"Post","headers":{"x":"1"},"idempotency_key":"k""#,
    ] {
        assert_eq!(id(rest), same, "{rest}");
    }
    for rest in [
        r#""method":"PUT","body":"b""#,
        r#""method":"POST""#,
        r#""body":"b""#,
    ] {
        assert_ne!(id(rest), same, "{rest}");
    }
    assert_ne!(task("http://a.test/b").id, task("http://a.test/").id);
    // Written into stores: it may not change from one version to the next.
    assert_eq!(
        &*task("http://a.test/").id,
        "2895f4a7a766eb1a38499b8d0df2ad27"
    );
}

#[test]
fn two_tasks_of_one_id_agree_when_the_call_is_the_same() {
    let content = |rest: &str| new(&with(&format!(r#""id":"t",{rest}"#))).content;
    let same = content(r#""headers":{"a":"1","b":"2"}"#);
    for rest in [
        r#""headers":{"B":"2","A":"1"}"#,
        r#""headers":{"a":"1","b":"2"},"agent":"other","priority":9,"cost":2"#,
    ] {
        assert_eq!(content(rest), same, "{rest}");
    }
    for rest in [
        r#""headers":{"a":"1"}"#,
        r#""headers":{"a":"2","b":"1"}"#,
        r#""headers":{"a1":"","b":"2"}"#,
        r#""headers":{"a":"1","b":"2"},"body":"x""#,
        r#""headers":{"a":"1","b":"2"},"method":"HEAD""#,
        r#""headers":{"a":"1","b":"2"},"idempotency_key":"k""#,
    ] {
        assert_ne!(content(rest), same, "{rest}");
    }
}

#[test]
fn a_file_is_counted_whatever_its_line_ends_and_its_mark() {
    let lines = [
        "http://a.test/",
        "",
        "# two",
        r#"{"url":"http://b.test/"}"#,
        "http://a.test/",
    ];
    for end in ["\n", "\r\n"] {
        for mark in ["", "\u{feff}"] {
            for last in [end, ""] {
                let file = format!("{mark}{}{last}", lines.join(end));
                let counted = Checked {
                    tasks: 2,
                    duplicates: 1,
                    ..Checked::default()
                };
                assert_eq!(checked(&file), counted, "{file:?}");
            }
        }
    }
    for empty in ["", "\n", "\r\n\r\n", "\u{feff}", "# nothing\n"] {
        assert_eq!(checked(empty), Checked::default(), "{empty:?}");
    }
}

#[test]
fn one_id_with_two_contents_names_both_lines() {
    let line = |id: &str, path: &str| format!(r#"{{"id":"{id}","url":"http://a.test/{path}"}}"#);
    let file = [
        line("a", "1"),
        String::new(),
        line("b", "2"),
        line("a", "3"),
        line("a", "1"),
    ];
    let checked = checked(&file.join("\n"));
    assert_eq!(
        (checked.tasks, checked.duplicates, checked.bad_count),
        (2, 1, 1)
    );
    assert_eq!(
        shown(&checked),
        [
            "line 4: id: line 1 has the same id and asks for another call; one of them needs an id of its own"
        ]
    );
}

#[test]
fn calls_that_differ_in_their_headers_only_need_ids_of_their_own() {
    let checked = checked(&[with(r#""headers":{"a":"1"}"#), "http://a.test/".into()].join("\n"));
    assert_eq!((checked.tasks, checked.bad_count), (1, 1));
    assert!(shown(&checked)[0].starts_with("line 2: id: line 1 has the same id"));
}

#[test]
fn bad_lines_beyond_the_first_hundred_are_counted_and_tasks_behind_them_too() {
    let checked = checked(&format!("{}http://a.test/\n", "nonsense\n".repeat(250)));
    assert_eq!(
        (checked.tasks, checked.bad_count, checked.bad.len()),
        (1, 250, MOST_SHOWN)
    );
    assert_eq!(checked.bad.last().unwrap().line, MOST_SHOWN);
}

#[test]
fn a_line_that_is_not_utf8_is_bad_and_the_next_one_is_read() {
    let checked = check(
        &b"http://a.test/\nhttp://b.test/\xff\nhttp://c.test/\n"[..],
        CONTEXT,
    );
    let checked = checked.unwrap();
    assert_eq!(checked.tasks, 2);
    assert_eq!(
        shown(&checked),
        ["line 2: is not UTF-8 from its byte 15 on"]
    );
}

#[test]
fn a_line_may_have_sixteen_mebibytes_and_not_one_more() {
    let line = |bytes: usize| {
        let start = r#"{"url":"http://a.test/","body":""#;
        format!("{start}{}\"}}", "x".repeat(bytes - start.len() - 2))
    };
    for end in ["\n", ""] {
        let fits = checked(&format!("{}{end}", line(MAX_LINE_BYTES)));
        assert_eq!((fits.tasks, fits.bad_count), (1, 0));
        let long = checked(&format!("{}{end}", line(MAX_LINE_BYTES + 1)));
        assert_eq!(shown(&long), ["line 1: is longer than 16 MiB"]);
    }
    let long = format!("{}\nhttp://b.test/\nx\n", "y".repeat(3 * MAX_LINE_BYTES));
    let reader = BufReader::with_capacity(1000, long.as_bytes());
    let checked = check(reader, CONTEXT).unwrap();
    assert_eq!(checked.tasks, 1);
    assert_eq!(shown(&checked)[0], "line 1: is longer than 16 MiB");
    assert!(shown(&checked)[1].starts_with("line 3: url: "));
}

struct Fails;

impl Read for Fails {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is gone"))
    }
}

#[test]
fn a_file_that_ends_in_a_fault_is_no_shorter_file() {
    let broken = || BufReader::new(Cursor::new("http://a.test/\n").chain(Fails));
    assert!(check(broken(), CONTEXT).is_err());
    let mut tasks = tasks(broken(), CONTEXT);
    assert!(tasks.next().unwrap().is_ok());
    assert!(matches!(tasks.next(), Some(Err(ListFault::File(_)))));
    assert!(tasks.next().is_none());
}

#[test]
fn tasks_come_in_the_order_of_the_file_with_bad_lines_between_them() {
    let file = "http://a.test/\nnonsense\nhttp://a.test/\n#\nhttp://b.test/";
    let read: Vec<_> = tasks(file.as_bytes(), CONTEXT)
        .map(|read| match read {
            Ok(new) => new.task.call.url.to_string(),
            Err(ListFault::Line(bad)) => format!("bad {}", bad.line),
            Err(ListFault::File(error)) => panic!("{error}"),
        })
        .collect();
    assert_eq!(
        read,
        [
            "http://a.test/",
            "bad 2",
            "http://a.test/",
            "http://b.test/"
        ]
    );
}

#[test]
fn lines_that_are_bad_for_one_reason_are_told_as_one() {
    let text = "x.test/\nhttp://a.test/\nx.test/2\nhttp://a.test/ b\n\ny\nz\nhttp://a.test/ c\n";
    let checked = check(text.as_bytes(), CONTEXT).unwrap();
    let told: Vec<_> = checked.kinds.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 1: url: has no scheme; write https:// or http:// before it (so in lines 3, 6 and 1 more)",
            "line 4: url: holds a space; to say more, write a JSON object (so in line 8)",
        ]
    );
    assert_eq!((checked.bad_count, checked.tasks), (6, 1));
}
