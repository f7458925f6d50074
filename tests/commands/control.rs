//! The control port: for the store's owner only, and no obstacle when its gate is gone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, eventually, text};
use crate::{arrived, prompt, rule};

/// The status line and the rest of an answer of the control port.
pub fn ask(
    port: u64,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}content-length: {length}\r\n\r\n",
        token.unwrap_or_default()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (status, rest) = answer.split_once("\r\n").unwrap();
    (status.to_owned(), rest.to_owned())
}

/// A site whose run takes a while.
pub fn busy(target: &Target) -> Site {
    let site = Site::new(&rule(target, "20/s", 1));
    site.tasks((0..60).map(|number| target.url(&format!("/{number}"))));
    site
}

#[test]
fn the_file_is_for_its_owner_alone_and_gone_when_the_run_is() {
    let target = prompt();
    for signal in [None, Some("TERM")] {
        let site = busy(&target);
        let mut run = site.run();
        site.until_open(&mut run);
        let path = site.path("store/control.json");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let code = match signal {
            Some(signal) => {
                run.signal(signal);
                143
            }
            None => 0,
        };
        run.end().with(code);
        assert!(!path.exists());
    }
}

#[test]
fn only_the_token_opens_the_port() {
    let target = prompt();
    let site = busy(&target);
    let mut run = site.run();
    site.until_open(&mut run);
    let control = site.control().unwrap();
    let (port, token) = (control["port"].as_u64().unwrap(), text(&control, "token"));
    assert!(token.len() >= 32);
    let wrong = [
        None,
        Some(""),
        Some("wrong"),
        token.strip_prefix(char::is_alphanumeric),
    ];
    for (method, path, body) in [("POST", "/ask", "\"status\""), ("GET", "/metrics", "")] {
        for token in wrong {
            let (status, rest) = ask(port, method, path, token, body);
            assert!(status.contains(" 401 "), "{path}: {status}");
            assert!(!rest.contains("jobs") && !rest.contains("# HELP"), "{rest}");
        }
        let (status, rest) = ask(port, method, path, Some(token), body);
        assert!(
            status.contains(" 200 ") && (rest.contains("jobs") || rest.contains("# HELP")),
            "{status}: {rest}"
        );
    }
    let (status, _) = ask(port, "POST", "/ask", Some(token), "{\"nonsense\":1}");
    assert!(status.contains(" 400 "), "{status}");
    run.end().with(0);
}

#[test]
fn what_a_killed_gate_left_is_no_obstacle() {
    let target = prompt();
    let site = busy(&target);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("it works", || arrived(&target).len() >= 2);
    assert!(run.kill());
    assert!(site.control().is_some(), "nobody removed it");
    assert_eq!(site.row(&["status"])["running"], false);
    assert_eq!(site.rows(&["targets"]).len(), 1);

    // Somebody else may have the port by now, and is not told the token's worth.
    let strangers = [
        Answer::status(200).body("hello").into(),
        Answer::status(404).into(),
        Answer::status(200).body("{\"row\":{}}\n").into(),
        Answer::status(500).into(),
        Answer::CloseAfterRequest,
        Answer::Silence,
        Answer::Garbage(b"220 mail.example ESMTP\r\n".to_vec()),
    ];
    for answer in strangers {
        let stranger = Target::start(Script::always(answer.clone()));
        let mut control = site.control().unwrap();
        control["port"] = stranger.addr().port().into();
        site.write("store/control.json", &control.to_string());
        let said = site.say(&["status", "--json"]);
        assert_eq!(said.code, Some(0), "{answer:?}: {}", said.err);
        assert_eq!(said.rows().len(), 1, "{answer:?}: {}", said.out);
    }
    site.run().end().with(0);
    assert_eq!(site.results().len(), 60);
}
