//! When work could be done, as fields of a row.

use serde_json::{Map, Value, json};

use crate::admission::Outlook;
use crate::budget::{Ahead, Bound, rfc3339};
use crate::clock::Moment;

/// What is known beside the budgets.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Tasks that are not complete.
    pub left: u64,
    /// Tasks a second that this gate has done at best; none where it has done none.
    pub best: Option<f64>,
}

/// `ends_at`, `bound_by`, `endless` and `slowest`. The end is the earliest
/// there can be: no answer fails, no target asks for a pause.
#[must_use]
pub fn forecast(outlook: &Outlook, pace: Pace, now: Moment, offset: i64) -> Map<String, Value> {
    let by_pace = pace.best.filter(|best| *best > 0.0).map(|best| {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let seconds = pace.left as f64 / best;
        let span =
            std::time::Duration::try_from_secs_f64(seconds).unwrap_or(std::time::Duration::MAX);
        (now.after(span), best)
    });
    let (ends, bound) = match (outlook.ends, by_pace) {
        (Some(ends), Some((later, best))) if later > ends => {
            let bound = format!("{best:.0} tasks a second");
            (
                Some(later),
                json!({"scope": "gate", "name": null, "bound": bound, "calls": pace.left}),
            )
        }
        (ends, _) => (ends, outlook.slowest.first().map_or(Value::Null, name)),
    };
    let slowest = outlook.slowest.iter().map(|ahead| {
        let mut row = name(ahead);
        let at = ahead.at.map(|at| rfc3339(at, offset));
        if let Some(fields) = row.as_object_mut() {
            fields.insert("ends_at".into(), at.into());
        }
        row
    });
    Map::from_iter([
        (
            "ends_at".into(),
            ends.map(|ends| rfc3339(ends, offset)).into(),
        ),
        ("bound_by".into(), bound),
        ("endless".into(), outlook.endless.into()),
        ("slowest".into(), slowest.collect::<Vec<_>>().into()),
    ])
}

fn name(ahead: &Ahead) -> Value {
    let bound = match ahead.bound {
        Bound::Nothing => Value::Null,
        Bound::Limit(limit) => limit.to_string().into(),
        Bound::Concurrency(most) => format!("concurrency {most}").into(),
        Bound::Stop(cause) => cause.as_str().into(),
    };
    json!({
        "scope": ahead.scope.kind(),
        "name": ahead.scope.name(),
        "bound": bound,
        "calls": ahead.tokens,
    })
}
