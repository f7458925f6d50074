//! What a file says of targets: `[defaults]`, `[[pool]]`, `[[target]]` and
//! `[[target.class]]`, made into a [`Rulebook`].

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::field::Field;
use super::places::{Places, Reading, TargetPlace};
use super::section::Section;
use super::values;
use super::{classes, limits};
use crate::budget::{
    Conduct, Defaults, HostPattern, PoolRule, Provenance, Rulebook, Sharing, TargetRule,
};

/// Enough for any chain of redirects that ends; browsers give up at 20.
const MOST_REDIRECTS: u32 = 50;
/// Keys of a target that say something about its rule, and change nothing.
const REMARKS: [&str; 4] = ["match", "source", "as_of", "note"];

const SHARINGS: [(&str, Sharing); 1] = [("host", Sharing::PerHost)];

/// All rules of a file; none when they cannot hold together, and why is
/// entered.
pub(super) fn take(root: &mut Section<'_, '_>, author: &str) -> Option<Rulebook> {
    let mut places = Places::default();
    let defaults = take_defaults(root, author);
    let mut pools = Vec::new();
    for section in root.take_sections("pool") {
        let spot = section.spot_of("name");
        match pool(section, &defaults.conduct, author) {
            Some(pool) => {
                pools.push(pool);
                places.pools.push(spot);
            }
            None => places.all_pools = Reading::Partial,
        }
    }
    let mut targets = Vec::new();
    for section in root.take_sections("target") {
        let names_pool = section.sets("pool");
        match target(section, &defaults.conduct, author) {
            Some((target, place)) => {
                if names_pool && target.pool.is_none() {
                    places.all_targets = Reading::Partial;
                }
                targets.push(target);
                places.targets.push(place);
            }
            None => places.all_targets = Reading::Partial,
        }
    }
    let report = root.report();
    match Rulebook::new(defaults, targets, pools) {
        Ok(book) => Some(book),
        Err(errors) => {
            for error in errors {
                if let Some(spot) = places.spot_of(&error) {
                    report.fault(spot, places.described(&error, report));
                }
            }
            None
        }
    }
}

fn take_defaults(root: &mut Section<'_, '_>, author: &str) -> Defaults {
    let mut defaults = Defaults::default();
    let Some(mut section) = root.take("defaults").and_then(Field::section) else {
        return defaults;
    };
    let limits = limits::take(&mut section);
    if limits::KEYS.iter().any(|key| section.sets(key)) {
        defaults.limits = limits;
        defaults.provenance = Provenance::by(author);
    }
    defaults.conduct = conduct(&mut section, &defaults.conduct);
    section.close();
    defaults
}

fn pool(mut section: Section<'_, '_>, inherited: &Conduct, author: &str) -> Option<PoolRule> {
    let why = "targets draw from the pool by it";
    let name = section.need_text("name", why, values::name);
    let limits = limits::take(&mut section);
    let sets_limits = limits::KEYS.iter().any(|key| section.sets(key));
    let margin = section.take_text("arrival_margin", values::margin);
    let provenance = provenance(&mut section, author);
    if !sets_limits && !section.has_strangers() {
        section.fault("a pool without limits changes nothing: write rate, max or quota");
    }
    section.close();
    Some(PoolRule {
        name: name?.into(),
        limits,
        arrival_margin: margin.unwrap_or(inherited.arrival_margin),
        provenance,
    })
}

fn target(
    mut section: Section<'_, '_>,
    inherited: &Conduct,
    author: &str,
) -> Option<(TargetRule, TargetPlace)> {
    let why = "of which hosts does this speak? Write such as match = \"https://api.example.org\"";
    let pattern = section.need_text("match", why, str::parse::<HostPattern>);
    let sharing = section
        .take("per")
        .and_then(|value| value.choice(&SHARINGS));
    let limits = limits::take(&mut section);
    let pool: Option<Arc<str>> = section.take_text("pool", values::name).map(Arc::from);
    let conduct = conduct(&mut section, inherited);
    let provenance = provenance(&mut section, author);
    let mut classes = Vec::new();
    let mut class_spots = Vec::new();
    let mut named = BTreeSet::new();
    for block in section.take_sections("class") {
        let spot = block.spot().clone();
        if let Some(terms) = classes::take(block, &mut named) {
            classes.push(terms);
            class_spots.push(spot);
        }
    }
    if section.sets_nothing_but(&REMARKS) {
        section.fault("changes nothing: set a limit, a pool or another key of [defaults]");
    }
    let place = TargetPlace {
        pattern: section.spot_of("match"),
        pool: section.spot_of("pool"),
        classes: class_spots,
    };
    section.close();
    let rule = TargetRule {
        pattern: pattern?,
        sharing: sharing.unwrap_or_default(),
        limits,
        conduct,
        pool,
        classes,
        provenance,
    };
    Some((rule, place))
}

fn conduct(section: &mut Section<'_, '_>, inherited: &Conduct) -> Conduct {
    let concurrency = section.take("concurrency");
    let redirects = section.take("max_redirects");
    Conduct {
        concurrency: concurrency
            .and_then(|value| value.number(1..=u32::MAX))
            .and_then(NonZeroU32::new)
            .unwrap_or(inherited.concurrency),
        arrival_margin: section
            .take_text("arrival_margin", values::margin)
            .unwrap_or(inherited.arrival_margin),
        timeout: section
            .take_text("timeout", values::timeout)
            .unwrap_or(inherited.timeout),
        max_redirects: redirects
            .and_then(|value| value.number(0..=MOST_REDIRECTS))
            .unwrap_or(inherited.max_redirects),
        max_body: section
            .take_text("max_body", values::body_size)
            .unwrap_or(inherited.max_body),
    }
}

fn provenance(section: &mut Section<'_, '_>, author: &str) -> Provenance {
    Provenance {
        source: section.take_text("source", values::words).map(Arc::from),
        as_of: section.take_text("as_of", values::date).map(Arc::from),
        note: section.take_text("note", values::words).map(Arc::from),
        author: author.into(),
    }
}
