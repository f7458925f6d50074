//! Promise 1, *never over*, as the target sees it: real admissions over a real store, in driven
//! time. What arrives is judged by the target's own buckets, windows and days (`judge`).
//!
//! `over` and `ready` are properties over random runs; the other modules are named cases. The
//! scripts and the judge are shared with the tests of `src/budget`, which run them over the
//! buckets alone.
#![cfg(test)]

mod drive;
mod gate;
mod house;
mod judge;
mod limits;
mod over;
mod pauses;
mod races;
mod script;
mod set;
