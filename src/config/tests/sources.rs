use std::fs;
use std::path::{Path, PathBuf};

use super::super::find::{Found, find};
use super::{faults, home, parse};
use crate::config::{Config, ConfigErrors, Overrides};

const NOTHING: &dyn Fn(&str) -> Option<String> = &|_| None;

fn overrides(config: Option<&Path>, store: Option<&str>) -> Overrides {
    Overrides {
        config: config.map(Path::to_owned),
        store: store.map(PathBuf::from),
    }
}

fn variables<'v>(set: &'v [(&'v str, &'v str)]) -> impl Fn(&str) -> Option<String> + 'v {
    move |name| {
        let found = set.iter().find(|(set, _)| *set == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

/// What is wrong when `text` meets this environment.
fn faults_of(text: &str, env: &dyn Fn(&str) -> Option<String>) -> String {
    let parsed = Config::parse(text, Path::new("tidegate.toml"), &Overrides::default(), env);
    parsed.map_or_else(|errors: ConfigErrors| errors.to_string(), |_| String::new())
}

#[test]
fn the_first_file_in_the_order_of_precedence_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, text) in [
        ("flag.toml", "contact = \"flag\""),
        ("variable.toml", "contact = \"variable\""),
        ("tidegate.toml", "contact = \"here\""),
        ("xdg/tidegate/tidegate.toml", "contact = \"xdg\""),
        ("home/.config/tidegate/tidegate.toml", "contact = \"home\""),
    ] {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::write(at(name), text).unwrap();
    }
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let (variable, xdg, home) = (text("variable.toml"), text("xdg"), text("home"));
    let all = [
        ("TIDEGATE_CONFIG", variable.as_str()),
        ("XDG_CONFIG_HOME", xdg.as_str()),
        ("HOME", home.as_str()),
    ];
    let empty = at("empty");
    let flag = overrides(Some(&at("flag.toml")), None);
    let none = Overrides::default();
    let found = |overrides: &Overrides, set: &[(&str, &str)], here: &Path| {
        let found = find(overrides, &variables(set), here).unwrap();
        found.map(|found| found.text.split('"').nth(1).unwrap().to_owned())
    };
    let here = folder.path();
    assert_eq!(found(&flag, &all, here).as_deref(), Some("flag"));
    assert_eq!(found(&none, &all, here).as_deref(), Some("variable"));
    assert_eq!(found(&none, &all[1..], here).as_deref(), Some("here"));
    assert_eq!(found(&none, &all[1..], &empty).as_deref(), Some("xdg"));
    assert_eq!(found(&none, &all[2..], &empty).as_deref(), Some("home"));
    assert_eq!(found(&none, &[], &empty), None);
    let ignored = [
        ("TIDEGATE_CONFIG", ""),
        ("XDG_CONFIG_HOME", "xdg"),
        ("HOME", home.as_str()),
    ];
    assert_eq!(found(&none, &ignored, &empty).as_deref(), Some("home"));
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let missing = Path::new("/nowhere/tidegate.toml");
    let error = Config::load(&overrides(Some(missing), None), &home).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("--config: /nowhere/tidegate.toml cannot be read: "),
        "{text}"
    );

    let env = variables(&[
        ("TIDEGATE_CONFIG", "/nowhere/x.toml"),
        ("HOME", "/home/ada"),
    ]);
    let error = Config::load(&Overrides::default(), &env).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("$TIDEGATE_CONFIG: /nowhere/x.toml cannot be read: "),
        "{text}"
    );
}

#[test]
fn a_file_that_lies_there_but_cannot_be_read_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.toml");
    fs::create_dir(&file).unwrap();
    let error = find(&Overrides::default(), NOTHING, folder.path()).unwrap_err();
    let expected = format!("{}: cannot be read: ", file.display());
    assert!(error.to_string().starts_with(&expected), "{error}");

    fs::remove_dir(&file).unwrap();
    fs::write(&file, b"# one\ncontact = \"\xff\"").unwrap();
    let error = find(&Overrides::default(), NOTHING, folder.path()).unwrap_err();
    let expected = format!("{}:2: is not UTF-8, as TOML must be", file.display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_command_line_goes_before_the_environment_and_that_before_the_file() {
    let text = "store = \"/file\"\ncontact = \"file\"\nmin_free = \"3GB\"";
    let all = [
        ("TIDEGATE_STORE", "/variable"),
        ("TIDEGATE_CONTACT", "variable"),
        ("TIDEGATE_MIN_FREE", "2GB"),
        ("XDG_STATE_HOME", "/state"),
        ("HOME", "/home/ada"),
    ];
    let values = |text: &str, flag: Option<&str>, set: &[(&str, &str)]| {
        let overrides = overrides(None, flag);
        let config = Config::parse(text, Path::new("t.toml"), &overrides, &variables(set));
        let config = config.unwrap();
        let store = config.store.to_str().unwrap().to_owned();
        format!(
            "{store} {} {}",
            config.contact.unwrap_or_default(),
            config.min_free
        )
    };
    assert_eq!(
        values(text, Some("/flag"), &all),
        "/flag variable 2000000000"
    );
    assert_eq!(values(text, None, &all), "/variable variable 2000000000");
    assert_eq!(values(text, None, &all[3..]), "/file file 3000000000");
    assert_eq!(values("", None, &all[3..]), "/state/tidegate  500000000");
    assert_eq!(
        values("", None, &all[4..]),
        "/home/ada/.local/state/tidegate  500000000"
    );
    let empty = [
        ("TIDEGATE_STORE", ""),
        ("XDG_STATE_HOME", "state"),
        ("HOME", "/home/ada"),
    ];
    assert_eq!(
        values("", None, &empty),
        "/home/ada/.local/state/tidegate  500000000"
    );
}

#[test]
fn a_relative_store_of_a_file_lies_beside_the_file() {
    for (name, store) in [
        ("/etc/tidegate/tidegate.toml", "/etc/tidegate/data"),
        ("conf/tidegate.toml", "conf/data"),
        ("tidegate.toml", "data"),
    ] {
        let none = Overrides::default();
        let config = Config::parse("store = \"data\"", Path::new(name), &none, NOTHING).unwrap();
        assert_eq!(config.store, Path::new(store));
    }
    let env = variables(&[("TIDEGATE_STORE", "data")]);
    let none = Overrides::default();
    let config = Config::parse("", Path::new("/etc/tidegate.toml"), &none, &env).unwrap();
    assert_eq!(config.store, Path::new("data"));
}

#[test]
fn without_a_home_folder_the_store_must_be_named() {
    let text = faults_of("contat = \"x\"", NOTHING);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("--store: is needed"), "{text}");
    assert!(lines[1].starts_with("tidegate.toml:1: contat"), "{text}");
    assert_eq!(faults_of("store = \"/x\"", NOTHING), "");
}

#[test]
fn faults_of_the_environment_are_reported_with_those_of_the_file() {
    let env = variables(&[
        ("HOME", "/home/ada"),
        ("TIDEGATE_CONTACT", "a\nb"),
        ("TIDEGATE_MIN_FREE", "much"),
        ("TIDEGATE_STORE", "~/data"),
    ]);
    let text = faults_of("contact = \n", &env);
    let places: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(": ").next())
        .collect();
    assert_eq!(
        places,
        [
            "$TIDEGATE_CONTACT",
            "$TIDEGATE_MIN_FREE",
            "$TIDEGATE_STORE",
            "tidegate.toml:1"
        ]
    );
}

#[test]
fn the_source_is_the_name_and_the_digest_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.toml");
    fs::write(&file, "contact = \"a\"\n").unwrap();
    let config = Config::load(&overrides(Some(&file), None), &home).unwrap();
    assert_eq!(config.source.path.as_deref(), Some(file.as_path()));
    let digest = blake3::hash(b"contact = \"a\"\n").to_hex().to_string();
    assert_eq!(config.source.digest, digest);

    let found = find(&overrides(Some(&file), None), &home, Path::new("")).unwrap();
    let text = "contact = \"a\"\n".to_owned();
    assert_eq!(found, Some(Found { path: file, text }));

    let built_in = Config::assemble("", None, &Overrides::default(), &home).unwrap();
    assert_eq!(built_in.source.path, None);
    assert_eq!(
        built_in.source.digest,
        blake3::hash(b"").to_hex().to_string()
    );
}

#[test]
fn an_authority_must_be_a_file_of_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("good.pem"), "# ours\n-----BEGIN CERTIFICATE-----\n").unwrap();
    fs::write(at("bad.pem"), "-----BEGIN PRIVATE KEY-----\nhunter2\n").unwrap();
    let parse = |name: &str| {
        let text = format!("ca_file = \"{name}\"");
        Config::parse(&text, &at("tidegate.toml"), &Overrides::default(), &home)
    };
    assert_eq!(parse("good.pem").unwrap().ca_file, Some(at("good.pem")));
    for (name, message) in [
        ("bad.pem", "holds no certificate in PEM"),
        ("none.pem", "cannot be read"),
        (".", "cannot be read"),
    ] {
        let text = parse(name).unwrap_err().to_string();
        assert!(text.contains("tidegate.toml:1: ca_file: "), "{text}");
        assert!(
            text.contains(message) && !text.contains("hunter2"),
            "{text}"
        );
    }
}

#[test]
fn pinned_names_and_allowed_ranges_are_given_as_they_are_compared() {
    let text = "allow_private = [\"10.1.2.3\"]\n[resolve]\n\"API.a.test.\" = [\"10.1.2.3\", \"::ffff:10.1.2.4\"]";
    let config = parse(text).unwrap();
    assert_eq!(config.allow_private[0].to_string(), "10.1.2.3/32");
    let pinned: Vec<String> = config.resolve["api.a.test"]
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(pinned, ["10.1.2.3", "10.1.2.4"]);
    assert!(faults(text).is_empty());
}
