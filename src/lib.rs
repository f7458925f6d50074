#![doc = include_str!("../README.md")]
//!
//! # The rooms
//!
//! In the order of dependence: each knows only those above it.

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

pub mod schedule;

#[cfg(feature = "cli")]
pub mod serve;

#[cfg(feature = "cli")]
pub mod config;

#[cfg(feature = "cli")]
pub mod cli;
