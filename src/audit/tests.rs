//! The room as a whole: what is written is read again, once, whatever happens
//! in between.

mod bench;
mod chain;
mod clock_steps;
mod counting;
mod dictionary;
mod filters;
mod groups;
mod index;
mod kill;
mod packing;
mod reading_along;
mod retention;
mod round_trip;
mod views;
