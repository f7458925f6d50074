//! What a list of tasks is made of: which of its lines are meant, and what they fill. Patterns are
//! regular expressions, found anywhere in the URL, as `wget --accept-regex` has them; a glob over a
//! whole URL would have to say what `*` makes of a `/` and of a `?`.

use clap::Args as ClapArgs;
use regex::Regex;

use crate::schedule::list::{Context, Template};

#[derive(Debug, Default, ClapArgs)]
pub(super) struct Picking {
    /// Make a task of each line: `{}` is the line, `{name}` a field of a line that is a JSON object
    ///
    /// TASK is a task as JSON, or a URL alone; the holes are in its strings. In `url` what fills
    /// a hole is percent-encoded, unless the hole comes first, where it is the whole URL;
    /// elsewhere it is put in as it is. `{:raw}` and `{name:raw}` are never encoded, `{:json}` and
    /// `{name:json}` become a JSON value, for bodies; `{{` and `}}` are braces. Blank lines are
    /// passed over.
    #[arg(long, value_name = "TASK")]
    pub(super) template: Option<Template>,
    /// Only tasks whose URL matches this regular expression, or another one given so
    ///
    /// It is looked for anywhere in the URL as the list (or the template) spells it: `^` and `$`
    /// are its ends. A redirect is followed wherever it leads, and tasks that an earlier run
    /// accepted are done whatever this one leaves out.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(super) include: Vec<Regex>,
    /// No tasks whose URL matches this regular expression; it has the last word
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(super) exclude: Vec<Regex>,
}

impl Picking {
    /// Whether there is anything to leave out.
    pub(super) fn picks(&self) -> bool {
        !self.include.is_empty() || !self.exclude.is_empty()
    }

    /// Whether a task of this URL is meant.
    pub(super) fn wants(&self, url: &str) -> bool {
        let is_found = |pattern: &Regex| pattern.is_match(url);
        let included = self.include.is_empty() || self.include.iter().any(is_found);
        included && !self.exclude.iter().any(is_found)
    }

    /// Hands on how lines are to be read.
    pub(super) fn reading<T>(&self, wall_offset: i64, read: impl FnOnce(Context<'_>) -> T) -> T {
        let wanted = |url: &str| self.wants(url);
        read(Context {
            env: &|name| std::env::var(name).ok(),
            wall_offset,
            template: self.template.as_ref(),
            wanted: self.picks().then_some(&wanted),
        })
    }
}

/// The regex crate draws where it is wrong over several lines; its last line says what is.
fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| match error {
        regex::Error::Syntax(drawn) => drawn,
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclude_has_the_last_word_and_one_include_is_enough() {
        let patterns = |texts: &[&str]| texts.iter().map(|text| pattern(text).unwrap()).collect();
        for (include, exclude, wanted) in [
            (&[][..], &[][..], [true, true, true]),
            (&["/docs/"], &[], [true, false, true]),
            (&["^http://b", "/docs/a"], &[], [true, true, true]),
            (&[], &[r"\.pdf$"], [true, true, false]),
            (&["/docs/"], &[r"\.pdf$"], [true, false, false]),
            (&["(?i)/DOCS/"], &["."], [false, false, false]),
        ] {
            let picking = Picking {
                template: None,
                include: patterns(include),
                exclude: patterns(exclude),
            };
            let found = [
                "http://a.test/docs/a",
                "http://b.test/",
                "http://b.test/docs/b.pdf",
            ];
            assert_eq!(
                found.map(|url| picking.wants(url)),
                wanted,
                "{include:?} {exclude:?}"
            );
        }
    }
}
