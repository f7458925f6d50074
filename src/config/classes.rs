//! One `[[target.class]]`: which calls it speaks of, and its limits.

use std::collections::BTreeSet;

use super::field::Field;
use super::limits;
use super::section::Section;
use super::values::{self, ValueError};
use crate::budget::{ClassTerms, PauseScope};
use crate::target::{Class, ClassRule, QueryCondition, Template};

const PAUSES: [(&str, PauseScope); 2] = [("host", PauseScope::Host), ("class", PauseScope::Class)];

/// A class of a target; `named` are the classes of earlier blocks.
pub(super) fn take(
    mut section: Section<'_, '_>,
    named: &mut BTreeSet<Class>,
) -> Option<ClassTerms> {
    let why = "the class stands in target keys by it";
    let name = section.need_text("name", why, class_name);
    let why = "of which calls does this speak? Write such as path = \"/search/{*rest}\"";
    let template = section.need_text("path", why, Template::parse);
    let methods = section.take("methods").and_then(|value| methods(&value));
    let query = section.take("query").and_then(query);
    let limits = limits::take(&mut section);
    let sets_limits = limits::KEYS.iter().any(|key| section.sets(key));
    let pause = section.take("pause").map(|value| value.choice(&PAUSES));
    // Another block of a class adds calls to it.
    let is_new = name.clone().is_some_and(|name| named.insert(name));
    let says_nothing = matches!(pause, None | Some(Some(PauseScope::Host)));
    if !sets_limits && says_nothing && is_new && !section.has_strangers() {
        section.fault("changes nothing: give the class a limit, or pause = \"class\"");
    }
    section.close();
    Some(ClassTerms {
        rule: ClassRule {
            name: name?,
            template: template?,
            methods: methods.unwrap_or_default(),
            query: query.unwrap_or_default(),
        },
        limits,
        pause: pause.flatten().unwrap_or_default(),
    })
}

fn class_name(text: &str) -> Result<Class, String> {
    let class = text.parse::<Class>().map_err(|error| error.to_string())?;
    if class.is_default() {
        return Err(format!(
            "`{class}` is the class of calls that no block names: choose another name"
        ));
    }
    Ok(class)
}

fn methods(value: &Field<'_, '_>) -> Option<Vec<String>> {
    let methods = value.texts(values::name)?;
    if value.is_empty_list() {
        return value.fault("allows no call: name a method, or leave it out for all");
    }
    Some(methods)
}

fn query(value: Field<'_, '_>) -> Option<Vec<QueryCondition>> {
    let hint = "write query = [\"page\"], or query = { type = \"code\" }";
    if value.is_table() {
        let entries = value.section()?.into_entries();
        let conditions = entries.into_iter().filter_map(|(name, value)| {
            Some(QueryCondition::Equals {
                name: name.to_owned(),
                value: value.text(|text| Ok::<_, ValueError>(text.to_owned()))?,
            })
        });
        return Some(conditions.collect());
    }
    if value.is_empty_list() || !value.is_list() {
        return value.fault(format_args!("names no parameter: {hint}"));
    }
    let names = value.texts(values::words)?;
    Some(names.into_iter().map(QueryCondition::Named).collect())
}
