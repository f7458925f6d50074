//! What the record says, read by itself, and held against what the targets saw.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::Value;
use tidegate::audit::{Call, Event, Filter, events, under_way};
use tidegate::outcome::End;
use tidegate::store::{IfMissing, Store};

use crate::neighbour::Neighbour;
use crate::support::site::text;

/// The record of a store that nobody holds.
pub struct Witness {
    /// Every event, by its number.
    pub events: BTreeMap<u64, Event>,
    open: usize,
}

impl Witness {
    pub fn read(store: &Path) -> Self {
        let store = Store::open(store, IfMissing::Fail, 0).unwrap();
        let mut found = BTreeMap::new();
        for recorded in events(&store, Filter::default()).unwrap() {
            let recorded = recorded.unwrap();
            let twice = found.insert(recorded.number, recorded.event);
            assert_eq!(twice, None, "event {} is there twice", recorded.number);
        }
        let open = under_way(&store).unwrap().len();
        Self {
            events: found,
            open,
        }
    }

    /// What was on record before is still there, as it was.
    pub fn remembers(&self, before: &Self) {
        for (number, event) in &before.events {
            assert_eq!(self.events.get(number), Some(event), "event {number}");
        }
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.events.values().filter_map(|event| match event {
            Event::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The calls of each target and path, in the order of their grants.
    fn by_place(&self) -> HashMap<(String, String), Vec<&Call>> {
        let mut places: HashMap<_, Vec<&Call>> = HashMap::new();
        for call in self.calls() {
            let place = (call.intent.target.to_string(), call.intent.path.to_string());
            places.entry(place).or_default().push(call);
        }
        for calls in places.values_mut() {
            calls.sort_by_key(|call| call.intent.decided);
        }
        places
    }

    /// Holds a finished run against the targets: each path there is one task's, or one hop's.
    /// Returns how many requests arrived, and how many of them for another time.
    pub fn testify(&self, neighbours: &[Neighbour], results: &[Value]) -> (usize, usize) {
        assert_eq!(self.open, 0, "a call is still under way");
        let places = self.by_place();
        let (mut arrived, mut doubles) = (0, 0);
        for neighbour in neighbours {
            let mut counts: HashMap<(String, String), usize> = HashMap::new();
            for arrival in neighbour.arrivals() {
                *counts.entry((arrival.method, arrival.path)).or_default() += 1;
                arrived += 1;
            }
            for ((method, path), count) in counts {
                let calls = places
                    .get(&(neighbour.target.origin(), path.clone()))
                    .map_or(&[][..], Vec::as_slice);
                assert!(
                    count <= calls.len(),
                    "{method} {path}: {count} arrived, on record: {calls:?}"
                );
                assert!(method == "GET" || count == 1, "{method} {path}: {count}");
                doubles += count - 1;
            }
        }
        places.values().for_each(|calls| each_has_a_reason(calls));
        for result in results {
            self.agrees(result, &places);
        }
        (arrived, doubles)
    }

    /// A result says what the record says.
    fn agrees(&self, result: &Value, places: &HashMap<(String, String), Vec<&Call>>) {
        let url = url::Url::parse(text(result, "url")).unwrap();
        let place = (url.origin().ascii_serialization(), url.path().to_owned());
        let calls = places.get(&place).map_or(&[][..], Vec::as_slice);
        let last = calls.last().unwrap_or_else(|| panic!("no call: {result}"));
        for call in calls {
            let step = &call.intent.step;
            assert_eq!(&*step.agent, text(result, "agent"), "{result}");
            assert_eq!(&*step.trajectory, text(result, "trajectory"), "{result}");
            assert_eq!(&*step.step, text(result, "step"), "{result}");
            assert!(call.intent.revision.0 > 0, "{result}");
        }
        match text(result, "outcome") {
            "succeeded" => assert_eq!(last.settlement.end, End::Answered, "{result}"),
            "ambiguous" => {
                assert_eq!(&*last.intent.method, "POST", "{result}");
                assert_eq!(last.settlement.end, End::Interrupted, "{result}");
            }
            _ => panic!("no task of these ends so: {result}"),
        }
        // Redirected tasks have calls elsewhere too.
        if last.settlement.status == Some(200) {
            assert_eq!(result["attempts"], calls.len(), "{result}");
        }
    }
}

/// Of the calls of one place, all but the last were cut by a kill, were safe to repeat, and were
/// counted: from 1, or, after a redirect, from where the first place left off.
fn each_has_a_reason(calls: &[&Call]) {
    let first = calls[0].intent.attempt;
    assert!(first == 1 || calls[0].intent.hop > 0, "{calls:?}");
    for (attempt, call) in (first..).zip(calls) {
        assert_eq!(call.intent.attempt, attempt, "{calls:?}");
    }
    if let [before @ .., _] = calls {
        for call in before {
            assert_eq!(call.settlement.end, End::Interrupted, "{calls:?}");
            assert_eq!(&*call.intent.method, "GET", "{calls:?}");
        }
    }
}
