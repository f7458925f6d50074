//! `check`: tasks that the configuration will never let through.

use serde_json::json;

use crate::support::site::Site;

#[test]
fn what_can_never_be_sent_is_told_before_anything_is() {
    let site =
        Site::new("[[target]]\nmatch = \"https://a.example\"\nmax = \"30/min\"\nburst = 5\n");
    let lines = [
        json!({"id": "fine", "url": "https://a.example/?key=secret", "cost": 5}),
        json!({"id": "dear", "url": "https://a.example/?key=secret", "cost": 6}),
        json!({"id": "late", "url": "https://b.example/", "deadline": "2020-01-01T00:00:00Z"}),
        json!({"id": "later", "url": "https://b.example/", "deadline": "2999-01-01T00:00:00Z"}),
        json!({"id": "near", "url": "http://user:secret@10.0.0.1/"}),
        json!({"id": "open", "url": "http://127.0.0.1/"}),
    ];
    site.tasks(lines.iter());
    let from_file = site.say(&["check", "tasks.jsonl"]).with(0);
    let told: Vec<_> = from_file
        .err
        .lines()
        .filter(|line| line.contains("warning"))
        .collect();
    for (line, words) in told.iter().zip([
        ["task dear ", "a cost of 6", "30/min"].as_slice(),
        &["task late ", "deadline"],
        &["task near ", "allow_private"],
    ]) {
        for word in words {
            let word = word.trim_start_matches("a ");
            assert!(line.contains(word), "{word}: {line}");
        }
    }
    assert_eq!(told.len(), 3, "{}", from_file.err);
    assert!(!from_file.err.contains("secret"), "{}", from_file.err);

    // A pipe gives its lines once, and they are read twice.
    let mut command = site.command(&["check", "-"]);
    command.stdin(std::fs::File::open(site.path("tasks.jsonl")).unwrap());
    let regular = site.launch(command).end().with(0);
    let script = "cat tasks.jsonl | \"$0\" check -";
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_tidegate")])
        .current_dir(site.folder());
    let piped = site.launch(command).end().with(0);
    for said in [regular, piped] {
        assert_eq!(said.err.matches("warning").count(), 3, "{}", said.err);
        assert!(said.err.contains("-: 6 tasks"), "{}", said.err);
    }
}

#[test]
fn of_many_the_first_are_told_and_the_others_counted() {
    let site = Site::new("");
    site.tasks((0..50).map(|number| format!("http://10.0.0.1/{number}")));
    let said = site.say(&["check", "tasks.jsonl"]).with(0);
    assert_eq!(said.err.matches("can never be sent").count(), 21);
    assert!(said.err.contains("30 more tasks"), "{}", said.err);
}
