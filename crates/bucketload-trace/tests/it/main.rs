//! Recorded requests: formats, preparation, replay, models.

mod formats;
mod model;
mod prepare;
mod samples;
mod source;
mod support;
