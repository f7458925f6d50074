//! tidegate
pub mod clock;
pub mod outcome;
pub mod step;
pub mod target;
pub mod store;
pub mod budget;
