//! What a run leaves behind where its clean-up did not come to its end: in words for the user, with what to do.

use bucketload_core::error::OpError;

use crate::cleanup::CleanupReport;
use crate::options::RunOptions;

/// What becomes of objects that a clean-up did not delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They stay.
    #[default]
    Stay,
    /// They stay until this command line removes them.
    RemovedBy(String),
    /// The store ends with the run, and they with it.
    Vanish,
}

/// Says in `report` what is left after a clean-up that failed with `error` or, without one, did not come to
/// its end because the user aborted it.
pub(crate) fn tell(options: &RunOptions, report: &mut CleanupReport, error: Option<&OpError>) {
    if !report.complete && report.left.is_none() {
        let why = match error {
            Some(error) => format!("the clean-up failed: {error}"),
            None => "the clean-up was aborted".to_owned(),
        };
        report.left = Some(after(options, report.objects, &why));
    }
    if options.leftovers == Leftovers::Vanish
        && let Some(left) = report.left.take()
    {
        report.warn(format!("{left}; the store ends with this run"));
    }
}

/// Objects are left although `deleted` ones were deleted.
fn after(options: &RunOptions, deleted: u64, why: &str) -> String {
    let deleted = match deleted {
        0 => String::new(),
        count => format!(" ({count} were deleted)"),
    };
    let remedy = match &options.leftovers {
        Leftovers::RemovedBy(command) => format!("; remove them: {command}"),
        Leftovers::Stay | Leftovers::Vanish => String::new(),
    };
    let place = place(options);
    format!("objects of this run are left below {place}{deleted}: {why}{remedy}")
}

/// The run was aborted before anything was deleted.
pub(crate) fn aborted(options: &RunOptions) -> String {
    after(options, 0, "the run was aborted")
}

/// The marker is gone, without which nothing is deleted.
pub(crate) fn unmarked(options: &RunOptions, why: &str) -> String {
    let remedy = match &options.leftovers {
        Leftovers::RemovedBy(command) => format!(
            "; see what is there: {command} --yes-delete-foreign --dry-run; the same without --dry-run \
             removes it"
        ),
        Leftovers::Stay | Leftovers::Vanish => String::new(),
    };
    let place = place(options);
    format!("objects of this run may be left below {place}: nothing was deleted, as {why}{remedy}")
}

/// The objects are gone, and the bucket that the run created is not.
pub(crate) fn bucket(options: &RunOptions, error: &OpError) -> String {
    format!(
        "bucket `{}`, which this run created and which is empty, was not deleted: {error}; delete it with \
         the store's own means",
        options.bucket
    )
}

fn place(options: &RunOptions) -> String {
    format!("`{}/{}`", options.bucket, options.prefix)
}
