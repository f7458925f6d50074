//! The tables of facts in `tests/cases`, and properties over the whole room.

use proptest::prelude::*;

use super::*;

const TARGET_KEYS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/cases/target-keys.tsv"
));
const PATH_CLASSES: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/cases/path-classes.tsv"
));

/// `name=[METHOD[,METHOD] ]/template[?condition[&condition]]`
pub(super) fn rule(text: &str) -> ClassRule {
    let (name, rest) = text.split_once('=').expect(text);
    let slash = rest.find('/').expect(text);
    let (methods, rest) = rest.split_at(slash);
    let (template, query) = rest.split_once('?').unwrap_or((rest, ""));
    let list = |text: &str, at: char| -> Vec<String> {
        let items = text.trim_end().split(at).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    let condition = |text: String| match text.split_once('=') {
        Some((name, value)) => QueryCondition::Equals {
            name: name.to_owned(),
            value: value.to_owned(),
        },
        None => QueryCondition::Named(text),
    };
    ClassRule {
        name: Class::new(name).expect(text),
        template: Template::parse(template).expect(text),
        methods: list(methods, ','),
        query: list(query, '&').into_iter().map(condition).collect(),
    }
}

/// Several of them, separated by semicolons.
pub(super) fn rules(text: &str) -> ClassRules {
    ClassRules::new(text.split(';').map(rule).collect()).expect(text)
}

fn class_of(rules: &ClassRules, request: &str) -> Class {
    let (method, path) = request.split_once(' ').unwrap_or(("GET", request));
    let located = locate(&format!("http://example.com{path}")).expect(request);
    rules.classify(method, &located.path, &located.query)
}

fn rows<const COLUMNS: usize>(table: &str) -> Vec<[&str; COLUMNS]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            <[&str; COLUMNS]>::try_from(columns).unwrap_or_else(|_| panic!("columns of {line:?}"))
        })
        .collect()
}

/// `\t`, `\n`, `\r` and `\u0000` stand for a character; any other backslash is one.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        let (c, taken) = match chars.next() {
            Some('t') => ('\t', 1),
            Some('n') => ('\n', 1),
            Some('r') => ('\r', 1),
            Some('u') => {
                let code = after
                    .get(1..5)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                (code.and_then(char::from_u32).expect(text), 5)
            }
            _ => ('\\', 0),
        };
        out.push(c);
        rest = after.get(taken..).expect(text);
    }
    out + rest
}

#[test]
fn every_row_of_the_target_keys_holds() {
    let rows = rows::<3>(TARGET_KEYS);
    assert!(rows.len() >= 32 + 12);
    let mut wrong = Vec::new();
    for [input, expected, why] in rows {
        let found = match locate(&unescaped(input)) {
            Ok(located) => TargetKey::from(located.origin).to_string(),
            Err(rejection) => format!("refused {}", rejection.reason),
        };
        let readable = expected.starts_with("http") || expected.starts_with("refused ");
        assert!(readable, "{input}: {expected} is no expectation");
        if found != expected {
            wrong.push(format!("{input}: {found} instead of {expected} ({why})"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_row_of_the_path_classes_holds() {
    let rows = rows::<4>(PATH_CLASSES);
    assert!(rows.len() >= 19 + 12);
    let mut wrong = Vec::new();
    for [listed, request, expected, why] in rows {
        let found = class_of(&rules(listed), request);
        if found != Class::new(expected).expect(expected) {
            wrong.push(format!(
                "{listed}: {request}: {found}, not {expected} ({why})"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Text that looks like a URL and mostly is one, in odd spellings.
fn url_like() -> impl Strategy<Value = String> {
    let scheme = prop_oneof![
        8 => "(http|HTTPS|ws|wss)(://|:|:/|:\\\\\\\\)",
        1 => "(ftp|file|x|)(://|:|)",
    ];
    let userinfo = "((a|%41|[.]|:|ü|%FF){0,3}@)?";
    let host = prop_oneof![
        6 => "([a-zA-Z0-9_](ü|ß|%2e|。|[a-z-]{0,5})[a-z][.]){1,3}(com|CO[.]uk|github%2Eio)(%2E|[.]){0,2}",
        1 => "(0x[0-9a-f]{1,2}[.]){0,3}[0-9]{1,3}[.]?",
        1 => "\\[(::|::ffff:|2001:0DB8::)([0-9a-fA-F]{1,4}:[0-9a-f]{1,4}|[0-9]{1,2}[.]1[.]2[.]3)\\]",
        1 => "\\PC{0,8}",
    ];
    let port = prop_oneof![3 => Just(String::new()), 2 => ":(80|443|0[0-9]|[0-9]{0,4})", 1 => ":\\PC{0,2}"];
    let rest = "([/?#\\\\](%2e|%[0-9a-fA-F]{2}|[.]|%|[{}|^]|\\PC){0,12}){0,4}";
    (scheme, userinfo, host, port, rest).prop_map(|(scheme, userinfo, host, port, rest)| {
        format!("{scheme}{userinfo}{host}{port}{rest}")
    })
}

fn check_located(text: &str) -> Result<(), TestCaseError> {
    let Ok(first) = locate(text) else {
        return Ok(());
    };
    let again = locate(first.url.as_str()).expect("the dialled URL is readable");
    prop_assert_eq!(&again.origin, &first.origin);
    prop_assert_eq!(&again.path, &first.path);
    prop_assert_eq!(&again.query, &first.query);
    prop_assert_eq!(&again.url, &first.url);
    prop_assert_eq!(&again.credentials, &None);
    let bare = locate(first.origin.as_str()).expect("an origin is a URL");
    prop_assert_eq!(&bare.origin, &first.origin);
    prop_assert_eq!(first.url.host_str(), Some(first.origin.host()));
    prop_assert_eq!(first.url.scheme(), first.origin.scheme().as_str());
    prop_assert_eq!(first.url.port_or_known_default(), Some(first.origin.port()));
    prop_assert_eq!(first.url.fragment(), None);
    prop_assert!(first.url.username().is_empty() && first.url.password().is_none());
    prop_assert!(first.origin.host().ends_with(first.origin.group()));
    Ok(())
}

fn any_rule() -> impl Strategy<Value = ClassRule> {
    let segment = prop_oneof![
        Just("a"),
        Just("b"),
        Just("{x}"),
        Just("a{x}"),
        Just("{x}b")
    ];
    let path = prop::collection::vec(segment, 1..4);
    let rest = prop_oneof![Just(""), Just("/{*r}")];
    let method = prop_oneof![Just(""), Just("GET "), Just("POST ")];
    let query = prop_oneof![Just(""), Just("?p"), Just("?p=1"), Just("?p=1&q")];
    (path, rest, method, query).prop_map(|(path, rest, method, query)| {
        let text = format!("{method}/{}{rest}{query}", path.join("/"));
        let name: String = text.bytes().map(|byte| format!("{byte:x}")).collect();
        rule(&format!("{name}={text}"))
    })
}

fn any_request() -> impl Strategy<Value = (&'static str, String, &'static str)> {
    let method = prop_oneof![Just("GET"), Just("POST"), Just("PUT")];
    let query = prop_oneof![Just(""), Just("p"), Just("q&p=1"), Just("p=2&p=1")];
    (method, "(/(a|b|ab|aab|abb|c)){1,4}", query)
}

proptest! {
    #[test]
    fn locating_any_text_never_panics_and_is_idempotent(text in any::<String>()) {
        check_located(&text)?;
    }

    #[test]
    fn locating_any_url_never_panics_and_is_idempotent(text in url_like()) {
        check_located(&text)?;
    }

    #[test]
    fn a_target_key_is_what_it_writes(text in url_like(), class in "[A-Za-z0-9_.-]{1,12}") {
        if let Ok(located) = locate(&text) {
            let key = TargetKey::new(located.origin, Class::new(&class).expect("a name"));
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }
    }

    #[test]
    fn reading_any_key_class_or_host_never_panics(text in any::<String>()) {
        let _ = text.parse::<TargetKey>();
        let _ = text.parse::<Class>();
        prop_assert!(text.contains(registrable_domain(&text)));
    }

    #[test]
    fn a_template_is_what_it_writes(text in "(/|[{}*]|\\{x\\}|\\{[*]r\\}|%2e|[.]|%|\\PC){0,16}") {
        if let Ok(template) = Template::parse(&text) {
            prop_assert_eq!(Template::parse(template.as_str()), Ok(template));
        }
    }

    #[test]
    fn classifying_anything_never_panics(
        list in prop::collection::vec(any_rule(), 0..6),
        method in any::<String>(),
        path in "(/|a|b|%|%2f|\\PC){0,16}",
        query in "(p|q|=|&|1|[+]|%|\\PC){0,16}",
    ) {
        if let Ok(rules) = ClassRules::new(list) {
            let _ = rules.classify(&method, &path, &query);
        }
    }

    #[test]
    fn the_order_in_the_file_does_not_change_the_class(
        list in prop::collection::vec(any_rule(), 1..12),
        request in any_request(),
        turn in 0_usize..12,
    ) {
        let mut turned = list.clone();
        turned.rotate_left(turn % list.len());
        let mut reversed = list.clone();
        reversed.reverse();
        let (method, path, query) = request;
        if let Ok(rules) = ClassRules::new(list) {
            let class = rules.classify(method, &path, query);
            for other in [turned, reversed] {
                let other = ClassRules::new(other).expect("the same rules");
                prop_assert_eq!(&other.classify(method, &path, query), &class);
            }
        }
    }
}
