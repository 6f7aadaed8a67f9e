//! Laws of sizes, keys, arrivals, pauses and content: names, parameters and two notations.
//!
//! Each law is one row of a table (`table::LawDef`): name, parameters with kinds and defaults, and how to
//! build the plan's value. The compact form (`"zipf(0.99)"`), the table form (`{ law = "zipf", theta = 0.99
//! }`), error messages and the JSON Schema all follow from the row. To add a law: one variant in
//! [`bucketload_core::plan`], one row here, one arm where it is formatted.

pub(crate) mod arrival;
mod expr;
pub(crate) mod keys;
pub(crate) mod payload;
pub(crate) mod size;
pub(crate) mod table;
pub(crate) mod think;

pub use arrival::ArrivalSpec;
pub use keys::KeySpec;
pub use payload::PayloadSpec;
pub use size::SizeSpec;
pub use think::ThinkSpec;
