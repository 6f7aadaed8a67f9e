//! Waits until nobody holds a data set.

use std::time::Duration;

use bucketload_core::error::OpError;

use super::LOOKS;
use super::journal::{Journal, Place};
use super::lease::Lease;
use crate::error::RunError;
use crate::options::RunOptions;

pub(super) fn read(options: &RunOptions) -> impl Fn(OpError) -> RunError + use<'_> {
    |error| RunError::of_bucket(&options.bucket, "reading the data set's journal", error)
}

pub(super) fn held(by: &Lease, options: &RunOptions) -> RunError {
    RunError::Options(format!(
        "{} prepares the data set of run {} now; wait until it has ended, or end it",
        by.holder(),
        options.run_id
    ))
}

/// The journal once no living session holds the data set.
///
/// # Errors
/// When another session does, or the journal cannot be read.
pub(super) async fn unheld(
    place: &Place,
    mut journal: Journal,
    patience: Duration,
    options: &RunOptions,
    say: &mut dyn FnMut(String),
) -> Result<Journal, RunError> {
    let Some(seen) = journal.lease.clone().filter(|lease| !lease.is_gone()) else {
        return Ok(journal);
    };
    say(format!(
        "{} was preparing the data set and has not said that it ended; it counts as dead if it is silent for {} s",
        seen.holder(),
        patience.as_secs()
    ));
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < patience {
        tokio::time::sleep(patience / LOOKS).await;
        match place.read().await.map_err(read(options))? {
            Some((now, _)) => journal = now,
            None => continue,
        }
        match &journal.lease {
            None => break,
            Some(lease) if *lease != seen => return Err(held(lease, options)),
            Some(_) => {}
        }
    }
    Ok(journal)
}
