//! tidegate
pub mod clock;
pub mod outcome;
pub mod step;
pub mod target;
pub mod telemetry;
pub mod store;
pub mod budget;
pub mod audit;
pub mod admission;
pub mod tolerance;
pub mod egress;
