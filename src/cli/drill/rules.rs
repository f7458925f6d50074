//! The rules of a drill, by way of the same file that a user would write.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::target::Target;
use crate::budget::Limit;
use crate::config::{Config, ConfigErrors, Overrides};

const HEAD: &str = r#"
contact = "drill"
allow_private = ["127.0.0.1"]
paths = "full"
min_free = "50MB"
"#;

/// A configuration that knows what each target tolerates.
pub(super) fn config(targets: &[Arc<Target>], store: &Path) -> Result<Config, ConfigErrors> {
    let overrides = Overrides {
        config: None,
        store: Some(store.to_owned()),
    };
    // Nothing of the user's own environment may change what is drilled.
    Config::parse(&text(targets), Path::new("drill.toml"), &overrides, &|_| {
        None
    })
}

fn text(targets: &[Arc<Target>]) -> String {
    let mut text = HEAD.to_owned();
    for target in targets {
        let part = &target.part;
        let kind = match part.limit {
            Limit::Rate { .. } => "rate",
            Limit::Max { .. } | Limit::Quota { .. } => "max",
        };
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            r#"
[[target]]
match = "{origin}"
{kind} = "{frequency}"
burst = {burst}
concurrency = {at_once}
source = "drill"
note = "{name}"
"#,
            origin = target.origin(),
            frequency = part.limit,
            burst = part.limit.burst(),
            at_once = part.at_once,
            name = part.name,
        );
    }
    text
}
