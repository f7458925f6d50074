//! The configuration: the file as written, made into checked values in one
//! step that reports every fault at once, each with file, line and key.
//!
//! A gate that guesses what a file meant keeps somebody else's limit wrongly,
//! and nobody sees it. So nothing is guessed: an unknown key, a rule that can
//! match nothing or changes nothing, two rules for the same calls and a number
//! that cannot be kept are errors, and a file with an error has no effect.
//!
//! One file is read, the first of `--config`, `$TIDEGATE_CONFIG`,
//! `./tidegate.toml` and `tidegate/tidegate.toml` in the XDG configuration
//! folder. A value comes from the command line, else from the environment,
//! else from the file, else it is built in.

mod classes;
mod errors;
mod field;
mod file;
mod find;
mod limits;
mod places;
mod reload;
mod report;
mod rules;
mod section;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;

use crate::admission::{PathRecording, StepPolicy};
use crate::budget::Rulebook;
pub use errors::{ConfigError, ConfigErrors, Place};
use file::Written;
use report::Report;

/// Free space below which nothing is granted: enough to close a store cleanly.
const DEFAULT_MIN_FREE: u64 = 500_000_000;

/// Reads an environment variable; a parameter, so that tests need not change
/// the real environment.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// What the command line says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--config`: the file to read.
    pub config: Option<PathBuf>,
    /// `--store`: where the record lies.
    pub store: Option<PathBuf>,
}

/// Which file the values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    /// The file as it was named; none: only built-in values.
    pub path: Option<PathBuf>,
    /// BLAKE3 of its text, in hex; of no text where there is no file.
    pub digest: String,
}

/// A configuration that can be kept.
#[derive(Debug)]
pub struct Config {
    /// The folder of the record.
    pub store: PathBuf,
    /// Whom a target's operator may write to: a part of the `User-Agent`,
    /// printable ASCII without parentheses.
    pub contact: Option<String>,
    /// Private, loopback and link-local ranges that may be called all the same.
    pub allow_private: Vec<IpNet>,
    /// How a path is recorded.
    pub paths: PathRecording,
    /// Whether a call must name its agent.
    pub steps: StepPolicy,
    /// Bytes of free space below which nothing is granted.
    pub min_free: u64,
    /// Days of the record older than this go; none: all are kept.
    pub retention: Option<Duration>,
    /// Bytes that the bodies of a run may take; none: all are kept.
    pub max_store: Option<u64>,
    /// Names whose addresses are given here and not asked for; the names are
    /// spelled as in target keys, no list is empty.
    pub resolve: BTreeMap<String, Vec<IpAddr>>,
    /// Certificates in PEM that are trusted beside the bundled ones; the file
    /// was there when the configuration was read.
    pub ca_file: Option<PathBuf>,
    /// What targets tolerate.
    pub rulebook: Rulebook,
    /// Where all of this comes from.
    pub source: ConfigSource,
}

/// A span as a file or an option spells it: `25ms`, `60s`, `5min`, `2h`, `7d`.
///
/// # Errors
/// Says what would be right.
pub fn duration(text: &str) -> Result<Duration, impl std::error::Error> {
    values::duration(text)
}

/// A size as a file or an option spells it: `500MB`, `1GiB`.
///
/// # Errors
/// Says what would be right.
pub fn size(text: &str) -> Result<u64, impl std::error::Error> {
    values::size(text)
}

impl Config {
    /// Finds the file, reads it and lays environment and command line over it.
    /// Without any file the built-in values hold.
    ///
    /// # Errors
    /// Everything that is wrong: a named file that cannot be read, each fault
    /// of the file and of the environment.
    pub fn load(overrides: &Overrides, env: Environment<'_>) -> Result<Self, ConfigErrors> {
        match find::find(overrides, env, Path::new(""))? {
            Some(found) => Self::parse(&found.text, &found.path, overrides, env),
            None => Self::assemble("", None, overrides, env),
        }
    }

    /// The configuration that `text` would give as the file `name`, whether or
    /// not there is such a file. Relative paths in it start from the folder of
    /// `name`.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(
        text: &str,
        name: &Path,
        overrides: &Overrides,
        env: Environment<'_>,
    ) -> Result<Self, ConfigErrors> {
        Self::assemble(text, Some(name), overrides, env)
    }

    fn assemble(
        text: &str,
        path: Option<&Path>,
        overrides: &Overrides,
        env: Environment<'_>,
    ) -> Result<Self, ConfigErrors> {
        let name = path.unwrap_or(Path::new(""));
        let report = Report::new(name, text);
        let written = Written::read(&report, name);
        let mut errors = report.into_errors();
        let contact = from_environment(env, "TIDEGATE_CONTACT", values::contact, &mut errors);
        let min_free = from_environment(env, "TIDEGATE_MIN_FREE", values::size, &mut errors);
        let retention = from_environment(env, "TIDEGATE_RETENTION", values::retention, &mut errors);
        let max_store = from_environment(env, "TIDEGATE_MAX_STORE", values::size, &mut errors);
        let store = from_environment(env, "TIDEGATE_STORE", values::path, &mut errors);
        let store = overrides.store.clone().or(store.map(PathBuf::from));
        let store = store.or(written.store).or_else(|| find::default_store(env));
        if store.is_none() {
            errors.push(ConfigError::new(
                Place::Argument("--store"),
                "is needed, since neither HOME nor XDG_STATE_HOME says where the record could lie",
            ));
        }
        let (Some(store), Some(rulebook), true) = (store, written.rulebook, errors.is_empty())
        else {
            return Err(ConfigErrors::new(errors));
        };
        Ok(Self {
            store,
            contact: contact.or(written.contact),
            allow_private: written.allow_private,
            paths: written.paths.unwrap_or_default(),
            steps: written.steps.unwrap_or_default(),
            min_free: min_free.or(written.min_free).unwrap_or(DEFAULT_MIN_FREE),
            retention: retention.or(written.retention),
            max_store: max_store.or(written.max_store),
            resolve: written.resolve,
            ca_file: written.ca_file,
            rulebook,
            source: ConfigSource {
                path: path.map(Path::to_owned),
                digest: blake3::hash(text.as_bytes()).to_hex().to_string(),
            },
        })
    }
}

fn from_environment<T, E: Display>(
    env: Environment<'_>,
    name: &'static str,
    read: impl FnOnce(&str) -> Result<T, E>,
    errors: &mut Vec<ConfigError>,
) -> Option<T> {
    match read(&find::variable(env, name)?) {
        Ok(value) => Some(value),
        Err(error) => {
            errors.push(ConfigError::new(Place::Variable(name), error));
            None
        }
    }
}
