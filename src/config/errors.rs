//! What is wrong with a configuration: every fault, each with its place.

use std::fmt;
use std::path::PathBuf;

/// Longer messages are cut, so that a value pasted by mistake does not fill a
/// screen.
const MAX_MESSAGE_CHARS: usize = 600;

/// Where a fault lies. Sorted as faults are listed: what stands before a file,
/// then the file from its first line to its last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An argument of the command line, such as `--config`.
    Argument(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// A file as a whole.
    File(PathBuf),
    /// A line of a file.
    Line {
        /// The file as it was named.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The dotted key, such as `target[2].burst`; the first block of an
        /// array is 1. Empty where no key could be read.
        key: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => f.write_str(name),
            Self::Variable(name) => write!(f, "${name}"),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Line { file, line, key } => {
                write!(f, "{}:{line}", file.display())?;
                if key.is_empty() {
                    return Ok(());
                }
                write!(f, ": {key}")
            }
        }
    }
}

/// One fault. Displays as one line: place, fault, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    place: Place,
    message: String,
}

impl ConfigError {
    pub(super) fn new(place: Place, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self { place, message }
    }

    /// Where it lies.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What is wrong, and what would be right.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and values of the file are repeated here: whatever they hold,
        // a fault stays one line and leaves the terminal alone.
        let text = format!("{}: {}", self.place, self.message);
        let mut chars = text.chars();
        for char in chars.by_ref().take(MAX_MESSAGE_CHARS) {
            if char.is_control() {
                write!(f, "{}", char.escape_default())?;
            } else {
                write!(f, "{char}")?;
            }
        }
        if chars.next().is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a configuration, in the order of its places.
/// Displays as one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    pub(super) fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|one, other| one.place.cmp(&other.place));
        Self(errors)
    }

    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, key: &str) -> Place {
        Place::Line {
            file: "tidegate.toml".into(),
            line,
            key: key.to_owned(),
        }
    }

    #[test]
    fn faults_are_listed_in_the_order_of_the_file() {
        let errors = ConfigErrors::new(vec![
            ConfigError::new(at(12, "b"), "two"),
            ConfigError::new(at(3, "z"), "one"),
            ConfigError::new(at(100, ""), "three"),
            ConfigError::new(Place::Variable("TIDEGATE_STORE"), "before"),
        ]);
        assert_eq!(
            errors.to_string(),
            "$TIDEGATE_STORE: before\n\
             tidegate.toml:3: z: one\n\
             tidegate.toml:12: b: two\n\
             tidegate.toml:100: three"
        );
    }

    #[test]
    fn whatever_a_file_holds_a_fault_is_one_printable_line() {
        let error = ConfigError::new(at(1, "a\nb"), "\u{1b}[2J\u{9b}x\r\n`é`");
        assert_eq!(
            error.to_string(),
            "tidegate.toml:1: a\\nb: \\u{1b}[2J\\u{9b}x\\r\\n`é`"
        );
        let long = ConfigError::new(at(1, "a"), "x".repeat(100_000)).to_string();
        assert_eq!(long.chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
