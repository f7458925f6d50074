//! What an operator sets, denies and releases, one named case each, with a clock moved by hand.
#![cfg(test)]

use std::time::Duration;

use tidegate::admission::{Chosen, Lifted, Operator, Verdict};
use tidegate::audit::{Event, envelope};
use tidegate::budget::{ClassTerms, Defaults, ManualKind, Never, PauseScope, Rulebook, Sharing};
use tidegate::target::{Class, ClassRule, Template};

use super::house::{House, SECOND, book, max, rate, rule};

const URL: &str = "http://a.test/";
const DAY: Duration = Duration::from_secs(86_400);

fn target() -> Chosen {
    Chosen::Target("http://a.test".parse().unwrap())
}

fn ana() -> Operator {
    Operator {
        by: "ana".into(),
        note: "agreed".into(),
    }
}

/// Delays do not differ here, so that a whole burst goes at once.
fn rules() -> Rulebook {
    let mut defaults = Defaults::default();
    defaults.conduct.arrival_margin = Duration::ZERO;
    let mut rule = rule("http://a.test", &[rate("10/s", 10)]);
    rule.conduct.arrival_margin = Duration::ZERO;
    Rulebook::new(defaults, vec![rule], Vec::new()).unwrap()
}

fn house() -> House {
    House::of(rules())
}

fn set(house: &House, frequency: &str, burst: u32, span: Duration) {
    let until = house.now().after(span);
    let limits = vec![max(frequency, burst)];
    let gate = &house.gate;
    assert!(gate.set(&target(), limits, Some(until), ana()).unwrap());
}

fn kinds(house: &House) -> Vec<&'static str> {
    house.record().iter().map(Event::kind).collect()
}

#[test]
fn limits_set_by_hand_hold_until_their_end_and_then_the_rules_again() {
    let house = house();
    assert_eq!(house.send_all(URL), 10);
    let by_rule = house.lane(URL).resolved().revision;
    house.clock.advance(DAY);
    set(&house, "6/min", 2, DAY);
    let by_hand = house.lane(URL).resolved().revision;
    assert!(by_hand > by_rule);
    house.record();
    let layers = envelope(house.gate.store(), by_hand)
        .unwrap()
        .unwrap()
        .layers;
    let provenance = &layers[0].provenance;
    assert_eq!(&*provenance.author, "operator:ana");
    assert_eq!(provenance.note.as_deref(), Some("agreed"));

    assert_eq!(house.send_all(URL), 2);
    house.clock.advance(12 * SECOND);
    assert_eq!(house.send_all(URL), 1);
    // Nobody needs to keep the time: the next decision does.
    house.clock.advance(DAY);
    assert_eq!(house.send_all(URL), 10);
    assert_eq!(house.lane(URL).resolved().revision, by_rule);
    let lapsed = house.record().into_iter().find_map(|event| match event {
        Event::Lapsed { what, .. } => Some(what),
        _ => None,
    });
    assert_eq!(lapsed, Some(ManualKind::Set));
}

#[test]
fn what_was_spent_stays_spent_over_a_set_its_end_and_a_kill_in_between() {
    let mut house = house();
    assert_eq!(house.send_all(URL), 10);
    set(&house, "6/min", 3, SECOND / 2);
    assert_eq!(house.send_all(URL), 0, "ten were spent, of three");
    house.record();
    house.kill(Vec::new(), rules());
    assert_eq!(house.send_all(URL), 0);
    house.clock.advance(SECOND / 2);
    // Half a second of the rule's ten a second.
    assert_eq!(house.send_all(URL), 5);
}

#[test]
fn a_bucket_with_limits_set_by_hand_is_never_evicted() {
    let house = house();
    set(&house, "6/min", 2, 30 * DAY);
    assert_eq!(house.send_all(URL), 2);
    house.clock.advance(DAY);
    house.gate.sweep(SECOND);
    assert!(house.gate.sweep(SECOND) >= 1);
    assert_eq!(house.send_all(URL), 2, "two, and not the rule's ten");
}

#[test]
fn limits_set_by_hand_outlive_a_kill_and_end_while_nobody_runs() {
    let mut house = house();
    set(&house, "6/min", 2, DAY);
    house.record();
    house.kill(Vec::new(), rules());
    assert_eq!(house.send_all(URL), 2);
    house.record();
    house.gate.store().close();
    house.clock.advance(2 * DAY);
    house.reopen(rules());
    assert_eq!(house.send_all(URL), 10);
    assert!(kinds(&house).contains(&"lapsed"));
}

#[test]
fn a_second_set_replaces_the_first_and_is_an_envelope_of_its_own() {
    let house = house();
    set(&house, "6/min", 2, DAY);
    let first = house.lane(URL).resolved().revision;
    house.clock.advance(SECOND);
    set(&house, "6/min", 2, DAY);
    assert!(house.lane(URL).resolved().revision > first);
    house.clock.advance(DAY - SECOND / 2);
    assert_eq!(house.send_all(URL), 2, "the end is the second one's");
}

#[test]
fn a_denied_target_refuses_and_nothing_was_spent() {
    let mut house = house();
    let permit = house.grant(URL);
    let until = house.now().after(DAY);
    let gate = house.gate.clone();
    assert!(gate.deny(&target(), Some(until), ana()).unwrap());
    assert!(permit.is_called_off());
    permit.abandon("called off").commit().detach();
    drop(gate);
    for _ in 0..2 {
        match house.ask(URL) {
            Verdict::Refused(refusal) => {
                assert_eq!(refusal.reason, Never::Denied);
                assert!(refusal.detail.contains("ana") && refusal.detail.contains("agreed"));
            }
            other => panic!("{other:?}"),
        }
        house.record();
        house.kill(Vec::new(), rules());
    }
    house.clock.advance(DAY);
    assert_eq!(house.send_all(URL), 10);
}

#[test]
fn a_release_takes_back_every_word_at_once() {
    let house = house();
    set(&house, "6/min", 2, DAY);
    assert!(house.gate.deny(&target(), None, ana()).unwrap());
    assert!(house.gate.hold(&target(), None, ana()).unwrap());
    let lifted = house.gate.release(&target(), ana()).unwrap();
    assert_eq!(lifted, [Lifted::Hold, Lifted::Denial, Lifted::Limits]);
    assert_eq!(house.send_all(URL), 10);
    assert_eq!(house.gate.release(&target(), ana()).unwrap(), []);
}

#[test]
fn what_is_set_at_a_pool_a_group_or_a_class_holds_there_and_nowhere_else() {
    let house = house();
    let group = Chosen::Scope("group:d.test".parse().unwrap());
    let limits = vec![max("60/min", 4)];
    assert!(house.gate.set(&group, limits, None, ana()).unwrap());
    assert_eq!(house.send_all("http://www.d.test/"), 4);
    assert_eq!(house.send_all(URL), 10);
    let no_class = Chosen::Target("http://a.test#none".parse().unwrap());
    let no_pool = Chosen::Scope("pool:none".parse().unwrap());
    for nothing in [no_class, no_pool] {
        let limits = vec![max("60/min", 4)];
        assert!(!house.gate.set(&nothing, limits, None, ana()).unwrap());
    }
}

#[test]
fn what_a_group_spent_before_a_kill_comes_back_at_its_new_rate_from_the_word_on() {
    let rules = || {
        let mut rule = rule("*.g.test", &[rate("6/10s", 6)]);
        rule.conduct.arrival_margin = Duration::ZERO;
        book(vec![rule])
    };
    const GROUP_URL: &str = "http://b.g.test/";
    let group = Chosen::Scope("group://*.g.test".parse().unwrap());
    let mut house = House::of(rules());
    assert_eq!(house.send_all(GROUP_URL), 6);
    house.record();
    house.kill(Vec::new(), rules());
    // A word about a group that nobody has called since must find what was spent there.
    assert_eq!(house.gate.release(&group, ana()).unwrap(), []);
    let limits = vec![rate("1/10s", 6)];
    assert!(house.gate.set(&group, limits, None, ana()).unwrap());
    house.clock.advance(5 * SECOND);
    assert_eq!(house.send_all(GROUP_URL), 0);
    house.clock.advance(5 * SECOND);
    assert_eq!(house.send_all(GROUP_URL), 1);
}

#[test]
fn calls_that_wait_for_an_operator_count_once_however_many_words_stop_them() {
    let house = house();
    let key = "http://www.d.test".parse().unwrap();
    let lane = house.gate.lane(&key).unwrap();
    let other = house.gate.lane(&"http://a.test".parse().unwrap()).unwrap();
    let work = || [(lane.clone(), 5), (other.clone(), 3)];
    assert_eq!(house.gate.outlook(work(), 9).endless, 0);
    let group = Chosen::Scope("group:d.test".parse().unwrap());
    for chosen in [group, Chosen::Target(key.clone())] {
        assert!(house.gate.hold(&chosen, None, ana()).unwrap());
        let outlook = house.gate.outlook(work(), 9);
        assert_eq!((outlook.endless, outlook.ends), (5, None));
    }
}

#[test]
fn a_group_that_no_call_draws_from_is_no_group() {
    let mut each = rule("*.each.test:81", &[rate("6/s", 6)]);
    each.sharing = Sharing::PerHost;
    let mut classes = rule("http://*.g.test", &[rate("6/s", 6)]);
    classes.classes.push(ClassTerms {
        rule: ClassRule {
            name: Class::new("search").unwrap(),
            template: Template::parse("/search").unwrap(),
            methods: Vec::new(),
            query: Vec::new(),
        },
        limits: Vec::new(),
        pause: PauseScope::Host,
    });
    let house = House::of(book(vec![classes, each, rule("one.test", &[])]));
    for (group, is_one) in [
        ("group:example.org", true),
        ("group:www.example.org", false),
        ("group:Example.org", false),
        ("group:example.org:80", false),
        ("group:example.org/", false),
        ("group:*.org", false),
        ("group:127.0.0.1", true),
        ("group:localhost", true),
        ("group:", false),
        ("group:no name", false),
        ("group://one.test", true),
        ("group://two.test", false),
        ("group:http://*.g.test", true),
        ("group://*.g.test", false),
        ("group:http://*.g.test#search", true),
        ("group:http://*.g.test#serach", false),
        ("group://b.each.test:81", true),
        ("group://*.each.test:81", false),
        ("group://each.test:81", false),
        ("group://b.each.test", false),
    ] {
        let chosen = Chosen::Scope(group.parse().unwrap());
        let held = house.gate.hold(&chosen, None, ana()).unwrap();
        let denied = house.gate.deny(&chosen, None, ana()).unwrap();
        assert_eq!((held, denied), (is_one, is_one), "{group}");
    }
}
