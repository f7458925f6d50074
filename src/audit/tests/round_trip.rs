use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::{BoxedStrategy, ValueTree as _};
use proptest::test_runner::{Config, TestRunner};

use super::bench::*;
use crate::audit::names::{Lexicon, Names};
use crate::audit::segment::{Entry, Header, Place, Segment};
use crate::audit::*;
use crate::budget::{
    Because, Cause, Envelope, Hold, Layer, Limit, ManualKind, Pause, Provenance, Revision, Scope,
};
use crate::clock::Moment;
use crate::outcome::End;
use crate::step::Step;
use crate::store::{Changes, decode, encode};
use crate::target::TargetKey;

fn text() -> BoxedStrategy<Arc<str>> {
    prop_oneof![Just(String::new()), ".{0,12}", "[a-c\n]{1,2}"]
        .prop_map(Into::into)
        .boxed()
}

fn target() -> impl Strategy<Value = TargetKey> {
    let origins = [
        "https://a.test",
        "http://[::1]:8080",
        "https://xn--bcher-kva.example",
        "http://10.0.0.1",
    ];
    (
        prop::sample::select(origins.to_vec()),
        prop::sample::select(vec!["", "#search", "#v1.x"]),
    )
        .prop_map(|(origin, class)| format!("{origin}{class}").parse().unwrap())
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        text().prop_map(Scope::Pool),
        text().prop_map(Scope::Group),
        target().prop_map(|target| Scope::Host(target.origin)),
        target().prop_map(|target| Scope::Class(target.origin, target.class)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (text(), text(), text(), text()).prop_map(|(agent, trajectory, step, goal)| Step {
        agent,
        trajectory,
        step,
        goal,
    })
}

fn moment() -> impl Strategy<Value = Moment> {
    prop_oneof![0..1_000_u64, START.as_nanos()..2 * START.as_nanos()].prop_map(Moment::from_nanos)
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(0),
        0..1_000_000_000_u64,
        any::<u32>().prop_map(|s| u64::from(s) << 20)
    ]
    .prop_map(Duration::from_nanos)
}

fn revision() -> impl Strategy<Value = Revision> {
    prop_oneof![0..5_u64, any::<u64>()].prop_map(Revision)
}

fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![
        End::Answered,
        End::Throttled,
        End::Partial,
        End::Unanswered,
        End::NotSent,
        End::Abandoned,
        End::Interrupted,
    ])
}

fn task() -> impl Strategy<Value = TaskRef> {
    (any::<u64>(), any::<u64>()).prop_map(|(job, number)| TaskRef { job, number })
}

fn call() -> BoxedStrategy<Event> {
    let numbers = (any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>());
    let names = (target(), text(), text(), step(), text(), vec(scope(), 0..5));
    let intent = (numbers, names, revision(), option::of(task()), moment()).prop_map(
        |((gate, cost, attempt, hop), names, revision, task, decided)| {
            let (target, method, path, step, user_agent, scopes) = names;
            Intent {
                gate,
                target,
                method,
                path,
                step,
                revision,
                cost,
                attempt,
                hop,
                task,
                decided,
                scopes,
                user_agent,
            }
        },
    );
    let answer = (
        end(),
        any::<Option<u16>>(),
        any::<u64>(),
        any::<Option<IpAddr>>(),
    );
    (
        intent,
        option::of(span()),
        span(),
        answer,
        option::of(text()),
    )
        .prop_map(
            |(intent, departed, lasted, (end, status, bytes, peer), error)| {
                let departed = departed.map(|after| intent.decided.after(after));
                let ended = departed.unwrap_or(intent.decided).after(lasted);
                let settlement = Settlement {
                    departed,
                    ended,
                    end,
                    status,
                    bytes,
                    peer,
                    error,
                };
                Event::Call(Call { intent, settlement })
            },
        )
        .boxed()
}

fn cause() -> impl Strategy<Value = Cause> {
    prop::sample::select(vec![
        Cause::BudgetEmpty,
        Cause::Concurrency,
        Cause::Paused,
        Cause::Unreachable,
        Cause::Held,
    ])
}

fn denied() -> BoxedStrategy<Event> {
    let deferred = (
        target(),
        revision(),
        step(),
        cause(),
        option::of((scope(), ".{0,9}")),
    );
    let deferred = (deferred, option::of(moment()), any::<u64>(), moment()).prop_map(
        |((target, revision, step, cause, limit), ready, count, at)| {
            Event::Deferred(Deferred {
                target,
                revision,
                step,
                cause,
                limit,
                ready,
                count,
                at,
            })
        },
    );
    let refused = (text(), text(), text(), step(), any::<u64>(), moment()).prop_map(
        |(target, reason, detail, step, count, at)| {
            Event::Refused(Refused {
                target,
                reason,
                detail,
                step,
                count,
                at,
            })
        },
    );
    prop_oneof![deferred, refused].boxed()
}

fn word() -> impl Strategy<Value = Hold> {
    let word = (option::of(moment()), text(), text(), moment());
    word.prop_map(|(until, by, note, since)| Hold {
        until,
        by,
        note,
        since,
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    prop::sample::select(vec![
        Limit::max("30/min".parse().unwrap(), NonZeroU32::MIN).unwrap(),
        Limit::rate("20/s".parse().unwrap(), NonZeroU32::MIN).unwrap(),
        Limit::quota("1000/day".parse().unwrap(), crate::budget::Reset::Utc),
    ])
}

fn stop() -> BoxedStrategy<Event> {
    let because = prop::sample::select(vec![Because::Throttled, Because::Unreachable]);
    let pause = (moment(), because, text(), step(), moment(), any::<u32>());
    let pause = pause.prop_map(|(until, because, reason, step, since, streak)| Pause {
        until,
        because,
        reason,
        step,
        since,
        streak,
        probing: false,
    });
    let paused = (scope(), pause, moment(), any::<bool>()).prop_map(|(scope, pause, at, over)| {
        if over {
            Event::Resumed { scope, pause, at }
        } else {
            Event::Paused { scope, pause, at }
        }
    });
    prop_oneof![
        paused,
        (scope(), word(), moment()).prop_map(|(scope, hold, at)| Event::Held { scope, hold, at }),
        (scope(), text(), text(), moment()).prop_map(|(scope, by, note, at)| Event::Released {
            scope,
            by,
            note,
            at
        }),
    ]
    .boxed()
}

fn revised() -> BoxedStrategy<Event> {
    let provenance = (
        option::of(text()),
        option::of(text()),
        option::of(text()),
        text(),
    );
    let provenance = provenance.prop_map(|(source, as_of, note, author)| Provenance {
        source,
        as_of,
        note,
        author,
    });
    let layer = (
        scope(),
        vec(limit(), 0..3),
        any::<Option<NonZeroU32>>(),
        span(),
        provenance,
    );
    let layer = layer.prop_map(
        |(scope, limits, concurrency, arrival_margin, provenance)| Layer {
            pool: Some(scope.name().into()),
            scope: scope.kind().into(),
            limits,
            concurrency,
            arrival_margin,
            provenance,
        },
    );
    (revision(), vec(layer, 0..4), moment())
        .prop_map(|(revision, layers, at)| Event::Revised {
            revision,
            envelope: Envelope { layers },
            at,
        })
        .boxed()
}

fn of_the_gate() -> BoxedStrategy<Event> {
    prop_oneof![
        (any::<u64>(), text(), text(), any::<u64>(), moment()).prop_map(
            |(gate, version, rules, interrupted, at)| Event::Opened {
                gate,
                version,
                rules,
                interrupted,
                at,
            }
        ),
        (any::<u64>(), moment()).prop_map(|(gate, at)| Event::Closed { gate, at }),
        (any::<i64>(), moment()).prop_map(|(nanos, at)| Event::ClockStepped { nanos, at }),
        (any::<u64>(), any::<u64>(), moment()).prop_map(|(expected, found, at)| Event::Truncated {
            expected,
            found,
            at
        }),
        (scope(), word(), moment()).prop_map(|(scope, word, at)| Event::Denied { scope, word, at }),
        (scope(), vec(limit(), 1..3), word(), moment()).prop_map(|(scope, limits, word, at)| {
            Event::Set {
                scope,
                limits,
                word,
                at,
            }
        }),
        (text(), vec(text(), 0..3), moment()).prop_map(|(rules, waiting, at)| Event::Reloaded {
            rules,
            waiting,
            at
        }),
        (vec(text(), 0..3), moment()).prop_map(|(faults, at)| Event::ReloadFailed { faults, at }),
        (scope(), any::<bool>(), moment()).prop_map(|(scope, set, at)| Event::Lapsed {
            scope,
            what: if set {
                ManualKind::Set
            } else {
                ManualKind::Deny
            },
            at
        }),
        (text(), any::<u64>(), text(), any::<u64>(), moment()).prop_map(
            |(day, segment, hash, bytes, at)| Event::Pruned {
                day,
                segment,
                hash,
                bytes,
                at,
            }
        ),
        (any::<u64>(), any::<u64>(), moment()).prop_map(|(files, bytes, at)| Event::BodiesLetGo {
            files,
            bytes,
            at
        }),
        (task(), text(), text(), step(), moment()).prop_map(|(task, id, what, step, at)| {
            Event::Task {
                task,
                id,
                what,
                step,
                at,
            }
        }),
    ]
    .boxed()
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let event =
        prop_oneof![6 => call(), 1 => denied(), 1 => stop(), 1 => revised(), 1 => of_the_gate()];
    let entry = (any::<u64>(), any::<i64>(), event).prop_map(|(number, stepped, event)| Entry {
        number,
        stepped,
        event,
    });
    vec(entry, 1..20)
}

#[test]
fn whatever_is_packed_is_unpacked_the_same() {
    let bench = Bench::new();
    // So few that names are forgotten and written again.
    let names = std::cell::RefCell::new(Names::remembering(bench.store(), 0, 5).unwrap());
    let mut runner = TestRunner::new(Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    });
    let packed = (entries(), any::<u64>(), any::<[u8; 32]>(), any::<i64>());
    let result = runner.run(&packed, |(entries, number, previous, wall_offset)| {
        let mut changes = Changes::default();
        let place = Place {
            number,
            previous,
            wall_offset,
        };
        let segment = Segment::pack(place, &entries, &mut names.borrow_mut(), &mut changes);
        bench.store().write(changes).wait_blocking().unwrap();
        let bytes = encode(&segment).unwrap();
        let header = Header::read(&bytes).unwrap();
        let read: Segment = decode(&bytes).unwrap();
        prop_assert_eq!(header, read.header);
        prop_assert_eq!(
            (header.place.number, header.place.previous),
            (number, previous)
        );
        prop_assert_eq!(header.place.wall_offset, wall_offset);
        let begin = entries.iter().map(|entry| entry.event.begin()).min();
        prop_assert_eq!(Some(header.begin), begin);
        let unpacked = read.unpack(&mut Lexicon::of(bench.store())).unwrap();
        prop_assert_eq!(unpacked, entries);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn whatever_is_noted_is_read_the_same_before_and_after_it_is_packed() {
    let mut bench = Bench::new();
    let mut expected = std::collections::HashMap::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..40 {
        let drawn = entries().new_tree(&mut runner).unwrap().current();
        for Entry { event, .. } in drawn {
            match &event {
                Event::Call(call) => {
                    let (number, durable) = bench.log().begin(call.intent.clone());
                    durable.detach();
                    bench.log().finish(number, call.clone(), |_| {}).detach();
                    expected.insert(number, event);
                }
                _ => bench.log().note(event).detach(),
            }
        }
        bench.restart();
    }
    let open: Vec<_> = bench.all();
    bench.log().close().wait_blocking().unwrap();
    let mut packed = bench.all();
    let closed = packed
        .iter()
        .position(|found| matches!(found.event, Event::Closed { at, .. } if at == bench.now()));
    packed.remove(closed.unwrap());
    let sorted = |mut found: Vec<Recorded>| {
        found.sort_by_key(|found| found.number);
        found
    };
    let (open, packed) = (sorted(open), sorted(packed));
    assert_eq!(open, packed);
    let read = packed
        .into_iter()
        .filter(|found| expected.contains_key(&found.number));
    let read = read.map(|found| (found.number, found.event)).collect();
    assert_eq!(expected, read);
    bench.assert_chained();
}
