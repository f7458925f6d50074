//! Never over, whatever happens.

use proptest::prelude::*;

use super::buckets::Buckets;
use super::drive::run;
use super::script::{Trouble, script};

fn cases(times: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.saturating_mul(times),
        ..default
    }
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn a_target_never_gets_more_than_it_takes(script in script(Trouble::None, 150)) {
        run(&script, Buckets::new(&script))?;
    }

    #[test]
    fn nor_over_revisions(script in script(Trouble::Revisions, 150)) {
        run(&script, Buckets::new(&script))?;
    }

    #[test]
    fn nor_over_crashes(script in script(Trouble::Crashes, 150)) {
        run(&script, Buckets::new(&script))?;
    }

    #[test]
    fn nor_over_both(script in script(Trouble::All, 150)) {
        run(&script, Buckets::new(&script))?;
    }
}
