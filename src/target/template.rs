//! Path templates in the spelling of OpenTelemetry's `url.template`.
//!
//! A template is compared segment by segment, and of two templates that fit one path the one that
//! leaves less open must win. [`Template::specificity`] is built so that two templates which can
//! fit the same path rank equal only when they differ in nothing but their placeholders' names.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::path::push_normal;

/// A path with placeholders: `/users/{id}`, `/v{n}/{id}.json`, `/files/{*rest}`.
///
/// A placeholder stands for at least one character of one segment, `{*rest}` for one or more whole
/// segments. Literal text is kept in the normal form of paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Template {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Segment {
    Literal(String),
    Affixed { prefix: String, suffix: String },
    Whole,
    Rest,
}

/// Why a text is no path template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// It does not begin with `/`.
    #[error("a path template begins with `/`")]
    NotAbsolute,
    /// It holds a `?` or `#`: a path never does, so it would match nothing.
    #[error("a path template holds no `?` and no `#`: conditions on the query stand apart")]
    QueryInPath,
    /// A brace is not closed, not opened, or inside another.
    #[error("the braces in `{segment}` do not pair up")]
    UnpairedBrace {
        /// The segment as written.
        segment: String,
    },
    /// A placeholder has no name, or one with other characters than letters, digits and `_.-`.
    #[error("a placeholder in `{segment}` is not named with letters, digits, `_`, `.` and `-`")]
    PlaceholderName {
        /// The segment as written.
        segment: String,
    },
    /// More than one placeholder stands in a segment.
    #[error("`{segment}` has more than one placeholder")]
    SecondPlaceholder {
        /// The segment as written.
        segment: String,
    },
    /// `{*rest}` shares its segment with other text.
    #[error("`{segment}`: a placeholder for the rest of a path is a segment of its own")]
    RestInsideSegment {
        /// The segment as written.
        segment: String,
    },
    /// Something follows after `{*rest}`.
    #[error("nothing can follow the placeholder for the rest of a path")]
    RestNotLast,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// When its spelling is wrong, or when it could never fit a path.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if !text.starts_with('/') {
            return Err(TemplateError::NotAbsolute);
        }
        if text.contains(['?', '#']) {
            return Err(TemplateError::QueryInPath);
        }
        let mut shown: Vec<String> = Vec::new();
        let mut segments: Vec<Segment> = Vec::new();
        for written in text.split('/').filter(|written| !written.is_empty()) {
            if segments.last() == Some(&Segment::Rest) {
                return Err(TemplateError::RestNotLast);
            }
            let (segment, name) = Segment::parse(written)?;
            match &segment {
                Segment::Literal(literal) if literal == "." => {}
                Segment::Literal(literal) if literal == ".." => {
                    segments.pop();
                    shown.pop();
                }
                _ => {
                    shown.push(segment.spelled(name));
                    segments.push(segment);
                }
            }
        }
        let text = format!("/{}", shown.join("/"));
        Ok(Self { text, segments })
    }

    /// The template with its literal text in normal form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a normalised path fits.
    #[must_use]
    pub fn fits(&self, path: &str) -> bool {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        for segment in &self.segments {
            let Some(part) = parts.next() else {
                return false;
            };
            match segment {
                Segment::Rest => return true,
                _ if !segment.fits(part) => return false,
                _ => {}
            }
        }
        parts.next().is_none()
    }

    /// `Less` when this template leaves less open than the other. The first segment in which they
    /// differ decides: literal, then a placeholder with literal text, then a bare one, then the
    /// rest of the path; more literal text before less.
    pub(super) fn specificity(&self, other: &Self) -> Ordering {
        let ranks = self.segments.iter().map(Segment::rank);
        ranks.cmp(other.segments.iter().map(Segment::rank))
    }

    /// Whether both differ in nothing but the names of their placeholders.
    pub(super) fn has_shape_of(&self, other: &Self) -> bool {
        self.segments == other.segments
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        Self::parse(text)
    }
}

/// How much a segment leaves open; the smaller, the less.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Openness {
    kind: u8,
    literal: Reverse<usize>,
    // `a{x}` and `{x}b` fit `ab` alike; one of them has to come first.
    prefix: Reverse<usize>,
}

impl Segment {
    /// The segment, and the name of its placeholder if it has one.
    fn parse(written: &str) -> Result<(Self, &str), TemplateError> {
        let unpaired = || TemplateError::UnpairedBrace {
            segment: written.to_owned(),
        };
        let Some((prefix, opened)) = written.split_once('{') else {
            if written.contains('}') {
                return Err(unpaired());
            }
            return Ok((Self::Literal(normal(written)), ""));
        };
        let (name, suffix) = opened.split_once('}').ok_or_else(unpaired)?;
        if prefix.contains('}') || name.contains('{') {
            return Err(unpaired());
        }
        if suffix.contains(['{', '}']) {
            return Err(after_placeholder(written, suffix));
        }
        let (rest, name) = match name.strip_prefix('*') {
            Some(name) => (true, name),
            None => (false, name),
        };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if name.is_empty() || !name.bytes().all(allowed) {
            return Err(TemplateError::PlaceholderName {
                segment: written.to_owned(),
            });
        }
        let segment = match (rest, prefix.is_empty() && suffix.is_empty()) {
            (true, true) => Self::Rest,
            (false, true) => Self::Whole,
            (false, false) => Self::Affixed {
                prefix: normal(prefix),
                suffix: normal(suffix),
            },
            (true, false) => {
                return Err(TemplateError::RestInsideSegment {
                    segment: written.to_owned(),
                });
            }
        };
        Ok((segment, name))
    }

    fn spelled(&self, name: &str) -> String {
        match self {
            Self::Literal(literal) => literal.clone(),
            Self::Affixed { prefix, suffix } => format!("{prefix}{{{name}}}{suffix}"),
            Self::Whole => format!("{{{name}}}"),
            Self::Rest => format!("{{*{name}}}"),
        }
    }

    fn fits(&self, part: &str) -> bool {
        match self {
            Self::Literal(literal) => part == literal,
            Self::Affixed { prefix, suffix } => part
                .strip_prefix(prefix.as_str())
                .and_then(|rest| rest.strip_suffix(suffix.as_str()))
                .is_some_and(|value| !value.is_empty() && ends_between_characters(value)),
            Self::Whole | Self::Rest => true,
        }
    }

    fn rank(&self) -> Openness {
        let (kind, literal, prefix) = match self {
            Self::Literal(_) => (0, 0, 0),
            Self::Affixed { prefix, suffix } => (1, prefix.len() + suffix.len(), prefix.len()),
            Self::Whole => (2, 0, 0),
            Self::Rest => (3, 0, 0),
        };
        Openness {
            kind,
            literal: Reverse(literal),
            prefix: Reverse(prefix),
        }
    }
}

fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    push_normal(text, &mut normal);
    normal
}

/// A suffix such as `0` must not be found in the last digit of an encoded `%20`.
fn ends_between_characters(value: &str) -> bool {
    !matches!(value.as_bytes(), [.., b'%'] | [.., b'%', _])
}

fn after_placeholder(written: &str, suffix: &str) -> TemplateError {
    let segment = written.to_owned();
    let opens = suffix.find('{');
    let closes = suffix.find('}');
    match (opens, closes) {
        (Some(open), Some(close)) if open < close => TemplateError::SecondPlaceholder { segment },
        _ => TemplateError::UnpairedBrace { segment },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn literal_text_is_kept_in_the_normal_form_of_paths() {
        for (text, shown) in [
            ("/", "/"),
            ("//users//{id}/", "/users/{id}"),
            ("/%7eroot/{x}", "/~root/{x}"),
            ("/a%2fb/v%31{n}", "/a%2Fb/v1{n}"),
            ("/a/./b/../c", "/a/c"),
            ("/a/{x}/../c", "/a/c"),
            ("/../a", "/a"),
            ("/bücher/{*rest}", "/b%C3%BCcher/{*rest}"),
        ] {
            assert_eq!(template(text).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn a_wrong_spelling_is_an_error_of_its_own_kind() {
        let segment = |text: &str| text.trim_start_matches('/').to_owned();
        for text in ["", "users", "{id}", " /x"] {
            assert_eq!(Template::parse(text), Err(TemplateError::NotAbsolute));
        }
        for text in ["/a?b", "/a#b", "/{id}?page={n}"] {
            assert_eq!(Template::parse(text), Err(TemplateError::QueryInPath));
        }
        for text in [
            "/{id", "/id}", "/{{id}}", "/}x{", "/{a}b}", "/{a}{b", "/{a}}{",
        ] {
            let segment = segment(text);
            let error = TemplateError::UnpairedBrace { segment };
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
        for text in ["/{}", "/{*}", "/{a b}", "/{id:[0-9]+}", "/{**rest}", "/x{}"] {
            let segment = segment(text);
            let error = TemplateError::PlaceholderName { segment };
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
        for text in ["/{a}{b}", "/{a}-{b}", "/x{a}.{b}y"] {
            let segment = segment(text);
            let error = TemplateError::SecondPlaceholder { segment };
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
        for text in ["/x{*rest}", "/{*rest}.json"] {
            let segment = segment(text);
            let error = TemplateError::RestInsideSegment { segment };
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
        for text in ["/{*rest}/a", "/a/{*rest}/{x}", "/{*rest}/.."] {
            assert_eq!(Template::parse(text), Err(TemplateError::RestNotLast));
        }
    }

    #[test]
    fn a_suffix_is_not_found_inside_an_encoded_character() {
        assert!(!template("/{x}0").fits("/a%20"));
        assert!(!template("/{x}20").fits("/a%20"));
        assert!(template("/{x}%20").fits("/a%20"));
        assert!(template("/{x}0").fits("/%200"));
        assert!(template("/a{x}").fits("/a%20"));
    }

    #[test]
    fn templates_rank_by_the_first_segment_in_which_they_differ() {
        let ranked = [
            "/a/b/{*rest}",
            "/a/verb{n}",
            "/a/v{n}",
            "/a/{n}v",
            "/a/{id}/b",
            "/a/{id}/{x}",
            "/a/{*rest}",
            "/{x}/b",
            "/{*rest}",
        ]
        .map(template);
        for pair in ranked.windows(2) {
            assert_eq!(pair[0].specificity(&pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(pair[1].specificity(&pair[0]), Ordering::Greater, "{pair:?}");
        }
        let (one, other) = (template("/a/{id}"), template("/b/{name}"));
        assert_eq!(one.specificity(&other), Ordering::Equal);
        assert!(!one.has_shape_of(&other));
        assert!(one.has_shape_of(&template("/a/{name}")));
    }
}
