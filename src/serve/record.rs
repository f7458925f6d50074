//! What is on record: as rows.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::desk::{AnswerError, Rows};
use super::question::{By, Record};
use crate::audit::{self, Filter, Seen, Who, Windows};
use crate::store::Store;

/// A copy of it, and what is in that.
pub(super) fn copy(store: &Store, to: &Path) -> Result<Value, AnswerError> {
    let audit::Copied {
        segments,
        days,
        bytes,
        open,
    } = audit::copy(store, to)?;
    Ok(json!({
        "copy": to.display().to_string(), "segments": segments, "days": days, "bytes": bytes, "open": open,
    }))
}

/// The record, in one of its forms.
pub(super) fn read(
    store: &Store,
    record: Record,
    filter: Filter,
    rows: &Rows,
) -> Result<(), AnswerError> {
    let give = |row: Value| rows.blocking_send(row).is_ok();
    match record {
        Record::Events => {
            for event in audit::events(store, filter)? {
                if !give(audit::event_json(&event?)) {
                    break;
                }
            }
        }
        Record::Decisions => {
            for event in audit::events(store, filter)? {
                if let Some(row) = audit::decision_json(&event?)
                    && !give(row)
                {
                    break;
                }
            }
        }
        Record::Windows { seconds } => {
            let width = Duration::from_secs(seconds.max(1));
            let mut windows = Windows::new(width).within(&filter);
            for event in audit::events(store, filter)? {
                windows.add(&event?);
            }
            windows
                .rows(store)?
                .into_iter()
                .take_while(|row| give(row.clone()))
                .for_each(drop);
        }
        Record::Who { by } => {
            let mut who = Who::new(grouping(by));
            for event in audit::events(store, filter)? {
                who.add(&event?);
            }
            who.rows()
                .into_iter()
                .take_while(|row| give(row.clone()))
                .for_each(drop);
        }
        Record::Seen => {
            let mut seen = Seen::default();
            for event in audit::events(store, filter)? {
                seen.add(&event?.event);
            }
            for host in seen.hosts(store)? {
                if !serde_json::to_value(host).is_ok_and(&give) {
                    break;
                }
            }
        }
        Record::Envelopes => {
            for row in audit::envelope_rows(store)? {
                if !give(row) {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn grouping(by: By) -> audit::By {
    match by {
        By::Agent => audit::By::Agent,
        By::Trajectory => audit::By::Trajectory,
        By::Step => audit::By::Step,
        By::Goal => audit::By::Goal,
        By::Target => audit::By::Target,
    }
}
