//! `init`: a first file of rules, made of what was seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::answer::answer;
use super::args::InitArgs;
use super::show::{Rows, say};
use super::{Exit, Failure, gate};
use crate::audit::SeenHost;
use crate::budget::{Envelope, Layer, Limit, Reset, Scope};
use crate::config::Overrides;
use crate::serve::{Question, Record, Wanted};

pub(super) async fn init(overrides: &Overrides, args: InitArgs) -> Result<Exit, Failure> {
    let config = gate::config(overrides)?;
    let question = Question::Audit {
        record: Record::Seen,
        wanted: Wanted::default(),
    };
    if args.output.json {
        answer(&config, &question, Rows::Json).await?;
        return Ok(Exit::Done);
    }
    let found = Arc::new(Mutex::new(Vec::new()));
    answer(&config, &question, Rows::Kept(found.clone())).await?;
    let rows = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    let hosts: Result<Vec<SeenHost>, _> = rows.into_iter().map(serde_json::from_value).collect();
    let text = file(&hosts?, args.top);
    match &args.out {
        Some(out) => write_new(out, &text)?,
        // A reader that has left is the end, not an error.
        None => drop(io::stdout().write_all(text.as_bytes())),
    }
    Ok(Exit::Done)
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => {
            say(&format!(
                "{}: check it with `tidegate check`",
                path.display()
            ));
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::usage(format!(
            "{} is there already and is left as it is: name another file",
            path.display()
        ))),
        Err(error) => Err(Failure {
            exit: Exit::Error,
            words: format!("{}: {error}", path.display()),
        }),
    }
}

const HEAD: &str = "\
# Made of what was seen so far. The limits are those that were in force, as
# explicit values; change what you know better, and say where it is from.
# `tidegate check` checks this file, docs/tidegate.example.toml has every key.

# contact = \"ops@example.org\"     # whom the operator of a target may write to
";

/// The budget that hosts without rules of their own share with their
/// neighbours, as a pool: with limits each they would get more together.
struct Shared<'h> {
    layer: &'h Layer,
    hosts: usize,
}

fn file(hosts: &[SeenHost], top: usize) -> String {
    let mut shared: BTreeMap<String, Shared<'_>> = BTreeMap::new();
    let shown = hosts.get(..top).unwrap_or(hosts);
    for host in shown {
        if let Some((name, layer)) = group(host) {
            let entry = shared.entry(name).or_insert(Shared { layer, hosts: 0 });
            entry.hosts += 1;
        }
    }
    shared.retain(|_, shared| shared.hosts > 1);
    let mut pools: BTreeMap<String, &Layer> = BTreeMap::new();
    let mut text = HEAD.to_owned();
    for host in shown {
        target(&mut text, host, &shared, &mut pools);
    }
    let named = shared.iter().map(|(name, shared)| (name, shared.layer));
    for (name, layer) in named.chain(pools.iter().map(|(name, layer)| (name, *layer))) {
        let _ = write!(text, "\n[[pool]]\nname = {name:?}\n");
        limits(&mut text, &layer.limits);
        let margin = layer.arrival_margin.as_millis();
        let _ = writeln!(text, "arrival_margin = \"{margin}ms\"");
    }
    let more = hosts.len() - shown.len();
    if more > 0 {
        let _ = write!(
            text,
            "\n# {more} more hosts got fewer calls: --top N shows more.\n"
        );
    }
    text
}

fn group(host: &SeenHost) -> Option<(String, &Layer)> {
    let layer = layer(&host.envelope, "group").filter(|layer| !layer.limits.is_empty())?;
    let mut scopes = host.scopes.iter();
    let name = scopes.find_map(|scope| match scope {
        Scope::Group(name) => Some(name.to_string()),
        _ => None,
    })?;
    Some((name, layer))
}

fn layer<'e>(envelope: &'e Envelope, scope: &str) -> Option<&'e Layer> {
    envelope.layers.iter().find(|layer| *layer.scope == *scope)
}

fn target<'h>(
    text: &mut String,
    host: &'h SeenHost,
    shared: &BTreeMap<String, Shared<'_>>,
    pools: &mut BTreeMap<String, &'h Layer>,
) {
    let SeenHost {
        target,
        calls,
        throttled,
        envelope,
        envelope_revision,
        ..
    } = host;
    let _ = write!(
        text,
        "\n# {calls} calls, {throttled} refused for now; envelope {envelope_revision}\n"
    );
    for words in &host.words {
        let words: String = words.chars().filter(|char| !char.is_control()).collect();
        let _ = writeln!(text, "# it said: {words}");
    }
    for layer in envelope
        .layers
        .iter()
        .filter(|layer| *layer.scope == *"class")
    {
        let limits: Vec<String> = layer.limits.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            text,
            "# a class of it has limits beside these ({}): write its [[target.class]] again",
            limits.join(", ")
        );
    }
    let _ = write!(text, "[[target]]\nmatch = \"{target}\"\n");
    suggestion(text, host);
    let own = layer(envelope, "host").filter(|layer| !layer.limits.is_empty());
    let in_group = group(host);
    match (own, &in_group) {
        (Some(own), _) => limits(text, &own.limits),
        (None, Some((name, _))) if shared.contains_key(name) => {
            let _ = writeln!(text, "pool = {name:?}    # one budget for all hosts of it");
        }
        (None, Some((_, layer))) => limits(text, &layer.limits),
        (None, None) => {}
    }
    let pool = layer(envelope, "pool").filter(|layer| !layer.limits.is_empty());
    let in_pool = in_group.is_some_and(|(name, _)| shared.contains_key(&name)) && own.is_none();
    if let Some((name, layer)) = pool.and_then(|layer| Some((layer.pool.clone()?, layer)))
        && !in_pool
    {
        let _ = writeln!(text, "pool = {:?}", &*name);
        pools.insert(name.to_string(), layer);
    }
    let mut at_once = envelope.layers.iter().filter_map(|layer| layer.concurrency);
    if let Some(most) = at_once.next() {
        let _ = writeln!(text, "concurrency = {most}");
    }
}

/// What it tolerated, as far as minutes tell.
fn suggestion(text: &mut String, host: &SeenHost) {
    let Some(refused) = host.least_refused_per_min else {
        return;
    };
    let (rate, why) = match host.most_accepted_per_min {
        Some(most) => (
            most,
            "the most calls of a minute without a refusal, among those below the quietest minute with one that is below it".to_owned(),
        ),
        None => (
            (refused / 2).max(1),
            "half of it, since no minute with fewer calls was without a refusal".to_owned(),
        ),
    };
    let _ = write!(
        text,
        "# It refused in a minute of {refused} calls. Suggested instead of these limits:\n\
         # max = \"{rate}/min\"    # {why}\n"
    );
}

fn limits(text: &mut String, limits: &[Limit]) {
    if let [limit] = limits {
        let fields = fields(limit).join("\n");
        let _ = writeln!(text, "{fields}");
        return;
    }
    let each = limits
        .iter()
        .map(|limit| format!("{{ {} }}", fields(limit).join(", ")));
    let each: Vec<String> = each.collect();
    let _ = writeln!(text, "limits = [{}]", each.join(", "));
}

fn fields(limit: &Limit) -> Vec<String> {
    match limit {
        Limit::Rate { frequency, burst } => {
            vec![
                format!("rate = \"{frequency}\""),
                format!("burst = {burst}"),
            ]
        }
        Limit::Max { frequency, burst } => {
            vec![format!("max = \"{frequency}\""), format!("burst = {burst}")]
        }
        Limit::Quota { frequency, reset } => {
            let reset = match reset {
                Reset::Utc => "UTC",
                Reset::Rolling => "rolling",
            };
            vec![
                format!("quota = \"{frequency}\""),
                format!("reset = \"{reset}\""),
            ]
        }
    }
}
