//! 46. What is secret goes to its target and nowhere else.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate::outcome::Outcome;
use tidegate::schedule::results;

use crate::support::alone::{Place, alone};
use crate::support::gate::{Gate, Setup, counted, task};
use crate::support::loopback::{Answer, Script, Target};
use crate::support::tls::{self, H2Script, TestCa};

const VARIABLE: &str = "TIDEGATE_TEST_TOKEN";
const VALUE: &str = "tk-4f9d1c-from-the-environment";
/// In userinfo, query, header and body.
const SECRETS: [&str; 4] = ["pw-71aa02", "qs-0b33c8", "hd-5ce9d7", "bd-e812f4"];

fn line(target: &str, path: &str, more: &Value) -> Value {
    let [password, query, header, body] = SECRETS;
    let authority = target.trim_start_matches("http://");
    let mut line = json!({
        "id": path,
        "url": format!("http://ada:{password}@{authority}{path}?key={query}"),
        "agent": "scout",
        "headers": {"x-key": header},
        "max_attempts": 1,
    });
    for (name, value) in more.as_object().expect("an object") {
        line[name] = value.clone();
    }
    if line["method"] == "POST" {
        line["body"] = json!(body);
    }
    line
}

/// Tasks that end in every way there is.
async fn every_end(gate: &Gate, target: &Target) -> Vec<tidegate::schedule::ResultLine> {
    let post = json!({"method": "POST"});
    let get = json!({});
    let here = target.origin();
    let lines = [
        line(&here, "/200", &post),
        line(&here, "/404", &get),
        line(&here, "/500", &post),
        line(&here, "/cut", &get),
        line(&here, "/close", &post),
        line(&here, "/garbage", &get),
        line(&here, "/onward", &get),
        line(&here, "/blocked", &get),
        line(
            &here,
            "/later",
            &json!({"deadline": "1970-01-02T00:00:00Z"}),
        ),
        line("http://nowhere.test", "/nowhere", &post),
        line("http://10.0.0.1", "/private", &post),
    ];
    gate.run(lines.iter().map(task).collect()).await
}

fn target() -> Target {
    Target::start(Script::new(|request, _| {
        let path = request.path.split('?').next().unwrap_or_default();
        match path {
            "/404" => Answer::status(404).into(),
            "/500" => Answer::status(500).body("because").into(),
            "/cut" => Answer::CutBody {
                declared: 9,
                sent: 1,
            },
            "/close" => Answer::CloseAfterRequest,
            "/garbage" => Answer::Garbage(b"?".to_vec()),
            "/onward" => to(&format!("/200?key={}", SECRETS[1])),
            "/blocked" => to(&format!(
                "http://ada:{}@10.0.0.1/?key={}",
                SECRETS[0], SECRETS[1]
            )),
            _ => Answer::status(200).body("ok").into(),
        }
    }))
}

fn to(location: &str) -> Answer {
    Answer::status(302).header("location", location).into()
}

#[tokio::test]
async fn no_secret_is_in_the_record_or_in_what_is_told_of_a_task() {
    let target = target();
    let gate = Setup::default()
        .rule(&target.origin(), vec![counted()])
        .open();
    let told = every_end(&gate, &target).await;
    let mut outcomes: Vec<_> = told.iter().map(|result| result.outcome).collect();
    outcomes.sort();
    outcomes.dedup();
    use Outcome::{Ambiguous, Answered, Expired, Failed, Refused, Succeeded};
    assert_eq!(
        outcomes,
        [Succeeded, Answered, Failed, Ambiguous, Expired, Refused]
    );
    // They do arrive where they belong.
    let [_, query, header, body] = SECRETS;
    let first = target
        .arrivals()
        .into_iter()
        .find(|seen| seen.path.starts_with("/200"))
        .unwrap();
    assert_eq!(first.path, format!("/200?key={query}"));
    assert_eq!(
        (first.header("x-key"), first.body_len),
        (Some(header), body.len())
    );
    assert!(first.header("authorization").is_some());

    for event in gate.events().await {
        let event = format!("{event:?}");
        for secret in SECRETS {
            assert!(!event.contains(secret), "{secret} in {event}");
        }
    }
    for result in told {
        let mut told = serde_json::to_value(&result).unwrap();
        // The URL is what was asked for, its query included, and its userinfo not.
        for url in ["url", "final_url"] {
            if let Some(url) = told[url].as_str() {
                assert!(!url.contains(SECRETS[0]) && !url.contains("ada"), "{url}");
            }
            told[url] = Value::Null;
        }
        for secret in SECRETS {
            assert!(!told.to_string().contains(secret), "{secret} in {told}");
        }
    }
    // Nor in any value of the store, now that the queue is empty.
    let store = gate.admission.store();
    for result in results(store, 1) {
        let result = result.unwrap();
        for secret in [SECRETS[0], SECRETS[2], SECRETS[3]] {
            assert!(!result.contains(secret), "{secret} in {result}");
        }
    }
    assert_eq!(left_in_values(&gate), Vec::<String>::new());
}

#[test]
fn no_secret_is_in_a_log_however_much_is_logged() {
    let name = "secrets::no_secret_is_in_a_log_however_much_is_logged";
    if alone(name, &[]) == Place::Outside {
        return;
    }
    let logged = Logged::default();
    let writer = logged.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let target = target();
        let gate = Setup::default().open();
        every_end(&gate, &target).await;
        let ca = TestCa::new();
        let streams = tls::h2(&ca, H2Script::always(Answer::status(200)));
        let gate = Setup::default().trusting(&ca).open();
        let origin = streams.origin().replace("https", "http");
        let mut line = line(&origin, "/200", &json!({"method": "POST"}));
        line["url"] = json!(line["url"].as_str().unwrap().replace("http://", "https://"));
        let results = gate.run(vec![task(&line)]).await;
        assert_eq!(results[0].outcome, Outcome::Succeeded);
    });
    let text = logged.0.lock().unwrap();
    println!("{} bytes of log", text.len());
    let text = String::from_utf8_lossy(&text);
    for secret in SECRETS {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a secret is still the value of a key, results aside.
fn left_in_values(gate: &Gate) -> Vec<String> {
    use tidegate::store::Space;
    let spaces = [
        Space::Meta,
        Space::Bucket,
        Space::Stop,
        Space::Envelope,
        Space::Open,
        Space::Volume,
        Space::Block,
        Space::Name,
        Space::Job,
        Space::Task,
        Space::TaskId,
        Space::Cut,
    ];
    let mut left = Vec::new();
    let volumes = gate.admission.store().folder().join("record");
    for volume in std::fs::read_dir(volumes).into_iter().flatten() {
        let bytes = std::fs::read(volume.unwrap().path()).unwrap();
        let found = SECRETS
            .iter()
            .filter(|secret| holds(&bytes, secret.as_bytes()));
        left.extend(found.map(|secret| format!("{secret} in a volume")));
    }
    for space in spaces {
        for entry in gate.admission.store().scan_bytes(space, ..) {
            let (_, value) = entry.unwrap();
            let found = SECRETS
                .iter()
                .filter(|secret| holds(&value, secret.as_bytes()));
            left.extend(found.map(|secret| format!("{secret} in {space:?}")));
        }
    }
    left
}

#[test]
fn a_value_of_the_environment_is_in_no_file_at_all() {
    let name = "secrets::a_value_of_the_environment_is_in_no_file_at_all";
    if alone(name, &[(VARIABLE, VALUE)]) == Place::Outside {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let there = Target::start(Script::always(Answer::status(200)));
        let elsewhere = there.url("/");
        let ok = || Answer::from(Answer::status(200).body("ok"));
        let here = Target::start(Script::by_path([
            ("/200", Script::always(ok())),
            ("/twice", Script::list(vec![Answer::CloseAfterRequest, ok()])),
            ("/same", Script::always(to("/200"))),
            ("/other", Script::always(to(&elsewhere))),
        ]));
        let gate = Setup::default().open();
        let run = gate.start();
        let paths = ["/200", "/twice", "/same", "/other"];
        let env = format!("env:{VARIABLE}");
        let lines = paths.map(|path| {
            task(&json!({"id": path, "url": here.url(path), "headers": {"authorization": env, "x": env}}))
        });
        run.submit(lines.into()).await;
        // While it is queued, while it runs, and when it is over.
        assert_eq!(files_with(&gate.folder, VALUE.as_bytes()), Vec::<PathBuf>::new());
        let results = run.finish().await;
        assert!(results.iter().all(|result| result.outcome == Outcome::Succeeded));
        for arrival in here.arrivals() {
            assert_eq!(arrival.header("authorization"), Some(VALUE), "{}", arrival.path);
            assert_eq!(arrival.header("x"), Some(VALUE), "{}", arrival.path);
        }
        assert_eq!(here.arrivals().len(), 6);
        assert_eq!(there.arrivals()[0].header("authorization"), None);
        gate.admission.close().wait().await.unwrap();
        let found = files_with(&gate.folder, VALUE.as_bytes());
        assert_eq!(found, Vec::<PathBuf>::new());
        // The name of the variable was there, so the search would have found the value.
        assert!(!files_with(&gate.folder, VARIABLE.as_bytes()).is_empty());
    });
}

/// Every file below a folder that holds these bytes.
fn files_with(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if holds(&std::fs::read(&path).unwrap(), bytes) {
            found.push(path);
        }
    }
    found
}

/// Whether some bytes are among others.
fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}
