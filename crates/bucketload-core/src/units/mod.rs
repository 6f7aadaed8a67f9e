//! Numbers with units, as written in workload files and on the command line.
//!
//! Parsing is exact: `1.5GiB` is a whole number of bytes or an error, never rounded. Every format function
//! writes text that parses back to the same value.
//!
//! | quantity | examples | units |
//! |---|---|---|
//! | size | `4096`, `4k`, `4KiB`, `4kB`, `1.5GiB` | `k m g t p` and `KiB MiB GiB TiB PiB` are powers of 1024, `kB MB GB TB PB` powers of 1000; case does not matter |
//! | duration | `250ms`, `30s`, `1h30m` | `ns us ms s m h d` |
//! | rate | `200/s`, `12/min`, `3600/h`, `200` | per second unless stated otherwise |
//! | share | `70%`, `0.7` | |
//! | size mix | `4k/70:1m/30` | sizes with percentages, as fio writes them |

mod decimal;
mod duration;
mod mix;
mod rate;
mod size;

pub use duration::{format_duration, parse_duration};
pub use mix::{format_size_mix, parse_size_mix};
pub use rate::{format_rate, format_share, parse_rate, parse_share};
pub use size::{format_size, format_size_f64, parse_size, parse_size_f64};

/// Why a text is not the expected quantity, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong, without a final full stop.
    pub message: String,
    /// How to correct it; empty if the message already says so.
    pub remedy: String,
}

impl Invalid {
    /// An error with a remedy.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}
