//! How a run stands, for the person who watches it: the whole, the busiest
//! targets, and those that are stuck.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use serde_json::Value;

use super::show::say;
use crate::admission::Admission;
use crate::budget::{Cause, rfc3339};
use crate::clock::{Moment, wall_offset};
use crate::schedule::{Handle, Job, LaneView, Snapshot};
use crate::serve::{Pace, forecast};

/// Lanes shown.
const SHOWN: usize = 6;
const EVERY: Duration = Duration::from_millis(500);
/// Where nobody watches, a line is written this often (in ticks).
const QUIET_TICKS: u64 = 60;
/// How often it is reckoned when it will end (in ticks): all lanes are asked.
const OUTLOOK_TICKS: u64 = 20;

pub(super) struct Progress {
    admission: Arc<Admission>,
    job: Arc<Job>,
    bars: MultiProgress,
    whole: ProgressBar,
    lines: Vec<ProgressBar>,
    ticks: u64,
    timer: tokio::time::Interval,
    started: (Moment, u64),
    outlook: String,
}

impl Progress {
    pub(super) fn new(admission: Arc<Admission>, job: Arc<Job>) -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let whole = bars.add(ProgressBar::no_length());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}") {
            whole.set_style(style);
        }
        let line = || {
            let line = bars.add(ProgressBar::no_length());
            if let Ok(style) = ProgressStyle::with_template("  {wide_msg}") {
                line.set_style(style);
            }
            line
        };
        let lines = (0..SHOWN).map(|_| line()).collect();
        let started = (admission.clock().now(), job.record().results);
        Self {
            admission,
            job,
            bars,
            whole,
            lines,
            ticks: 0,
            timer: tokio::time::interval(EVERY),
            started,
            outlook: String::new(),
        }
    }

    pub(super) async fn tick(&mut self) {
        self.timer.tick().await;
    }

    pub(super) fn submitted(&self, known: u64, again: u64) {
        if again > 0 {
            self.tell(&format!(
                "{again} tasks that were complete are asked for again"
            ));
        }
        if known > 0 {
            self.tell(&format!(
                "{known} tasks were asked for before; each is done once"
            ));
        }
    }

    fn tell(&self, words: &str) {
        if self.bars.is_hidden() {
            say(words);
        } else {
            let _ = self.bars.println(words);
        }
    }

    pub(super) async fn show(&mut self, handle: &Handle) {
        self.ticks += 1;
        let watched = !self.bars.is_hidden();
        if !watched && !self.ticks.is_multiple_of(QUIET_TICKS) {
            return;
        }
        let Ok(snapshot) = handle.look(SHOWN).await else {
            return;
        };
        if !watched || self.ticks.is_multiple_of(OUTLOOK_TICKS) {
            self.outlook = self.outlook(handle, &snapshot).await;
        }
        let message = self.message(&snapshot);
        if !watched {
            let record = self.job.record();
            say(&format!(
                "{}/{} {message}",
                record.complete(),
                record.tasks()
            ));
            return;
        }
        let record = self.job.record();
        self.whole.set_length(record.tasks());
        self.whole.set_position(record.complete());
        self.whole.set_message(message);
        for (line, lane) in self.lines.iter().zip(
            snapshot
                .lanes
                .iter()
                .map(Some)
                .chain(std::iter::repeat(None)),
        ) {
            line.set_message(lane.map(|lane| self.lane(lane)).unwrap_or_default());
        }
    }

    fn message(&self, snapshot: &Snapshot) -> String {
        let Snapshot {
            queued,
            running,
            backoff,
            ..
        } = snapshot;
        let (since, before) = self.started;
        let seconds = self.admission.clock().now().since(since).as_secs().max(1);
        let rate = self.job.record().results.saturating_sub(before) / seconds;
        let mut message =
            format!("{running} running, {queued} queued, {backoff} in back-off, {rate}/s");
        message.push_str(&self.outlook);
        if *running == 0
            && let Some(wake) = snapshot.wake
        {
            let offset = wall_offset(&**self.admission.clock());
            message.push_str(&format!("; all wait until {}", rfc3339(wake, offset)));
        }
        message
    }

    async fn outlook(&self, handle: &Handle, snapshot: &Snapshot) -> String {
        let Ok(outlook) = handle.outlook(1).await else {
            return String::new();
        };
        let clock = self.admission.clock();
        let record = self.job.record();
        let pace = Pace {
            left: record.accepted().saturating_sub(record.results),
            best: snapshot.best,
        };
        let fields = forecast(&outlook, pace, clock.now(), wall_offset(&**clock));
        match fields.get("ends_at").and_then(Value::as_str) {
            Some(at) if pace.left > 0 => format!(", done at {at} at the earliest"),
            _ => String::new(),
        }
    }

    fn lane(&self, lane: &LaneView) -> String {
        let stuck = match lane.blocked {
            Some((cause, ready)) if cause != Cause::BudgetEmpty => {
                let offset = wall_offset(&**self.admission.clock());
                let until =
                    ready.map_or_else(|| "released".to_owned(), |ready| rfc3339(ready, offset));
                format!("{} until {until}", cause.as_str())
            }
            _ => String::new(),
        };
        format!(
            "{}  {} waiting, {} calls  {stuck}",
            lane.target, lane.waiting, lane.calls
        )
    }

    pub(super) fn end(&self) {
        self.lines.iter().for_each(ProgressBar::finish_and_clear);
        self.whole.finish_and_clear();
    }
}
