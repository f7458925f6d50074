//! The swarm: agents that each follow trajectories of several steps towards a
//! goal, and want a page at every step.

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::cast::{Manner, ONE_IN};
use super::target::{MOVED, Target};
use crate::schedule::{Handle, NewTask, SubmitError};
use crate::step::Step;

const CALLINGS: [&str; 4] = ["scout", "reader", "checker", "indexer"];
const GOALS: [&str; 5] = [
    "map the field",
    "verify a claim",
    "collect sources",
    "watch for changes",
    "fill a gap",
];
/// Steps of a trajectory.
const STEPS: usize = 8;
/// Enough to see a target rest twice, and to end within a few seconds.
const FUTILE_ATTEMPTS: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

/// One agent, and what it wants.
#[derive(Debug)]
struct Agent {
    name: String,
    tasks: Vec<NewTask>,
}

impl Agent {
    fn new(number: usize) -> Self {
        let calling = CALLINGS.iter().cycle().nth(number).unwrap_or(&"agent");
        Self {
            name: format!("{calling}-{}", number + 1),
            tasks: Vec::new(),
        }
    }

    fn wants(&mut self, url: &str, target: &Target) {
        let done = self.tasks.len();
        let trajectory = done / STEPS;
        let goal = GOALS.iter().cycle().nth(trajectory).unwrap_or(&"");
        let step = Step::new(
            &self.name,
            &format!("{}-run-{}", self.name, trajectory + 1),
            &(done % STEPS + 1).to_string(),
            goal,
        );
        let mut new = NewTask::get(url, step);
        if target.part.manner == Manner::Gone {
            new.task.max_attempts = FUTILE_ATTEMPTS;
        }
        self.tasks.push(new);
    }
}

/// Agents with all they want.
#[derive(Debug)]
pub(super) struct Swarm(Vec<Agent>);

impl Swarm {
    /// Deals the work for these targets out to so many agents.
    pub(super) fn new(targets: &[Arc<Target>], agents: u64) -> Self {
        let agents = usize::try_from(agents).unwrap_or(usize::MAX);
        let mut swarm: Vec<_> = (0..agents).map(Agent::new).collect();
        let most = targets.iter().map(|target| target.part.tasks).max();
        let mut dealt = 0;
        for number in 0..most.unwrap_or(0) {
            for target in targets.iter().filter(|target| number < target.part.tasks) {
                // One of them has been told of a machine that is not there.
                let whose = match target.part.manner {
                    Manner::Gone => 0,
                    Manner::Plain | Manner::Moody(_) | Manner::Signpost(_) => dealt,
                };
                if let Some(agent) = swarm.get_mut(whose % agents.max(1)) {
                    agent.wants(&url(target, number), target);
                }
                dealt += 1;
            }
        }
        Self(swarm)
    }

    /// How much they want in all.
    pub(super) fn tasks(&self) -> usize {
        self.0.iter().map(|agent| agent.tasks.len()).sum()
    }

    /// All agents ask at the same time, each for one trajectory after the other.
    pub(super) async fn submit(self, handle: Handle) -> Result<(), SubmitError> {
        let mut agents = JoinSet::new();
        for Agent { mut tasks, .. } in self.0 {
            let handle = handle.clone();
            agents.spawn(async move {
                while !tasks.is_empty() {
                    let rest = tasks.split_off(tasks.len().min(STEPS));
                    handle.submit(std::mem::replace(&mut tasks, rest)).await?;
                }
                Ok(())
            });
        }
        while let Some(agent) = agents.join_next().await {
            match agent {
                // Why it has stopped is told in its place; what was not asked for is lost there.
                Ok(Err(SubmitError::Stopped(_))) | Err(_) => {}
                Ok(submitted) => submitted?,
            }
        }
        Ok(())
    }
}

/// The page of a target that a task asks for; no page is asked for twice.
fn url(target: &Target, number: u64) -> String {
    let (origin, name) = (target.origin(), target.part.name);
    let moved = matches!(target.part.manner, Manner::Signpost(_)) && number % ONE_IN == ONE_IN - 1;
    let front = if moved { MOVED } else { "" };
    format!("{origin}{front}/{name}/{number}")
}
