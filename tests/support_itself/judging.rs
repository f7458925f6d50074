//! The judges against the definitions, by trying everything.

use std::time::{Duration, Instant};

use crate::raw::{ask, status};
use crate::support::loopback::{
    Answer, Arrival, Judgement, Meter, Script, Target, Tolerance, bucket_violations, worst_window,
};

/// A generator of repeatable noise (xorshift64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Instants on a grid of 50 ms, so that many fall exactly on a limit.
    fn times(&mut self) -> Vec<Duration> {
        let mut times: Vec<_> = (0..1 + self.below(10))
            .map(|_| Duration::from_millis(50 * self.below(25)))
            .collect();
        times.sort_unstable();
        times
    }
}

/// The least number of instants to take away for the rest to conform.
fn least_to_remove(times: &[Duration], conforms: impl Fn(&[Duration]) -> bool) -> usize {
    (0_u32..1 << times.len())
        .filter(|kept| {
            let kept: Vec<_> = times
                .iter()
                .enumerate()
                .filter(|(place, _)| kept & (1 << place) != 0)
                .map(|(_, &at)| at)
                .collect();
            conforms(&kept)
        })
        .map(|kept| times.len() - kept.count_ones() as usize)
        .min()
        .expect("to take all away conforms")
}

/// Whether no interval from one of these instants to another has more than it may.
fn every_interval(times: &[Duration], may: impl Fn(usize, Duration) -> bool) -> bool {
    times.iter().enumerate().all(|(place, &from)| {
        let mut later = times.iter().skip(place).enumerate();
        later.all(|(more, &to)| may(more + 1, to - from))
    })
}

fn over(tolerance: Tolerance, times: &[Duration]) -> usize {
    let mut meter = Meter::new(tolerance);
    times
        .iter()
        .filter(|&&at| meter.arrive(at) != Judgement::Within)
        .count()
}

#[test]
fn a_bucket_counts_the_least_that_must_go_for_the_rest_to_conform() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut violated = 0;
    for round in 0..400 {
        let times = noise.times();
        // Rates whose interval is a whole number of milliseconds, so that the check is exact.
        let rate = [1, 2, 4, 5, 10, 20][noise.below(6) as usize];
        let burst = 1 + noise.below(4) as usize;
        let conforms = |kept: &[Duration]| {
            every_interval(kept, |count, length| {
                (count * 1000) as u128 <= (burst * 1000) as u128 + rate * length.as_millis()
            })
        };
        let expected = least_to_remove(&times, conforms);
        let found = bucket_violations(&times, rate as f64, burst as u32);
        assert_eq!(
            found, expected,
            "round {round}: {burst} + {rate}/s on {times:?}"
        );
        assert_eq!(found == 0, conforms(&times));
        violated += usize::from(found > 0);
    }
    assert!(
        (50..350).contains(&violated),
        "{violated} of 400 is no test"
    );
}

#[test]
fn a_window_counts_the_least_that_must_go_for_the_rest_to_conform() {
    let mut noise = Noise(0x2545_f491_4f6c_dd1d);
    let mut violated = 0;
    for round in 0..400 {
        let times = noise.times();
        let window = Duration::from_millis(50 * (1 + noise.below(12)));
        let max = 1 + noise.below(4) as usize;
        // Two instants are in one half-open window if they are less than its length apart.
        let conforms = |kept: &[Duration]| {
            every_interval(kept, |count, length| count <= max || length >= window)
        };
        let expected = least_to_remove(&times, conforms);
        let found = over(Tolerance::window(max, window), &times);
        assert_eq!(
            found, expected,
            "round {round}: {max} in {window:?} on {times:?}"
        );
        violated += usize::from(found > 0);
    }
    assert!(
        (50..350).contains(&violated),
        "{violated} of 400 is no test"
    );
}

#[test]
fn the_worst_window_is_the_largest_count_from_any_start() {
    let mut noise = Noise(0x0bad_5eed);
    for round in 0..200 {
        let times = noise.times();
        let window = Duration::from_millis(25 * (1 + noise.below(20)));
        let expected = (0..1300)
            .map(|start| {
                let start = Duration::from_millis(start);
                let inside = |&&at: &&Duration| start <= at && at < start + window;
                times.iter().filter(inside).count()
            })
            .max();
        let mut arrivals: Vec<_> = times.iter().map(|&at| arrival(at)).collect();
        arrivals.reverse();
        let found = worst_window(&arrivals, window);
        assert_eq!(
            Some(found),
            expected,
            "round {round}: {window:?} on {times:?}"
        );
    }
    assert_eq!(worst_window(&[], Duration::from_secs(1)), 0);
}

fn arrival(since_start: Duration) -> Arrival {
    Arrival {
        at: Instant::now(),
        since_start,
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body_len: 0,
        connection: 0,
        in_flight: 1,
        verdict: 200,
    }
}

#[test]
fn an_interval_that_is_no_whole_number_of_nanoseconds_is_no_violation() {
    for rate in [3_u32, 7, 13, 1000, 999_983] {
        let times: Vec<_> = (0..5000)
            .map(|n: u64| Duration::from_nanos(n * 1_000_000_000 / u64::from(rate)))
            .collect();
        assert_eq!(bucket_violations(&times, f64::from(rate), 1), 0, "{rate}/s");
    }
}

#[test]
fn a_rate_that_is_slightly_too_high_is_found() {
    let times: Vec<_> = (0..5000).map(|n| Duration::from_micros(999) * n).collect();
    let found = bucket_violations(&times, 1000.0, 1);
    assert!(found > 0);
    assert_eq!(bucket_violations(&times, 1002.0, 1), 0);
}

#[test]
fn the_wait_ends_when_the_next_one_is_tolerated() {
    for tolerance in [
        Tolerance::bucket(0.75, 2),
        Tolerance::window(2, Duration::from_millis(700)),
    ] {
        let mut meter = Meter::new(tolerance);
        let at = Duration::from_millis(100);
        assert_eq!(meter.arrive(at), Judgement::Within);
        assert_eq!(meter.arrive(at), Judgement::Within);
        let Judgement::Over { wait } = meter.arrive(at) else {
            panic!("{tolerance:?} takes three at once");
        };
        let early = at + wait - Duration::from_nanos(10);
        assert_ne!(
            meter.clone().arrive(early),
            Judgement::Within,
            "{tolerance:?}"
        );
        assert_eq!(meter.arrive(at + wait), Judgement::Within, "{tolerance:?}");
    }
}

#[test]
fn a_tolerant_target_refuses_what_is_beyond_its_bucket() {
    let tolerance = Tolerance::bucket(0.01, 3);
    let target = Target::start(Script::tolerant(tolerance, Duration::ZERO));
    let answers: Vec<_> = (0..5).map(|_| ask(target.addr(), "/")).collect();
    let statuses: Vec<_> = answers.iter().map(status).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    // A token comes every 100 s, and the requests took a part of the first of these seconds.
    let text = answers[4].text();
    let after: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("retry-after: "))
        .and_then(|seconds| seconds.parse().ok())
        .expect("whole seconds");
    assert!((90..=100).contains(&after), "{after}");
    assert_eq!(target.over_envelope(), 2);
    let times: Vec<_> = target
        .arrivals()
        .iter()
        .map(|seen| seen.since_start)
        .collect();
    assert_eq!(bucket_violations(&times, 0.01, 3), 2);
    assert_eq!(worst_window(&target.arrivals(), Duration::from_secs(60)), 5);
}

#[test]
fn a_tolerant_target_takes_again_after_its_window() {
    let window = Duration::from_millis(600);
    let latency = Duration::from_millis(20);
    let target = Target::start(Script::tolerant(Tolerance::window(1, window), latency));
    let began = Instant::now();
    assert_eq!(status(&ask(target.addr(), "/")), 200);
    assert!(began.elapsed() >= latency);
    let refused = ask(target.addr(), "/");
    assert!(
        refused.text().contains("\r\nretry-after: 1\r\n"),
        "{}",
        refused.text()
    );
    std::thread::sleep(window);
    assert_eq!(status(&ask(target.addr(), "/")), 200);
    assert_eq!(target.over_envelope(), 1);
}

#[test]
fn the_tolerances_of_all_paths_count() {
    let strict = || Script::tolerant(Tolerance::bucket(0.001, 1), Duration::ZERO);
    let target = Target::start(Script::by_path([
        ("/a", strict()),
        ("/b", strict()),
        ("/free", Script::always(Answer::status(200))),
    ]));
    for path in ["/a", "/b", "/free", "/a", "/a", "/b", "/free"] {
        ask(target.addr(), path);
    }
    assert_eq!(target.over_envelope(), 3);
}

#[test]
#[should_panic(expected = "no tolerance to judge by")]
fn a_target_without_a_tolerance_is_not_judged_as_within() {
    Target::start(Script::always(Answer::status(200))).over_envelope();
}
