//! Statistics: moments, confidence intervals, steadiness, distribution tests, comparisons.
//!
//! Everything is a pure function of slices, so each formula can be tested against published values and by
//! seeded simulation. [`dist`] supplies the reference distributions; [`moments`], [`regress`] and [`batch`]
//! the estimates. [`mser`] and [`steady`] decide where a run has settled and whether it stays so,
//! [`quantile`] how far a percentile can be trusted. [`normality`], [`bootstrap`] and [`ks`] describe
//! distributions. [`ratio`] and [`ranks`] compare runs, [`mod@holm`] corrects for multiple comparisons, and
//! [`mod@decide`] expresses the result in one word. [`usl`] and [`knee`] describe how a store scales and where
//! it saturates. [`balance`] measures how evenly load is spread over nodes.
//!
//! Terms: a *bin* is one interval of a run (1 s unless configured otherwise); a *batch* is the mean of
//! consecutive bins.

pub mod balance;
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
pub mod ranks;
pub mod ratio;
pub mod regress;
pub mod steady;
pub mod usl;

#[cfg(test)]
pub(crate) mod testing;
