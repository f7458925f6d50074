//! SIGHUP: the configuration is read anew while a run goes on.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::gate;
use super::show::say;
use crate::admission::Admission;
use crate::audit::Event;
use crate::config::{Config, Overrides};
use crate::egress::guard::Guard;

pub(super) struct Reload {
    hangup: Signal,
    overrides: Overrides,
    /// What the gate was started with.
    started: Config,
}

impl Reload {
    pub(super) fn new(overrides: &Overrides, started: Config) -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            overrides: overrides.clone(),
            started,
        })
    }

    pub(super) fn started(&self) -> &Config {
        &self.started
    }

    pub(super) async fn asked(&mut self) {
        // Should the system send no more signals, there is nothing to hear.
        if self.hangup.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Puts the file in force, or says everything that is wrong with it; that
    /// one changes nothing.
    pub(super) async fn reload(&self, admission: &Arc<Admission>, guard: &Guard) {
        let at = admission.clock().now();
        let event = match self.adopt(admission, guard).await {
            Ok(config) => {
                let waits = self.started.waits_for_restart(&config);
                say("the configuration was read anew and is in force");
                if !waits.is_empty() {
                    let keys = waits.join(", ");
                    say(&format!(
                        "changed in the file, but read only at a start: {keys}; start the run again for them"
                    ));
                }
                Event::Reloaded {
                    rules: config.source.digest.as_str().into(),
                    waiting: waits.into_iter().map(Arc::from).collect(),
                    at,
                }
            }
            Err(faults) => {
                say("the configuration has errors; what was in force still is:");
                faults.iter().for_each(|fault| say(fault));
                let faults = faults.into_iter().map(Arc::from).collect();
                Event::ReloadFailed { faults, at }
            }
        };
        admission.log().note(event).detach();
    }

    async fn adopt(
        &self,
        admission: &Arc<Admission>,
        guard: &Guard,
    ) -> Result<Config, Vec<String>> {
        let mut config = Config::load(&self.overrides, &|name| std::env::var(name).ok())
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        if let Some(path) = &self.started.source.path
            && config.source.path.as_ref() != Some(path)
        {
            return Err(vec![format!("{} is gone", path.display())]);
        }
        gate::name_targets(&config);
        let rulebook = std::mem::take(&mut config.rulebook);
        let gate = admission.clone();
        // What was spent is looked for on the disk first.
        let adopted = tokio::task::spawn_blocking(move || {
            gate.adopt(rulebook)?;
            gate.name_lanes()
        });
        let adopted = adopted.await.map_err(|error| vec![error.to_string()])?;
        adopted.map_err(|error| vec![error.to_string()])?;
        guard.reopen(config.allow_private.clone());
        Ok(config)
    }
}
