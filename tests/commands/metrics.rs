//! The metrics of a run that is under way, as documented.

use crate::control::ask;
use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, eventually, text};
use crate::{prompt, rule};

#[test]
fn every_documented_metric_is_told_with_its_labels() {
    let open = prompt();
    let paused = Target::start(Script::always(
        Answer::status(429).header("retry-after", "3600"),
    ));
    let site = Site::new(&format!(
        "{}{}",
        rule(&open, "20/s", 1),
        rule(&paused, "20/s", 1)
    ));
    let urls = (0..400).map(|number| open.url(&format!("/{number}")));
    site.tasks(urls.chain((0..3).map(|number| paused.url(&format!("/{number}")))));
    let mut run = site.run();
    site.until_open(&mut run);
    let control = site.control().unwrap();
    let metrics = || {
        let port = control["port"].as_u64().unwrap();
        ask(port, "GET", "/metrics", Some(text(&control, "token")), "").1
    };
    let expected = [
        format!(
            "tidegate_requests_total{{target=\"{}\",end=\"answered\",status=\"2xx\"}}",
            open.origin()
        ),
        format!(
            "tidegate_requests_total{{target=\"{}\",end=\"throttled\",status=\"4xx\"}}",
            paused.origin()
        ),
        format!(
            "tidegate_deferrals_total{{target=\"{}\",cause=\"budget_empty\"}}",
            open.origin()
        ),
        format!(
            "tidegate_deferrals_total{{target=\"{}\",cause=\"paused\"}}",
            paused.origin()
        ),
        format!(
            "tidegate_budget_left{{target=\"{}\",limit=\"host:20/s\"}}",
            open.origin()
        ),
        format!(
            "tidegate_exhausted_seconds{{target=\"{}\"}}",
            paused.origin()
        ),
        "tidegate_tasks{state=\"queued\"}".to_owned(),
        "tidegate_tasks{state=\"running\"}".to_owned(),
        "tidegate_tasks{state=\"backoff\"}".to_owned(),
        "tidegate_tasks_completed_total{outcome=\"succeeded\"}".to_owned(),
    ];
    // Gauges are brought up to date every ten seconds.
    eventually("every metric is there", || {
        let told = metrics();
        expected
            .iter()
            .all(|name| told.lines().any(|line| line.starts_with(&**name)))
    });
    let told = metrics();
    for name in [
        "requests_total",
        "deferrals_total",
        "budget_left",
        "tasks",
        "exhausted_seconds",
    ] {
        assert!(told.contains(&format!("# HELP tidegate_{name} ")), "{name}");
    }
    run.signal("TERM");
    run.end().with(143);
}
