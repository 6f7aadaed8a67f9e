//! Studies: what becomes of specification and journal.

mod golden;
mod report;
mod support;
