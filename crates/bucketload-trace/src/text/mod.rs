//! Reading the small things that logs consist of: instants, numbers, encoded names, JSON scalars.
//!
//! Everything works on bytes, because keys are bytes; nothing here allocates unless it says so.

pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod time;
