//! Never over, whatever happens.
#![cfg(test)]

use proptest::prelude::*;

use super::drive::run;
use super::gate::{ByHand, Live};
use super::script::{Trouble, script};

/// A share of the usual number of cases: each of these opens stores.
fn cases(share: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: (default.cases / share).max(1),
        ..default
    }
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn a_target_never_gets_more_than_it_takes(script in script(Trouble::None, 150)) {
        run(&script, Live::new(&script))?;
    }

    #[test]
    fn nor_while_the_rules_change(script in script(Trouble::Revisions, 150)) {
        run(&script, Live::new(&script))?;
    }

    #[test]
    fn nor_when_the_gate_is_killed(script in script(Trouble::Crashes, 100)) {
        run(&script, Live::new(&script))?;
    }

    #[test]
    fn nor_when_both_happen(script in script(Trouble::All, 100)) {
        run(&script, Live::new(&script))?;
    }

    #[test]
    fn nor_when_an_operator_sets_other_limits(script in script(Trouble::Revisions, 150)) {
        run(&script, ByHand::new(&script))?;
    }

    #[test]
    fn nor_when_the_gate_is_killed_under_them(script in script(Trouble::All, 100)) {
        run(&script, ByHand::new(&script))?;
    }
}
