//! drill
use super::{Exit, Failure, args::DrillArgs};
pub(super) async fn drill(_: DrillArgs) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
