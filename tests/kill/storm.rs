//! Kills at random instants, and what must hold after each of them.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::support::site::Site;

/// Random numbers that a seed gives again (SplitMix64).
pub struct Chance(u64);

impl Chance {
    /// Numbers of this test's own; another run of all by another `KILL_SEED`.
    pub fn new(test: &str) -> Self {
        let seed = std::env::var("KILL_SEED").unwrap_or_else(|_| "1".to_owned());
        println!("KILL_SEED={seed}");
        let mixed = format!("{seed} {test}");
        Self(mixed.bytes().fold(0, |seed, byte| {
            seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte)
        }))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A span between two, short ones as likely as long ones.
    fn span(&mut self, from: Duration, to: Duration) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "any number will do")]
        let share = self.below(1 << 20) as f64 / f64::from(1 << 20);
        from.mul_f64((to.as_secs_f64() / from.as_secs_f64()).powf(share))
    }
}

/// Kills over one site.
pub struct Storm<'s> {
    site: &'s Site,
    chance: Chance,
    seen: String,
}

impl<'s> Storm<'s> {
    pub fn over(site: &'s Site, chance: Chance) -> Self {
        Self {
            site,
            chance,
            seen: String::new(),
        }
    }

    /// Starts the run, kills it while it starts, loads or works, and looks at what is left.
    pub fn strike(&mut self) {
        let mut run = self.site.run();
        match self.chance.below(5) {
            0 => sleep(
                self.chance
                    .span(Duration::from_millis(1), Duration::from_millis(50)),
            ),
            1 => {
                self.site.until_open(&mut run);
                sleep(Duration::from_micros(self.chance.below(20_000)));
            }
            _ => sleep(
                self.chance
                    .span(Duration::from_millis(50), Duration::from_millis(1_500)),
            ),
        }
        assert!(run.kill(), "the work ran out before the storm did");
        self.look();
    }

    /// The run goes on to its end.
    pub fn clear_up(mut self, code: i32) {
        let said = self.site.run().end().with(code);
        self.look();
        let results = self.site.results().len();
        assert_eq!(results, self.seen.lines().count(), "{}", said.err);
    }

    /// What was seen of the results is still there, as it was.
    fn look(&mut self) {
        let results = fs::read_to_string(self.site.path("out/results.jsonl")).unwrap_or_default();
        assert!(results.starts_with(&self.seen), "a result was lost");
        self.seen = results
            .rsplit_once('\n')
            .map_or_else(String::new, |(whole, _)| whole.to_owned() + "\n");
    }
}
