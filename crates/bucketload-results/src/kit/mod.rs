//! The building blocks of every results page: tables, charts, and the frame around them.
//!
//! ```text
//!  Table ─┬─► terminal text, CSV, Markdown, LaTeX
//!         └─► HTML ──┐
//!  Chart ─┬─► HTML ──┼─► Section ─► Page ─► one file: runs, comparisons, capacity, sweep, grid, HPC
//!         │          └────────────► frame ─► the page of a study
//!         └─► SVG file
//! ```
//!
//! All drawing happens here. A page is readable without a script and loads nothing; its script only adds the values
//! under the pointer. [`escape`] keeps texts from users and servers from becoming markup.

pub mod escape;
pub mod page;
pub mod svg;
mod table;
mod terminal;

pub use page::{Page, Section, VerdictBox};
pub use svg::{Axis, Chart, Series, Unit};
pub use table::{Cell, Column, Table};
pub use terminal::Style;
