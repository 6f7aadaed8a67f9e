//! Clean-up in buckets that keep versions: there a delete only hides an object. What it hides, and the delete markers,
//! are removed by their ids.

use bucketload_core::driver::{AnySession, KeyVersion};
use bucketload_core::error::{ErrorKind, OpError};

use crate::cleanup::{CleanupReport, retry};
use crate::leftover;
use crate::options::RunOptions;

/// Removes the versions and delete markers below `prefix` in `bucket` whose keys `own` selects, and notes in `report` how
/// many, or that some are left. If the run has `locked` objects, their locks are lifted. Call it after the objects were
/// deleted.
pub(crate) async fn remove(
    options: &RunOptions,
    (bucket, prefix): (&str, &str),
    (timeout_ns, locked): (u64, bool),
    session: &mut AnySession,
    own: &dyn Fn(&str) -> bool,
    report: &mut CleanupReport,
) {
    let before = report.versions;
    let mut after: Option<KeyVersion> = None;
    loop {
        let page = match retry!(
            timeout_ns,
            session.list_versions(bucket, prefix, after.as_ref())
        ) {
            Ok(page) => page,
            // The server knows no versions.
            Err(error) if matches!(error.kind, ErrorKind::Unsupported | ErrorKind::NotFound) => {
                return;
            }
            Err(error) => {
                return report.warn(format!(
                    "whether bucket `{bucket}` keeps old versions of this run's objects could not be \
                     seen: {error}"
                ));
            }
        };
        let mut versions = page.versions;
        versions.retain(|version| own(&version.key));
        if !versions.is_empty() {
            // Locked versions take two requests each, and all of them together one timeout.
            for versions in versions.chunks(if locked { 50 } else { 1000 }) {
                let removed = match locked {
                    true => retry!(timeout_ns, session.delete_locked_versions(bucket, versions)),
                    false => retry!(timeout_ns, session.delete_versions(bucket, versions)),
                };
                match removed {
                    Ok(()) => report.versions += versions.len() as u64,
                    Err(error) => return keep(options, report, &error),
                }
            }
        }
        if page.next.is_none() || page.next == after {
            break;
        }
        after = page.next;
    }
    let removed = report.versions - before;
    if removed > 0 {
        report.warn(format!(
            "bucket `{bucket}` keeps versions: the clean-up also removed {removed} versions and delete markers of this run"
        ));
    }
}

fn keep(options: &RunOptions, report: &mut CleanupReport, error: &OpError) {
    report.complete = false;
    report.left = Some(leftover::versions(options, error));
}
