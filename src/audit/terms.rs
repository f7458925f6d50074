//! By what segments are looked up: a target with its neighbours, an agent, a
//! trajectory. Terms are short hashes, so that a block of them costs a few
//! bytes a call; two that fall together cost a segment read in vain, since
//! what is read is always asked again whether it was meant.

use super::event::Event;
use super::filter::{About, Filter, about, step_of};
use crate::budget::Scope;
use crate::target::{Origin, TargetKey};

pub(super) const SHELVES: u8 = 64;
const PART_BITS: u32 = 12;
const PARTS: u32 = (1 << PART_BITS) - 1;

/// What an event is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term {
    /// Which shelf of a block holds it, from 0.
    pub(super) shelf: u8,
    /// 24 bits: of a name's neighbourhood, and of the name in it.
    pub(super) mark: u32,
}

/// Terms of one shelf, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sought {
    pub(super) shelf: u8,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl From<Term> for Sought {
    fn from(Term { shelf, mark }: Term) -> Self {
        Self {
            shelf,
            from: mark,
            to: mark,
        }
    }
}

/// All of these must be in a segment, of each one alternative.
pub(super) type Wanted = Vec<Vec<Sought>>;

impl Term {
    fn of(neighbourhood: u64, part: u32) -> Self {
        let shelf = u8::try_from(neighbourhood >> 58).unwrap_or(0) % SHELVES;
        let whole = u32::try_from((neighbourhood >> 40) & u64::from(PARTS)).unwrap_or(0);
        Self {
            shelf,
            mark: (whole << PART_BITS) | (part & PARTS),
        }
    }

    /// A name by itself.
    fn named(kind: &str, name: &str) -> Self {
        let hash = hash(kind, name);
        Self::of(hash, u32::try_from(hash & u64::from(PARTS)).unwrap_or(0))
    }

    /// A server, among its neighbours.
    fn origin(origin: &Origin) -> Self {
        let own = hash("origin", origin.as_str()) % u64::from(PARTS);
        // Nought is the neighbourhood itself.
        Self::of(
            hash("site", neighbourhood(origin.host())),
            u32::try_from(own).unwrap_or(0) + 1,
        )
    }

    /// A group or a pool by its name.
    fn group(name: &str) -> Self {
        Self::of(hash("site", neighbourhood(name)), 0)
    }

    /// Everything that is no call.
    fn beside_calls() -> Self {
        Self::named("kind", "beside calls")
    }
}

/// What an event is found by, each once.
pub(super) fn terms_of(event: &Event) -> impl Iterator<Item = Term> {
    let about = match about(event) {
        About::Target(key) => Some(Term::origin(&key.origin)),
        About::Scope(scope) => Some(match scope {
            Scope::Host(origin) | Scope::Class(origin, _) => Term::origin(origin),
            Scope::Group(name) | Scope::Pool(name) => Term::group(name),
        }),
        About::Text(text) => Some(match text.parse::<TargetKey>() {
            Ok(key) => Term::origin(&key.origin),
            Err(_) => Term::group(text),
        }),
        About::Nobody => None,
    };
    let step = step_of(event);
    let agent = step.map(|step| Term::named("agent", &step.agent));
    let trajectory = step.filter(|step| !step.trajectory.is_empty());
    let trajectory = trajectory.map(|step| Term::named("trajectory", &step.trajectory));
    let beside = (!matches!(event, Event::Call(_))).then(Term::beside_calls);
    [about, agent, trajectory, beside].into_iter().flatten()
}

/// What a segment must hold to be worth reading; nothing where that says nothing.
pub(super) fn wanted(filter: &Filter) -> Wanted {
    let mut wanted = Wanted::new();
    if let Some(key) = &filter.target {
        let own = Term::origin(&key.origin).into();
        wanted.push(vec![own, Term::group(key.origin.group()).into()]);
    }
    // Below a single label there are too many neighbourhoods to look in.
    if let Some(site) = filter.site.as_ref().filter(|site| site.contains('.')) {
        let Term { shelf, mark } = Term::group(site);
        let to = mark | PARTS;
        wanted.push(vec![Sought {
            shelf,
            from: mark,
            to,
        }]);
    }
    if let Some(agent) = &filter.agent {
        wanted.push(vec![Term::named("agent", agent).into()]);
    }
    if let Some(trajectory) = filter.trajectory.as_ref().filter(|name| !name.is_empty()) {
        wanted.push(vec![Term::named("trajectory", trajectory).into()]);
    }
    wanted
}

/// What is no call.
pub(super) fn beside_calls() -> Wanted {
    vec![vec![Term::beside_calls().into()]]
}

/// The last two labels: the same for a site and for everything below it.
fn neighbourhood(name: &str) -> &str {
    let dots = name.rmatch_indices('.');
    dots.map(|(at, _)| at)
        .nth(1)
        .and_then(|at| name.get(at + 1..))
        .unwrap_or(name)
}

/// FNV-1a over both, its bits mixed: it is on disk, so it must never change.
fn hash(kind: &str, name: &str) -> u64 {
    let bytes = kind.bytes().chain([0]).chain(name.bytes());
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_that_is_on_disk_stays_as_it_is() {
        assert_ne!(hash("agent", "scout"), hash("site", "scout"));
        assert_eq!(hash("", ""), 2_737_183_428_366_584_608);
    }

    #[test]
    fn a_site_and_all_below_it_are_one_neighbourhood() {
        for (name, expected) in [
            ("example.org", "example.org"),
            ("www.example.org", "example.org"),
            ("a.b.example.org", "example.org"),
            ("bbc.co.uk", "co.uk"),
            ("localhost", "localhost"),
            ("127.0.0.1", "0.1"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(neighbourhood(name), expected, "{name}");
        }
    }
}
