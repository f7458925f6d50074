//! The whole way from a text to a configuration, or to its faults.

mod faults;
mod rulebook;
mod sources;

use std::path::Path;

use super::{Config, ConfigErrors, Overrides};

const EXAMPLE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/docs/tidegate.example.toml"
));

fn home(name: &str) -> Option<String> {
    (name == "HOME").then(|| "/home/ada".to_owned())
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(
        text,
        Path::new("tidegate.toml"),
        &Overrides::default(),
        &home,
    )
}

fn parsed(text: &str) -> Config {
    parse(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The faults of a text, a line each.
fn faults(text: &str) -> Vec<String> {
    let errors = parse(text).err().map(|errors| errors.to_string());
    let errors = errors.unwrap_or_default();
    errors.lines().map(ToOwned::to_owned).collect()
}
