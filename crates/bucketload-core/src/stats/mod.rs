//! What a series of numbers is worth: moments, confidence intervals, steadiness, distribution tests.
//!
//! Everything is a pure function of slices, so each formula can be tested against published values
//! and by seeded simulation. [`dist`] supplies the reference distributions, [`moments`],
//! [`regress`] and [`batch`] the estimates, [`mser`] and [`steady`] decide where a run has settled
//! and whether it stays so, [`quantile`] says how far a percentile can be trusted, and
//! [`normality`], [`bootstrap`] and [`ks`] describe distributions. Runs are compared by [`ratio`],
//! [`ranks`] and [`resample`], corrected by [`mod@holm`], put into a word by [`mod@decide`], and
//! [`repetition`] plans how many are needed. [`usl`] and [`knee`] describe how a store scales and
//! where it bends; [`mod@queue`] is the theory that the capacity search is tested against.
//!
//! Terms: a *bin* is one interval of a run (1 s unless the run records others); a *batch* is the
//! mean of consecutive bins.

pub mod batch;
pub mod bootstrap;
pub mod decide;
pub mod dist;
pub mod holm;
pub mod knee;
pub mod ks;
pub mod moments;
pub mod mser;
pub mod normality;
pub mod quantile;
pub mod queue;
pub mod ranks;
pub mod ratio;
pub mod regress;
pub mod repetition;
pub mod resample;
pub mod steady;
pub mod usl;

#[cfg(test)]
pub(crate) mod testing;
