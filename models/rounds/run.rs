//! Rounds of writing, listing and deleting.

use std::io;

use bucketload_core::plan::RoundsPlan;

use crate::error::RunError;
use crate::models::{Checked, RunModel, check_cap, refuse};
use crate::source::{Draft, Generators};
use crate::thread::Starting;

impl RunModel for RoundsPlan {
    fn check(&self, at: &Checked<'_>) -> Result<(), RunError> {
        if at.options.share.of > 1 {
            return refuse(format!(
                "phase `{}` works in rounds, which one agent performs alone",
                at.phase.name
            ));
        }
        check_cap(self, at)
    }

    fn generators(&self, draft: &Draft<'_>) -> Result<Generators, RunError> {
        draft.mix()
    }

    fn start(&self, starting: &mut Starting<'_>, work: u16) -> io::Result<()> {
        starting.rounds(work, *self);
        Ok(())
    }
}
