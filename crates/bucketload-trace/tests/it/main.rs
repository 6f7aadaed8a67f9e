//! Recorded requests: formats, what is made of them, models.

mod formats;
mod model;
mod prepare;
mod samples;
mod source;
mod support;
