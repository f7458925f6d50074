//! A task written once, with holes that the lines of a list fill: `{}` takes the line, `{name}` a
//! field of a line that is a JSON object. The pattern is that of `xargs -I{}`, exact where that is
//! not: what fills a hole can neither end a string of JSON nor lead to another part of a URL.

use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::line::FIELDS;
use super::object::{Bad, Fields};

/// A task with holes.
///
/// A string of the task holds text, `{}` or `{name}`, and `{{` or `}}` for a brace. In `url` what
/// fills a hole is percent-encoded down to the unreserved characters (RFC 3986, section 2.3),
/// unless the hole is at the very beginning, where it is the URL itself. Everywhere else it is put
/// in as it is. `{:raw}` and `{name:raw}` are put in as they are in a URL too; `{:json}` and
/// `{name:json}` as a value of JSON (RFC 8259), in quotes where it is a string, for bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<(String, Part)>,
    asks_for_fields: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Fixed(Value),
    Text(Vec<Piece>),
    Object(Vec<(String, Part)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Hole(Hole),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hole {
    /// None is the whole line.
    name: Option<String>,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    AsIs,
    Percent,
    Json,
}

/// Why a text is no template; names the field where it is one that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

const ENV: &str = "env:";

/// All but the unreserved characters of RFC 3986, section 2.3.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let text = text.trim();
        let inside = text.strip_prefix('{').unwrap_or_default();
        let task = if inside.trim_start().starts_with('"') {
            // What a line could not say, a template cannot.
            Fields::read(text, &FIELDS).map_err(|bad| match bad.field {
                Some(field) => TemplateError(format!("{field}: {}", bad.message)),
                None => TemplateError(bad.message),
            })?;
            serde_json::from_str(text).map_err(|error| TemplateError(error.to_string()))?
        } else {
            Map::from_iter([("url".to_owned(), text.into())])
        };
        if !task.contains_key("url") {
            return Err(TemplateError("url: is missing".to_owned()));
        }
        let mut holes = 0;
        let mut asks_for_fields = false;
        let mut parts = Vec::with_capacity(task.len());
        for (name, value) in task {
            let part = part(&name, value)?;
            part.holes(&mut |hole| {
                holes += 1;
                asks_for_fields |= hole.name.is_some();
            });
            parts.push((name, part));
        }
        if holes == 0 {
            return Err(TemplateError(
                "no line would change anything in it: write {} where the line belongs, or {name} \
                 for a field of it"
                    .to_owned(),
            ));
        }
        Ok(Self {
            parts,
            asks_for_fields,
        })
    }
}

fn part(name: &str, value: Value) -> Result<Part, TemplateError> {
    Ok(match value {
        Value::String(text) => {
            let pieces =
                pieces(&text, name == "url").map_err(|error| in_field(name, error.as_str()))?;
            let is_variable = name.starts_with("headers.") && text.trim_start().starts_with(ENV);
            match pieces.as_slice() {
                [] => Part::Fixed(text.into()),
                [Piece::Literal(literal)] => Part::Fixed(literal.as_str().into()),
                _ if is_variable => {
                    return Err(in_field(
                        name,
                        "`env:` takes the name of one variable, which no line may choose",
                    ));
                }
                _ => Part::Text(pieces),
            }
        }
        Value::Object(members) => {
            let member = |(member, value): (String, Value)| {
                part(&format!("{name}.{member}"), value).map(|part| (member, part))
            };
            Part::Object(members.into_iter().map(member).collect::<Result<_, _>>()?)
        }
        other => Part::Fixed(other),
    })
}

fn in_field(name: &str, message: &str) -> TemplateError {
    TemplateError(format!("{name}: {message}"))
}

fn pieces(text: &str, is_url: bool) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some((before, brace, after)) = at_brace(rest) {
        literal.push_str(before);
        if let Some(after) = after.strip_prefix(brace) {
            literal.push(brace);
            rest = after;
            continue;
        }
        let inside = (brace == '{').then(|| after.split_once('}')).flatten();
        let Some((inside, after)) = inside else {
            return Err(format!(
                "a single `{brace}`; for a brace write `{brace}{brace}`"
            ));
        };
        let at_start = pieces.is_empty() && literal.is_empty();
        let hole = hole(inside, is_url && !at_start)?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Hole(hole));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

fn at_brace(text: &str) -> Option<(&str, char, &str)> {
    let (before, rest) = text.split_at(text.find(['{', '}'])?);
    let brace = rest.chars().next()?;
    Some((before, brace, rest.strip_prefix(brace)?))
}

fn hole(inside: &str, encoded: bool) -> Result<Hole, String> {
    let (name, how) = match inside.rsplit_once(':') {
        Some((name, "raw")) => (name, How::AsIs),
        Some((name, "json")) => (name, How::Json),
        _ if encoded => (inside, How::Percent),
        _ => (inside, How::AsIs),
    };
    if name.contains(['{', '"', ':', ',']) || name.trim() != name {
        return Err(
            "a `{` begins a hole, such as {}, {name}, {name:raw} or {name:json}; for a brace write `{{`"
                .to_owned(),
        );
    }
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Hole { name, how })
}

impl Part {
    fn holes(&self, seen: &mut impl FnMut(&Hole)) {
        match self {
            Self::Fixed(_) => {}
            Self::Text(pieces) => pieces.iter().for_each(|piece| {
                if let Piece::Hole(hole) = piece {
                    seen(hole);
                }
            }),
            Self::Object(members) => {
                for (_, part) in members {
                    part.holes(seen);
                }
            }
        }
    }

    fn filled(&self, name: &str, line: &Line<'_>) -> Result<Value, Bad> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Literal(literal) => text.push_str(literal),
                        Piece::Hole(hole) => line.fill(hole, &mut text)?,
                    }
                }
                if name.starts_with("headers.") && text.trim_start().starts_with(ENV) {
                    return Err(Bad::field(
                        name,
                        "the line would name an environment variable, which only the template may",
                    ));
                }
                Ok(text.into())
            }
            Self::Object(members) => {
                let member = |(member, part): &(String, Self)| {
                    let value = part.filled(&format!("{name}.{member}"), line)?;
                    Ok((member.clone(), value))
                };
                members.iter().map(member).collect()
            }
        }
    }
}

/// What there is to fill holes with.
struct Line<'a> {
    text: &'a str,
    fields: Map<String, Value>,
}

impl Line<'_> {
    fn fill(&self, hole: &Hole, into: &mut String) -> Result<(), Bad> {
        let whole;
        let value = match &hole.name {
            None => {
                whole = Value::from(self.text);
                &whole
            }
            Some(name) => self.fields.get(name).ok_or_else(|| {
                Bad::field(format!("{{{name}}}"), "the line has no field of this name")
            })?,
        };
        let text = match (value, hole.how) {
            (value, How::Json) => value.to_string(),
            (Value::String(text), _) => text.clone(),
            (Value::Number(_) | Value::Bool(_), _) => value.to_string(),
            (Value::Null | Value::Array(_) | Value::Object(_), _) => {
                let name = hole.name.as_deref().unwrap_or_default();
                return Err(Bad::field(
                    format!("{{{name}}}"),
                    format!("is no text and no number; {{{name}:json}} takes it as JSON"),
                ));
            }
        };
        match hole.how {
            How::Percent => into.extend(utf8_percent_encode(&text, COMPONENT)),
            How::AsIs | How::Json => into.push_str(&text),
        }
        Ok(())
    }
}

impl Template {
    /// The task that a line makes of it, as the JSON of a task file.
    pub(super) fn fill(&self, text: &str) -> Result<String, Bad> {
        let fields = match self.asks_for_fields {
            true => object(text)?,
            false => Map::new(),
        };
        let line = Line { text, fields };
        let filled = |(name, part): &(String, Part)| Ok((name.clone(), part.filled(name, &line)?));
        let task: Map<String, Value> = self.parts.iter().map(filled).collect::<Result<_, Bad>>()?;
        Ok(Value::from(task).to_string())
    }
}

/// Its errors repeat nothing of the line, which may hold a secret.
fn object(text: &str) -> Result<Map<String, Value>, Bad> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Bad::line(
            "is not a JSON object on one line, and the template asks for a field of one",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, line: &str) -> Result<Value, String> {
        let template: Template = template.parse().map_err(|error| format!("{error}"))?;
        let text = template.fill(line).map_err(|bad| match bad.field {
            Some(field) => format!("{field}: {}", bad.message),
            None => bad.message,
        })?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_line_fills_a_url_in_the_way_its_place_asks_for() {
        for (template, line, url) in [
            ("http://a.test/u/{}", "7", "http://a.test/u/7"),
            (
                "http://a.test/u/{}",
                "a b/c?d#e&f%20é{}",
                "http://a.test/u/a%20b%2Fc%3Fd%23e%26f%2520%C3%A9%7B%7D",
            ),
            (
                "http://a.test/{:raw}?x",
                "a/b%20c",
                "http://a.test/a/b%20c?x",
            ),
            (
                "http://a.test/?q={}&r={}",
                "a&b",
                "http://a.test/?q=a%26b&r=a%26b",
            ),
            ("{}", "http://a.test/x?y", "http://a.test/x?y"),
            ("{}/robots.txt", "http://a.test", "http://a.test/robots.txt"),
            ("https://{}/", "evil.test/x", "https://evil.test%2Fx/"),
            ("http://a.test/{{{}}}", "-._~", "http://a.test/{-._~}"),
            (
                "http://a.test/{id}/{name}",
                r#"{"id": 7, "name": "a/b", "more": null}"#,
                "http://a.test/7/a%2Fb",
            ),
            (
                "{link}",
                r#"{"link":"http://a.test/?a=b"}"#,
                "http://a.test/?a=b",
            ),
        ] {
            let template = serde_json::json!({"url": template}).to_string();
            assert_eq!(filled(&template, line).unwrap()["url"], url, "{template}");
        }
        assert_eq!(
            filled("http://a.test/{}", "x y").unwrap()["url"],
            "http://a.test/x%20y"
        );
    }

    #[test]
    fn elsewhere_a_line_is_text_and_cannot_end_its_string() {
        let template = r#"{"url":"http://a.test/","agent":"scout {}","priority":3,
            "headers":{"x-id":"{}","authorization":"env:TOKEN"},"body":"{{\"q\":{:json}}}"}"#;
        let line = r#"a"b\","priority":9"#;
        let task = filled(template, line).unwrap();
        assert_eq!(task["agent"], format!("scout {line}"));
        assert_eq!(
            (&task["priority"], &task["headers"]["x-id"]),
            (&3.into(), &line.into())
        );
        assert_eq!(task["headers"]["authorization"], "env:TOKEN");
        let body: Value = serde_json::from_str(task["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["q"], line);
        let nested = r#"{"url":"http://a.test/","body":"{filter:json}"}"#;
        let task = filled(nested, r#"{"filter":{"a":[1,"x"]}}"#).unwrap();
        assert_eq!(task["body"], r#"{"a":[1,"x"]}"#);
    }

    #[test]
    fn a_line_that_cannot_fill_a_hole_says_which_and_repeats_nothing() {
        for (template, line, error) in [
            (
                "http://a.test/{id}",
                "hunter2",
                "is not a JSON object on one line, and the template asks for a field of one",
            ),
            (
                "http://a.test/{id}",
                r#"["hunter2"]"#,
                "is not a JSON object on one line, and the template asks for a field of one",
            ),
            (
                "http://a.test/{id}",
                r#"{"ID":"hunter2"}"#,
                "{id}: the line has no field of this name",
            ),
            (
                "http://a.test/{id}",
                r#"{"id":["hunter2"]}"#,
                "{id}: is no text and no number; {id:json} takes it as JSON",
            ),
            (
                r#"{"url":"http://a.test/","headers":{"x":"{}"}}"#,
                " env:HOME",
                "headers.x: the line would name an environment variable, which only the template may",
            ),
        ] {
            assert_eq!(
                filled(template, line).unwrap_err(),
                error,
                "{template} {line}"
            );
        }
    }

    #[test]
    fn a_bad_template_is_refused_with_the_place() {
        for (template, error) in [
            ("http://a.test/", "no line would change anything"),
            (
                "http://a.test/{",
                "url: a single `{`; for a brace write `{{`",
            ),
            (
                "http://a.test/}{}",
                "url: a single `}`; for a brace write `}}`",
            ),
            ("http://a.test/{a:b}", "url: a `{` begins a hole"),
            (r#"{"agent":"{}"}"#, "url: is missing"),
            (r#"{"uri":"{}"}"#, "uri: is no field"),
            (r#"{"url":"{}""#, "is not a JSON object on one line"),
            (
                r#"{"url":"{}","body":"{"q":1}"}"#,
                "is not a JSON object on one line",
            ),
            (
                r#"{"url":"{}","body":"{\"q\":1}"}"#,
                "body: a `{` begins a hole",
            ),
            (
                r#"{"url":"{}","headers":{"authorization":"env:{}"}}"#,
                "headers.authorization: `env:` takes the name of one variable",
            ),
        ] {
            let said = template.parse::<Template>().unwrap_err().to_string();
            assert!(said.starts_with(error), "{template}: {said}");
        }
    }
}
