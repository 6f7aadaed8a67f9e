//! Recorded requests: formats, preparation, replay, models.

mod formats;
mod inference;
mod model;
mod prepare;
mod samples;
mod source;
mod support;
