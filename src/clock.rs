//! Decision time, and wall time for people.
//!
//! Budgets must not move when somebody sets the machine's clock, so every
//! decision is taken at a [`Moment`]: an anchor plus the kernel's
//! `CLOCK_BOOTTIME`, which no step of the wall clock touches. The anchor is
//! kept in the store together with the boot id. In the same boot it simply
//! goes on; in another boot all that is certain is that at least the new
//! uptime has passed, so decision time continues from the last instant on
//! record plus that uptime. It may lag behind the wall; it never runs ahead,
//! and a budget is never refilled by a clock that somebody set.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// An instant of decision time, in nanoseconds; near the Unix epoch's count
/// on a machine whose clock was never stepped.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// Before every other moment.
    pub const ZERO: Self = Self(0);
    /// After every other moment.
    pub const MAX: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after [`Moment::ZERO`].
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds after [`Moment::ZERO`].
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// `self + span`, held at [`Moment::MAX`].
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }

    /// `self - span`, held at [`Moment::ZERO`].
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }

    /// Time since `earlier`; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A span in whole nanoseconds, held at `u64::MAX` (584 years).
#[must_use]
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Where "now" comes from. Two implementations: [`SystemClock`] and, for
/// tests and replays, [`ManualClock`].
pub trait Clock: fmt::Debug + Send + Sync {
    /// Decision time now. Never goes back.
    fn now(&self) -> Moment;

    /// The wall clock now, as the machine shows it: for people only.
    fn wall(&self) -> SystemTime;

    /// Nanoseconds to add to a moment to get UTC, fixed for the whole boot:
    /// what calendar quotas are counted by.
    fn utc_offset(&self) -> i64;
}

/// Nanoseconds to add to a moment to get the wall clock as it shows now.
#[must_use]
pub fn wall_offset(clock: &dyn Clock) -> i64 {
    let wall = epoch_nanos(clock.wall());
    wall.saturating_sub(i64::try_from(clock.now().as_nanos()).unwrap_or(i64::MAX))
}

/// A moment as a wall-clock time, given nanoseconds to add to it.
#[must_use]
pub fn wall_at(moment: Moment, offset: i64) -> SystemTime {
    let nanos = i128::from(moment.as_nanos()).saturating_add(i128::from(offset));
    let nanos = u64::try_from(nanos.max(0)).unwrap_or(u64::MAX);
    UNIX_EPOCH + Duration::from_nanos(nanos)
}

/// A wall-clock time as a moment, given nanoseconds to add to a moment.
#[must_use]
pub fn moment_at(wall: SystemTime, offset: i64) -> Moment {
    let nanos = i128::from(epoch_nanos(wall)).saturating_sub(i128::from(offset));
    Moment(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn epoch_nanos(wall: SystemTime) -> i64 {
    match wall.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n),
    }
}

/// What must be kept so that decision time goes on after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    boot_id: String,
    /// Decision time = this + time since boot.
    offset: u64,
    utc_offset: i64,
}

impl Anchor {
    /// Carries decision time from `saved` (with the latest moment on record)
    /// into the boot `boot_id`, whose uptime is `uptime`.
    #[must_use]
    pub fn carried(
        saved: Option<(Self, Moment)>,
        boot_id: &str,
        uptime: Duration,
        wall: SystemTime,
    ) -> Self {
        let offset = match saved {
            Some((anchor, _)) if anchor.boot_id == boot_id => return anchor,
            Some((_, last)) => last.as_nanos(),
            None => u64::try_from(epoch_nanos(wall))
                .unwrap_or(0)
                .saturating_sub(nanos(uptime)),
        };
        let now = offset.saturating_add(nanos(uptime));
        Self {
            boot_id: boot_id.to_owned(),
            offset,
            utc_offset: epoch_nanos(wall).saturating_sub(i64::try_from(now).unwrap_or(i64::MAX)),
        }
    }
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    anchor: Anchor,
}

impl SystemClock {
    /// A clock that goes on from what a store kept: the anchor and the latest
    /// moment on record.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the machine's time is read"
    )]
    pub fn resumed(saved: Option<(Anchor, Moment)>) -> Self {
        Self {
            anchor: Anchor::carried(saved, &boot_id(), uptime(), SystemTime::now()),
        }
    }

    /// What the next process needs to go on from here.
    #[must_use]
    pub fn anchor(&self) -> &Anchor {
        &self.anchor
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment(self.anchor.offset.saturating_add(nanos(uptime())))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the machine's time is read"
    )]
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn utc_offset(&self) -> i64 {
        self.anchor.utc_offset
    }
}

#[cfg(target_os = "linux")]
const UPTIME: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const UPTIME: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

fn uptime() -> Duration {
    let at = rustix::time::clock_gettime(UPTIME);
    Duration::new(
        u64::try_from(at.tv_sec).unwrap_or(0),
        u32::try_from(at.tv_nsec).unwrap_or(0),
    )
}

/// The kernel's name of this boot; where there is none every process counts
/// as a boot of its own, which is the careful reading.
#[expect(
    clippy::disallowed_methods,
    reason = "only to be different from other processes"
)]
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(
        |_| format!("process-{}-{:?}", std::process::id(), SystemTime::now()),
        |id| id.trim().to_owned(),
    )
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicU64,
    wall_offset: AtomicI64,
    utc_offset: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `now`, its wall clock showing the same.
    #[must_use]
    pub fn at(now: Moment) -> Self {
        Self {
            now: AtomicU64::new(now.0),
            wall_offset: AtomicI64::new(0),
            utc_offset: AtomicI64::new(0),
        }
    }

    /// Lets `span` pass.
    pub fn advance(&self, span: Duration) {
        self.now.fetch_add(nanos(span), Ordering::SeqCst);
    }

    /// Moves on to `moment`; a moment that has passed changes nothing.
    pub fn advance_to(&self, moment: Moment) {
        self.now.fetch_max(moment.0, Ordering::SeqCst);
    }

    /// Steps the wall clock by so many nanoseconds, decision time staying.
    pub fn step_wall(&self, nanos: i64) {
        self.wall_offset.fetch_add(nanos, Ordering::SeqCst);
    }

    /// As after a boot that found the wall clock so many nanoseconds ahead of
    /// decision time.
    pub fn boot(&self, utc_offset: i64) {
        self.wall_offset.store(utc_offset, Ordering::SeqCst);
        self.utc_offset.store(utc_offset, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment(self.now.load(Ordering::SeqCst))
    }

    fn wall(&self) -> SystemTime {
        wall_at(self.now(), self.wall_offset.load(Ordering::SeqCst))
    }

    fn utc_offset(&self) -> i64 {
        self.utc_offset.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn wall(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_first_start_takes_the_wall_clock() {
        let anchor = Anchor::carried(None, "a", HOUR, wall(10_000));
        assert_eq!(
            anchor.offset + nanos(HOUR),
            nanos(Duration::from_secs(10_000))
        );
        assert_eq!(anchor.utc_offset, 0);
    }

    #[test]
    fn a_step_of_the_wall_clock_within_a_boot_changes_nothing() {
        let first = Anchor::carried(None, "a", HOUR, wall(10_000));
        for stepped in [9_900, 13_600, 1, 31_546_000] {
            let saved = Some((first.clone(), Moment::ZERO));
            assert_eq!(Anchor::carried(saved, "a", 2 * HOUR, wall(stepped)), first);
        }
    }

    #[test]
    fn another_boot_goes_on_from_the_record_plus_its_uptime_whatever_the_wall_says() {
        let first = Anchor::carried(None, "a", HOUR, wall(10_000));
        let last = Moment::from_nanos(nanos(Duration::from_secs(10_500)));
        for stepped in [1, 10_400, 14_000, 31_546_000] {
            let next = Anchor::carried(
                Some((first.clone(), last)),
                "b",
                Duration::from_secs(20),
                wall(stepped),
            );
            let now = next.offset + nanos(Duration::from_secs(20));
            assert_eq!(now, nanos(Duration::from_secs(10_520)));
            let utc = wall_at(Moment::from_nanos(now), next.utc_offset);
            assert_eq!(utc, wall(stepped));
        }
    }

    #[test]
    fn moments_and_wall_times_translate_both_ways() {
        let moment = Moment::from_nanos(5_000);
        for offset in [-2_000, 0, 7_000] {
            assert_eq!(moment_at(wall_at(moment, offset), offset), moment);
        }
    }

    #[test]
    fn the_machine_clock_never_goes_back() {
        let clock = SystemClock::resumed(None);
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
