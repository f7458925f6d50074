//! Who caused a call: the agent, its trajectory, the step in it, and the goal
//! behind it. A reviewer's first question is always *who*.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The agent named by a call that names none.
pub const UNATTRIBUTED: &str = "unattributed";

/// The cause of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// Which agent asked.
    pub agent: Arc<str>,
    /// Which of its runs.
    pub trajectory: Arc<str>,
    /// Which step of that run.
    pub step: Arc<str>,
    /// What it was after.
    pub goal: Arc<str>,
}

impl Step {
    /// A step of `agent` with nothing else known.
    #[must_use]
    pub fn of(agent: &str) -> Self {
        Self::new(agent, "", "", "")
    }

    /// A step with all its names; an empty agent is [`UNATTRIBUTED`].
    #[must_use]
    pub fn new(agent: &str, trajectory: &str, step: &str, goal: &str) -> Self {
        Self {
            agent: if agent.is_empty() {
                UNATTRIBUTED
            } else {
                agent
            }
            .into(),
            trajectory: trajectory.into(),
            step: step.into(),
            goal: goal.into(),
        }
    }

    /// True when the call named its agent.
    #[must_use]
    pub fn is_attributed(&self) -> bool {
        &*self.agent != UNATTRIBUTED
    }
}

impl Default for Step {
    fn default() -> Self {
        Self::of(UNATTRIBUTED)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.agent)?;
        for part in [&self.trajectory, &self.step] {
            if !part.is_empty() {
                write!(f, "/{part}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_agent_is_unattributed() {
        assert!(!Step::new("", "run", "1", "").is_attributed());
        assert!(Step::of("scout").is_attributed());
    }

    #[test]
    fn a_step_is_written_from_the_agent_down() {
        assert_eq!(
            Step::new("scout", "run-17", "4", "map").to_string(),
            "scout/run-17/4"
        );
        assert_eq!(Step::of("scout").to_string(), "scout");
    }
}
