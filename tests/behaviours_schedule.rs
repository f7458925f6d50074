//! What schedulers of this kind have been seen to do wrong, and what is right here. Judged from the
//! target's side; where minutes and hours matter, time is driven.

#![cfg(test)]

mod support;

#[path = "behaviours_schedule/asked.rs"]
mod asked;
#[path = "behaviours_schedule/asleep.rs"]
mod asleep;
#[path = "behaviours_schedule/endings.rs"]
mod endings;
#[path = "behaviours_schedule/fate.rs"]
mod fate;
#[path = "behaviours_schedule/order.rs"]
mod order;
#[path = "behaviours_schedule/pauses.rs"]
mod pauses;
#[path = "behaviours_schedule/refusing.rs"]
mod refusing;
#[path = "behaviours_schedule/restart.rs"]
mod restart;
