//! From a line to a task.

use std::num::NonZeroU32;
use std::time::SystemTime;

use super::identity::{content, default_id};
use super::object::{Bad, Fields};
use super::{BadLine, Context};
use crate::clock::{Moment, moment_at};
use crate::outcome::is_safe_to_repeat;
use crate::schedule::NewTask;
use crate::schedule::payload::{HttpPayload, IDEMPOTENCY_KEY};
use crate::schedule::task::{MAX_ATTEMPTS, Repeat, Task, TaskCall};
use crate::step::Step;
use crate::target::locate;

pub(super) const FIELDS: [&str; 15] = [
    "id",
    "url",
    "method",
    "headers",
    "body",
    "agent",
    "trajectory",
    "step",
    "goal",
    "priority",
    "not_before",
    "deadline",
    "max_attempts",
    "cost",
    "idempotency_key",
];

/// Reads one line; nothing where it is blank or a comment (`#`). `number` is for its errors. A line
/// that fills a template is data: only blank ones are passed over.
///
/// # Errors
/// When it is no task.
pub fn read_line(
    line: &str,
    number: usize,
    context: &Context<'_>,
) -> Result<Option<NewTask>, BadLine> {
    // Some editors begin a file with a byte order mark, and files are joined.
    let text = line.trim_start_matches('\u{feff}').trim();
    let is_comment = context.template.is_none() && text.starts_with('#');
    if text.is_empty() || is_comment {
        return Ok(None);
    }
    let fields = match context.template {
        Some(template) => template
            .fill(text)
            .and_then(|task| Fields::read(&task, &FIELDS)),
        None if text.starts_with('{') => Fields::read(text, &FIELDS),
        None => bare(text),
    };
    let place = |Bad { field, message }| BadLine {
        line: number,
        field,
        message,
    };
    fields
        .and_then(|fields| new_task(fields, context))
        .map(Some)
        .map_err(place)
}

fn bare(text: &str) -> Result<Fields, Bad> {
    if text.starts_with('[') {
        return Err(Bad::line(
            "is a JSON array; a list has one task a line, a JSON object or a URL, and nothing around them",
        ));
    }
    if text.starts_with('"') {
        return Err(Bad::line(
            "begins with a quote; write the URL alone, or a JSON object such as {\"url\": \"https://…\"}",
        ));
    }
    // The URL parser would take a space as part of the path, and drop a tab.
    if text.contains(char::is_whitespace) {
        return Err(Bad::field(
            "url",
            "holds a space; to say more, write a JSON object",
        ));
    }
    Ok(Fields::only("url", text))
}

fn new_task(mut fields: Fields, context: &Context<'_>) -> Result<NewTask, Bad> {
    let url = fields
        .text("url")?
        .ok_or_else(|| Bad::field("url", "is missing"))?;
    locate(&url).map_err(|rejection| {
        if url.is_empty() || url.contains(':') {
            Bad::field("url", rejection)
        } else {
            Bad::field("url", "has no scheme; write https:// or http:// before it")
        }
    })?;
    let method = method(&mut fields)?;
    let body = fields.text("body")?.unwrap_or_default().into_bytes();
    let key = idempotency_key(&mut fields)?;
    let headers = fields.pairs("headers")?;
    let content = content(&method, &url, &headers, &body, key.as_deref());
    let id = match fields.text("id")? {
        Some(id) if id.is_empty() => return Err(Bad::field("id", "is empty")),
        Some(id) => id,
        None => default_id(&method, &url, &body),
    };
    let repeat = match &key {
        Some(_) => Repeat::Safe,
        None if is_safe_to_repeat(&method) => Repeat::Safe,
        None => Repeat::Never,
    };
    let payload = payload(headers, body, key, context)?;
    let mut named = |field| Ok(fields.text(field)?.unwrap_or_default());
    let step = Step::new(
        &named("agent")?,
        &named("trajectory")?,
        &named("step")?,
        &named("goal")?,
    );
    let not_before = moment(&mut fields, "not_before", context)?;
    let deadline = moment(&mut fields, "deadline", context)?;
    if deadline.is_some() && deadline <= not_before {
        return Err(Bad::field("deadline", "is not after not_before"));
    }
    let task = Task {
        id: id.into(),
        call: TaskCall {
            url: url.into(),
            method: method.into(),
            payload: payload.encode().into(),
        },
        step,
        priority: fields
            .number("priority", "from -2147483648 to 2147483647")?
            .unwrap_or(0),
        not_before,
        deadline,
        max_attempts: count(&mut fields, "max_attempts")?.unwrap_or(MAX_ATTEMPTS),
        cost: count(&mut fields, "cost")?.unwrap_or(NonZeroU32::MIN),
        repeat,
    };
    Ok(NewTask { task, content })
}

fn method(fields: &mut Fields) -> Result<String, Bad> {
    let Some(method) = fields.text("method")? else {
        return Ok("GET".to_owned());
    };
    let method = method.to_ascii_uppercase();
    if http::Method::from_bytes(method.as_bytes()).is_err() {
        return Err(Bad::field(
            "method",
            "is no HTTP method, such as GET or POST",
        ));
    }
    if method == "CONNECT" {
        return Err(Bad::field(
            "method",
            "CONNECT opens a tunnel, and a task is a request",
        ));
    }
    Ok(method)
}

/// Sent as it is written: the draft wants it in quotes, and most servers do not.
fn idempotency_key(fields: &mut Fields) -> Result<Option<String>, Bad> {
    const FIELD: &str = "idempotency_key";
    let Some(key) = fields.text(FIELD)? else {
        return Ok(None);
    };
    let is_plain = key
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if !is_plain || key.trim().len() != key.len() || key.is_empty() {
        return Err(Bad::field(
            FIELD,
            "must be printable ASCII without spaces around it",
        ));
    }
    if key.starts_with("env:") {
        return Err(Bad::field(
            FIELD,
            "cannot come from the environment: a repeat must carry it",
        ));
    }
    Ok(Some(key))
}

fn payload(
    mut headers: Vec<(String, String)>,
    body: Vec<u8>,
    key: Option<String>,
    context: &Context<'_>,
) -> Result<HttpPayload, Bad> {
    if let Some(key) = key {
        if headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(IDEMPOTENCY_KEY.as_str()))
        {
            return Err(Bad::field(
                "idempotency_key",
                "is among the headers as well",
            ));
        }
        headers.push((IDEMPOTENCY_KEY.to_string(), key));
    }
    let payload = HttpPayload { headers, body };
    match payload.to_headers(context.env) {
        Ok(_) => Ok(payload),
        Err(fault) if fault.name.is_empty() => Err(Bad::field("headers", fault.problem)),
        Err(fault) => Err(Bad::field(format!("headers.{}", fault.name), fault.problem)),
    }
}

fn moment(fields: &mut Fields, field: &str, context: &Context<'_>) -> Result<Option<Moment>, Bad> {
    let Some(text) = fields.text(field)? else {
        return Ok(None);
    };
    let wrong = |_| {
        Bad::field(
            field,
            "must be a time with its offset, such as 2026-12-01T03:41:01Z",
        )
    };
    let time: jiff::Timestamp = text.parse().map_err(wrong)?;
    Ok(Some(moment_at(SystemTime::from(time), context.wall_offset)))
}

fn count(fields: &mut Fields, field: &str) -> Result<Option<NonZeroU32>, Bad> {
    const RANGE: &str = "from 1 to 4294967295";
    match fields.number::<u32>(field, RANGE)?.map(NonZeroU32::new) {
        None => Ok(None),
        Some(Some(count)) => Ok(Some(count)),
        Some(None) => Err(Bad::field(field, format!("must be a whole number {RANGE}"))),
    }
}
