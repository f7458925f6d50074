//! The field that somebody meant.

/// Longer names are no slips of the pen.
const LONGEST: usize = 32;

/// The known name that `name` is a slip of: written another way, begun and not ended, or a letter
/// or two off.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = folded(name);
    let is_begun = |of: &str| name.len() >= 3 && of.starts_with(&name);
    let off = |of: &str| if is_begun(of) { 1 } else { distance(&name, of) };
    let (off, meant) = known.iter().map(|of| (off(&folded(of)), *of)).min()?;
    (off <= 2 && off * 2 <= name.len()).then_some(meant)
}

/// `notBefore`, `not-before` and `not_before` are one spelling.
fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Levenshtein's: insertions, deletions and replacements.
fn distance(from: &str, to: &str) -> usize {
    let mut above: Vec<usize> = (0..=to.chars().count()).collect();
    for (row, ours) in (1..).zip(from.chars()) {
        let mut here = vec![row];
        let mut left = row;
        for (theirs, over) in to.chars().zip(above.windows(2)) {
            let [corner, up] = over else { break };
            left = (corner + usize::from(ours != theirs))
                .min(left + 1)
                .min(up + 1);
            here.push(left);
        }
        above = here;
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (from, to, off) in [
            ("", "", 0),
            ("", "url", 3),
            ("url", "", 3),
            ("uri", "url", 1),
            ("kitten", "sitting", 3),
            ("headers", "header", 1),
        ] {
            assert_eq!(distance(from, to), off, "{from} {to}");
        }
    }

    #[test]
    fn slips_are_understood_and_nothing_else_is_guessed() {
        let known = [
            "id",
            "url",
            "headers",
            "not_before",
            "priority",
            "idempotency_key",
            "cost",
        ];
        for (name, meant) in [
            ("uri", Some("url")),
            ("URL", Some("url")),
            ("header", Some("headers")),
            ("notBefore", Some("not_before")),
            ("not-befor", Some("not_before")),
            ("prio", Some("priority")),
            ("idempotency", Some("idempotency_key")),
            ("cots", Some("cost")),
            ("weight", None),
            ("x", None),
            ("", None),
            ("a_name_that_is_longer_than_any_slip_would_be", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
    }
}
