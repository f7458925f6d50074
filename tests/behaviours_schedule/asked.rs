//! How long a target asked to be left alone, and whom that concerns.

use std::time::Duration;

use serde_json::json;
use tidegate::budget::{ClassTerms, Pause, PauseScope};
use tidegate::egress::Sent;
use tidegate::step::Step;
use tidegate::target::{Class, ClassRule, Template};

use crate::support::driven::Driven;
use crate::support::gate::{Gate, Setup, counted, task, until};
use crate::support::loopback::{Answer, Script, Target};

const SECOND: Duration = Duration::from_secs(1);

/// What a pause may be.
#[derive(Debug)]
enum Rest {
    /// None.
    None,
    /// What was asked for.
    Asked(Duration),
    /// Our own first step.
    Own,
}

/// A status, its headers, and what they come to.
type Row<'a> = (u16, &'a [(&'a str, &'a str)], Rest);

fn pause_after(gate: &Gate, target: &Target) -> Option<Pause> {
    let route = gate
        .admission
        .route(&target.url("/"), "GET", &Step::default());
    let levels = gate.admission.levels(&route.unwrap().lane);
    levels.into_iter().find_map(|level| level.pause)
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_as_long_as_was_asked_for() {
    // The driven clock begins at Tue, 01 Dec 2026 03:41:00 GMT.
    const IN_30_S: &str = "Tue, 01 Dec 2026 03:41:30 GMT";
    const TEN_MINUTES_AGO: &str = "Tue, 01 Dec 2026 03:31:00 GMT";
    use Rest::{Asked, None, Own};
    let asked = |seconds| Asked(Duration::from_secs(seconds));
    let date = "date";
    let rows: &[Row<'_>] = &[
        (429, &[("retry-after", "120")], asked(120)),
        (503, &[("retry-after", "7")], asked(7)),
        (429, &[("retry-after", IN_30_S)], asked(30)),
        (
            429,
            &[("retry-after", IN_30_S), (date, TEN_MINUTES_AGO)],
            asked(630),
        ),
        (429, &[("retry-after", "1.5")], asked(2)),
        (429, &[("retry-after", "-3")], Own),
        (429, &[("retry-after", "")], Own),
        (
            429,
            &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")],
            Own,
        ),
        (429, &[("retry-after", "0")], Own),
        (429, &[("retry-after", "3600")], asked(3600)),
        (429, &[("retry-after", "18446744073709551616")], Own),
        (
            429,
            &[("retry-after", "1"), ("retry-after-ms", "350")],
            Asked(Duration::from_millis(350)),
        ),
        (429, &[], Own),
        (200, &[("retry-after", "60")], None),
        (302, &[("retry-after", "60")], None),
        (502, &[("retry-after", "60")], None),
        (503, &[], None),
    ];
    for (status, headers, expected) in rows {
        let time = Driven::new();
        let reply = headers
            .iter()
            .fold(Answer::status(*status), |reply, (name, value)| {
                reply.header(name, value)
            });
        let target = Target::start(Script::always(reply));
        let gate = time.setup().open();
        let Sent::Answered(reply) = gate.send("GET", &target.url("/")).await else {
            panic!("{status} {headers:?}");
        };
        drop(reply.discard().await);
        let pause = pause_after(&gate, &target);
        let length = pause.map(|pause| pause.until.since(time.now()));
        let fits = match (expected, length) {
            (None, Option::None) => true,
            (Asked(asked), Some(length)) => length == *asked,
            (Own, Some(length)) => SECOND / 2 <= length && length <= SECOND,
            _ => false,
        };
        assert!(fits, "{status} {headers:?}: {length:?}, not {expected:?}");
    }
}

fn search(pause: PauseScope) -> ClassTerms {
    let rule = ClassRule {
        name: Class::new("search").unwrap(),
        template: Template::parse("/search/{*rest}").unwrap(),
        methods: Vec::new(),
        query: Vec::new(),
    };
    ClassTerms {
        rule,
        limits: vec![counted()],
        pause,
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_one_class_concerns_the_host_unless_the_rules_say_otherwise() {
    for (scope, others_wait) in [(PauseScope::Host, true), (PauseScope::Class, false)] {
        let time = Driven::new();
        let target = Target::start(Script::new(|request, earlier| {
            if request.path.starts_with("/search") && earlier == 0 {
                Answer::status(429).header("retry-after", "60")
            } else {
                Answer::status(200)
            }
        }));
        let mut setup: Setup = time.setup().rule(&target.origin(), vec![counted()]);
        setup.rules[0].classes = vec![search(scope)];
        let gate = setup.open();
        let mut run = gate.start();
        let of = |path: &str| task(&json!({"id": path, "url": target.url(path)}));
        run.submit(vec![of("/search/a")]).await;
        time.still(&run).await;
        run.submit(vec![of("/b"), of("/search/b")]).await;
        time.still(&run).await;
        let called = target.arrivals().len();
        assert_eq!(called, if others_wait { 1 } else { 2 }, "{scope:?}");
        time.pass(60 * SECOND).await;
        until("all are served", || target.arrivals().len() == 4).await;
        for _ in 0..3 {
            run.next().await;
        }
    }
}
