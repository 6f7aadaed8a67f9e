//! Messages about objects that a run leaves behind when its clean-up did not finish, and what to do about them.

use bucketload_core::error::OpError;

use crate::cleanup::CleanupReport;
use crate::options::RunOptions;

/// What happens to objects that the clean-up did not delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They stay.
    #[default]
    Stay,
    /// They stay until this command line removes them.
    RemovedBy(String),
    /// The store ends with the run, and they vanish with it.
    Vanish,
}

/// Notes in `report` what is left after a clean-up that failed with `error`, or that the user aborted if there is no
/// error.
pub(crate) fn report(options: &RunOptions, report: &mut CleanupReport, error: Option<&OpError>) {
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

/// The message for objects that are left after `deleted` others were deleted.
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

/// The message for versions that cannot be removed.
pub(crate) fn versions(options: &RunOptions, error: &OpError) -> String {
    let place = place(options);
    format!(
        "old versions of this run's objects are left below {place}, and nothing else: {error}; remove them by their \
         version ids, or let a lifecycle rule for noncurrent versions do it"
    )
}

/// The message for a run that was aborted before anything was deleted.
pub(crate) fn aborted(options: &RunOptions) -> String {
    after(options, 0, "the run was aborted")
}

/// The message for a missing marker, without which nothing is deleted.
pub(crate) fn unmarked(options: &RunOptions, why: &str) -> String {
    let remedy = match &options.leftovers {
        Leftovers::RemovedBy(command) => format!(
            "; see what is there: {command} --yes-delete-foreign --dry-run; the same without --dry-run \
             removes it"
        ),
        Leftovers::Stay | Leftovers::Vanish => String::new(),
    };
    let place = place(options);
    format!(
        "objects of this run may be left below {place}: nothing was deleted because {why}{remedy}"
    )
}

/// The message for a bucket that the run created and emptied but could not delete.
pub(crate) fn bucket(options: &RunOptions, error: &OpError) -> String {
    format!(
        "bucket `{}`, which this run created and which is empty, was not deleted: {error}; delete it with \
         the store's own tools",
        options.bucket
    )
}

fn place(options: &RunOptions) -> String {
    format!("`{}/{}`", options.bucket, options.prefix)
}
