use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::audit::frames::{Frames, Span};
use crate::audit::reach::Reach;
use crate::audit::segment::Header;
use crate::audit::*;
use crate::budget::{Cause, Revision, Scope};
use crate::clock::{Clock as _, ManualClock, Moment};
use crate::outcome::End;
use crate::step::Step;
use crate::store::{Changes, IfMissing, Store, StoreError};

/// 2025-12-01T12:00:00Z.
pub(super) const START: Moment = Moment::from_nanos(1_764_590_400_000_000_000);
pub(super) const MINUTE: Duration = Duration::from_mins(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);

/// A log over a store of its own, its clock in the test's hand.
pub(super) struct Bench {
    pub(super) clock: Arc<ManualClock>,
    folder: TempDir,
    open: Option<Log>,
}

impl Bench {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(START));
        let mut bench = Self {
            clock,
            folder,
            open: None,
        };
        assert!(bench.restart().is_empty());
        bench
    }

    pub(super) fn stop(&mut self) {
        drop(self.open.take());
    }

    /// Another gate over the same store; the one before did not close its log.
    pub(super) fn restart(&mut self) -> Vec<Interrupted> {
        drop(self.open.take());
        let store = opened(self.folder.path());
        let (log, interrupted) = Log::open(Arc::new(store), self.clock.clone()).unwrap();
        self.open = Some(log);
        interrupted
    }

    pub(super) fn log(&self) -> &Log {
        self.open.as_ref().unwrap()
    }

    pub(super) fn store(&self) -> &Store {
        self.log().store()
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Waits until what was handed over is on disk.
    pub(super) fn flush(&self) {
        self.store()
            .write(Changes::default())
            .wait_blocking()
            .unwrap();
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Changes)) {
        let mut changes = Changes::default();
        change(&mut changes);
        self.store().write(changes).wait_blocking().unwrap();
    }

    pub(super) fn read(&self, filter: Filter) -> Vec<Recorded> {
        self.flush();
        events(self.store(), filter)
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }

    pub(super) fn all(&self) -> Vec<Recorded> {
        self.read(Filter::default())
    }

    /// A call from now to `took` later, whole on record.
    pub(super) fn call(&self, intent: Intent, took: Duration) -> u64 {
        let (number, durable) = self.log().begin(intent.clone());
        durable.detach();
        self.clock.advance(took);
        self.log()
            .finish(number, ended(intent, self.now(), End::Answered), |_| {})
            .detach();
        number
    }

    /// Segments in their order.
    pub(super) fn segments(&self) -> Vec<Stored> {
        self.flush();
        segments_of(self.store())
    }

    /// The file of the last segments.
    pub(super) fn volume(&self) -> std::path::PathBuf {
        let (volume, _) = Reach::latest(self.store()).unwrap().unwrap();
        self.folder().join("record").join(format!("{volume:010}"))
    }

    /// Every segment names the one before, over the whole chain.
    pub(super) fn assert_chained(&self) {
        let (mut number, mut hash) = (0, [0; 32]);
        for segment in self.segments() {
            assert_eq!(segment.header.place.number, number + 1);
            assert_eq!(
                segment.header.place.previous, hash,
                "segment {}",
                segment.header.place.number
            );
            (number, hash) = (segment.header.place.number, segment.hash);
        }
    }
}

/// Opens a store that this process has just closed. A process that another
/// test starts holds a copy of the lock until it has become what it is to be.
pub(super) fn opened(folder: &Path) -> Store {
    for _ in 0..500 {
        match Store::open(folder, IfMissing::Create, 0) {
            Err(StoreError::InUse(_)) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays in use", folder.display())
}

/// All segments, each read whole.
pub(super) fn segments_of(store: &Store) -> Vec<Stored> {
    let span = Span {
        from: Moment::ZERO,
        to: Moment::MAX,
    };
    let frames = Frames::of(store, Vec::new(), span).unwrap();
    let stored = frames.map(|frame| {
        let (_, frame) = frame.unwrap();
        Stored {
            time: frame.time,
            header: Header::read(&frame.bytes).unwrap(),
            hash: frame.hash(),
            bytes: frame.bytes.len(),
        }
    });
    stored.collect()
}

pub(super) struct Stored {
    pub(super) time: Moment,
    pub(super) header: Header,
    pub(super) hash: [u8; 32],
    pub(super) bytes: usize,
}

pub(super) fn intent(target: &str, agent: &str, decided: Moment) -> Intent {
    let target: crate::target::TargetKey = target.parse().unwrap();
    Intent {
        gate: 1,
        method: "GET".into(),
        path: "/items/{n}".into(),
        step: Step::new(agent, "run-17", "4", "map the field"),
        revision: Revision(1),
        cost: 1,
        attempt: 1,
        hop: 0,
        task: None,
        decided,
        scopes: vec![Scope::Host(target.origin.clone())],
        user_agent: "tidegate/0.1 (+ops@example.org)".into(),
        target,
    }
}

pub(super) fn ended(intent: Intent, at: Moment, end: End) -> Call {
    let departed = end
        .may_have_arrived()
        .then(|| intent.decided.after(Duration::from_millis(1)));
    let settlement = Settlement {
        departed: departed.map(|departed| departed.min(at)),
        ended: at,
        end,
        status: matches!(end, End::Answered).then_some(200),
        bytes: 100,
        peer: None,
        error: None,
    };
    Call { intent, settlement }
}

pub(super) fn deferred(target: &str, agent: &str, cause: Cause, at: Moment) -> Deferred {
    Deferred {
        target: target.parse().unwrap(),
        revision: Revision(1),
        step: Step::new(agent, "run-17", "4", "map the field"),
        cause,
        limit: None,
        ready: Some(at.after(MINUTE)),
        count: 1,
        at,
    }
}

pub(super) fn refused(target: &str, agent: &str, at: Moment) -> Refused {
    Refused {
        target: target.into(),
        reason: "address_blocked".into(),
        detail: "link-local addresses are not reachable from here".into(),
        step: Step::of(agent),
        count: 1,
        at,
    }
}

/// A found event as if it had been read.
pub(super) fn found(event: Event) -> Recorded {
    Recorded {
        number: 7,
        event,
        wall_offset: 0,
        begun_offset: 0,
    }
}

pub(super) fn numbers(found: &[Recorded]) -> Vec<u64> {
    found.iter().map(|found| found.number).collect()
}

/// The calls among them.
pub(super) fn calls(found: &[Recorded]) -> Vec<(u64, &Call)> {
    let call = |found| match found {
        &Recorded {
            number,
            event: Event::Call(ref call),
            ..
        } => Some((number, call)),
        _ => None,
    };
    found.iter().filter_map(call).collect()
}
