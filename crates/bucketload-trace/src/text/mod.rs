//! Parsers for the elements of logs: instants, numbers, encoded names, JSON scalars.
//!
//! All work on bytes, because keys are bytes.

pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod time;
