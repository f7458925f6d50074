//! From a configuration to an open gate.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::Failure;
use super::show::say;
use crate::admission::{Admission, Policy};
use crate::config::{Config, Overrides};
use crate::egress::Wire;
use crate::egress::guard::{Guard, pinned_lookup, system_lookup};
use crate::serve::{ControlError, Question, ask};
use crate::store::{IfMissing, Store, StoreError};
use crate::telemetry;

/// Reads the configuration; everything that is wrong is reported at once.
pub(super) fn config(overrides: &Overrides) -> Result<Config, Failure> {
    Config::load(overrides, &|name| std::env::var(name).ok()).map_err(Failure::usage)
}

/// Opens a store to read its record; no gate is opened, and nothing added.
pub(super) fn record(config: &Config) -> Result<Arc<Store>, StoreError> {
    Store::open(&config.store, IfMissing::Fail, config.min_free).map(Arc::new)
}

/// Opens the gate over a store.
pub(super) fn open(
    config: &Config,
    store: &Path,
    if_missing: IfMissing,
) -> Result<Arc<Admission>, StoreError> {
    let store = Arc::new(Store::open(store, if_missing, config.min_free)?);
    let clock = store.clock();
    name_targets(config);
    let policy = Policy {
        paths: config.paths,
        steps: config.steps,
        user_agent: user_agent(config).into(),
        rules: config.source.digest.as_str().into(),
    };
    Admission::open(store, clock, config.rulebook.clone(), policy)
}

/// Targets that a rule names have metrics of their own.
pub(super) fn name_targets(config: &Config) {
    let origins = config.rulebook.rules();
    let origins = origins.filter_map(|rule| rule.pattern.origin());
    origins.for_each(|origin| telemetry::name_target(&origin));
}

/// Opens the gate over the configured store for as long as there is work. A
/// command that only asks something may have the store for a moment.
pub(super) async fn open_for_long(
    config: &Config,
    if_missing: IfMissing,
) -> Result<Arc<Admission>, StoreError> {
    let mut tries = 60_u32;
    loop {
        let opened = open(config, &config.store, if_missing);
        if !matches!(opened, Err(StoreError::InUse(_))) || tries == 0 {
            return opened;
        }
        let held = ask(&config.store, &Question::Status, |_| false).await;
        if !matches!(held, Err(ControlError::NobodyThere)) {
            return opened;
        }
        tries -= 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A process may have as many files open as its user allows: each connection
/// is one, and the usual soft limit is small.
pub(super) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum;
    // Where it is not allowed, it stays as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

/// No more calls at once than there are descriptors for, with as many for idle
/// connections and twice as many for the record and the bodies.
pub(super) fn concurrency(asked: usize) -> usize {
    use rustix::process::{Resource, getrlimit};
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(most / 4).unwrap_or(usize::MAX).max(1);
    if asked > most {
        say(&format!(
            "only {most} calls are made at once, not {asked}: this process may have few files open (ulimit -n)"
        ));
    }
    asked.min(most)
}

fn user_agent(config: &Config) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match &config.contact {
        Some(contact) => format!("tidegate/{version} (+{contact})"),
        None => format!("tidegate/{version}"),
    }
}

/// How the wire is reached, by the configuration.
pub(super) fn wire(config: &Config, admission: &Admission) -> Wire {
    let pins: HashMap<_, _> = config.resolve.clone().into_iter().collect();
    Wire {
        guard: Arc::new(Guard::new(config.allow_private.clone())),
        lookup: pinned_lookup(pins, system_lookup()),
        ca_file: config.ca_file.clone(),
        user_agent: admission.user_agent().clone(),
    }
}

/// A folder of this process's own, gone when it is dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> std::io::Result<Self> {
        let base = std::env::temp_dir();
        for number in 0..1000_u32 {
            let folder = base.join(format!("tidegate-{}-{number}", std::process::id()));
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(std::io::Error::other(format!(
            "{} is full of folders of this name",
            base.display()
        )))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Installs the recorder of this process's metrics, once, and gives their text.
pub(super) fn metrics() -> crate::serve::Metrics {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let handle = PrometheusBuilder::new().install_recorder().ok();
        telemetry::describe();
        handle
    });
    Arc::new(move || {
        handle
            .as_ref()
            .map(PrometheusHandle::render)
            .unwrap_or_default()
    })
}
