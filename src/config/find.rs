//! Which file is read, and where the record lies when nothing says so.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::errors::{ConfigError, Place};
use super::{Environment, Overrides};

/// The name looked for in a folder.
const FILE_NAME: &str = "tidegate.toml";
/// The program's folder below the XDG folders.
const FOLDER: &str = "tidegate";

/// A file and its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// The first file there is, in the order of precedence; `here` is the current
/// folder. A file that somebody named must be there.
pub(super) fn find(
    overrides: &Overrides,
    env: Environment<'_>,
    here: &Path,
) -> Result<Option<Found>, ConfigError> {
    if let Some(path) = &overrides.config {
        return named(path, Place::Argument("--config")).map(Some);
    }
    if let Some(path) = variable(env, "TIDEGATE_CONFIG") {
        return named(Path::new(&path), Place::Variable("TIDEGATE_CONFIG")).map(Some);
    }
    let home = xdg(env, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join(FILE_NAME));
    for path in [Some(here.join(FILE_NAME)), home].into_iter().flatten() {
        match std::fs::read(&path) {
            Ok(bytes) => return text(path, bytes).map(Some),
            Err(error) if is_absence(error.kind()) => {}
            Err(error) => {
                let message = format!("cannot be read: {error}");
                return Err(ConfigError::new(Place::File(path), message));
            }
        }
    }
    Ok(None)
}

/// The built-in place of the record; none when there is no home folder.
pub(super) fn default_store(env: Environment<'_>) -> Option<PathBuf> {
    xdg(env, "XDG_STATE_HOME", ".local/state")
}

/// A variable that is set and not empty: an empty one means the same as none,
/// here as in the XDG specification.
pub(super) fn variable(env: Environment<'_>, name: &str) -> Option<String> {
    env(name).filter(|value| !value.is_empty())
}

/// The program's folder below a base folder of the XDG specification (0.8),
/// which says that a relative path there is to be ignored.
fn xdg(env: Environment<'_>, name: &str, below_home: &str) -> Option<PathBuf> {
    let folder = |name| variable(env, name).map(PathBuf::from);
    let base = folder(name)
        .filter(|base| base.is_absolute())
        .or_else(|| Some(folder("HOME")?.join(below_home)))?;
    Some(base.join(FOLDER))
}

fn named(path: &Path, place: Place) -> Result<Found, ConfigError> {
    match std::fs::read(path) {
        Ok(bytes) => text(path.to_owned(), bytes),
        Err(error) => {
            let message = format!("{} cannot be read: {error}", path.display());
            Err(ConfigError::new(place, message))
        }
    }
}

fn text(path: PathBuf, bytes: Vec<u8>) -> Result<Found, ConfigError> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Found { path, text }),
        Err(error) => {
            let valid = error
                .as_bytes()
                .iter()
                .take(error.utf8_error().valid_up_to());
            let place = Place::Line {
                file: path,
                line: valid.filter(|byte| **byte == b'\n').count() + 1,
                key: String::new(),
            };
            Err(ConfigError::new(place, "is not UTF-8, as TOML must be"))
        }
    }
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}
