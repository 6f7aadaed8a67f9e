//! Clean-up of unfinished multipart uploads and of buckets.

use bucketload_core::driver::{AnyDriver, AnySession, DriverFacts};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{Plan, WorkPlan};

use crate::cleanup::{CleanupReport, retry};
use crate::options::RunOptions;
use crate::ownership::open_control;

/// Aborts the unfinished uploads of every key set.
pub(crate) async fn abort_uploads(
    plan: &Plan,
    options: &RunOptions,
    session: &mut AnySession,
    report: &mut CleanupReport,
) {
    let place = (options.bucket.as_str(), options.prefix.as_str());
    abort_uploads_in(plan, place, session, report).await;
}

/// Aborts the unfinished uploads of every key set below `prefix` in `bucket`. A failure is only a warning: some servers
/// cannot list uploads, and others fail if there are none.
pub(crate) async fn abort_uploads_in(
    plan: &Plan,
    (bucket, prefix): (&str, &str),
    session: &mut AnySession,
    report: &mut CleanupReport,
) {
    for keyset in &plan.keysets {
        let prefix = format!("{prefix}{}", keyset.prefix);
        match retry!(plan.timeout_ns, session.abort_uploads(bucket, &prefix)) {
            Ok(aborted) => report.uploads += aborted,
            Err(error) => {
                report.warn(format!(
                    "unfinished multipart uploads in bucket `{bucket}` could not be looked for or \
                     aborted: {error}"
                ));
                return;
            }
        }
    }
}

/// Aborts the unfinished uploads of a run that keeps its objects. Returns what the user should know.
///
/// # Errors
/// When the store cannot be reached.
pub(crate) async fn abort_kept(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
) -> Result<Vec<String>, OpError> {
    let mut report = CleanupReport::default();
    let mut session = retry!(plan.timeout_ns, open_control(driver, plan))?;
    abort_uploads(plan, options, &mut session, &mut report).await;
    Ok(report.warnings)
}

/// Whether the run can have begun a multipart upload. The native S3 clients write objects in one request unless the
/// operation says otherwise. Other engines decide by themselves, and other drivers remove the remains of interrupted
/// writes in the same call.
pub(crate) fn may_leave_uploads(plan: &Plan, facts: &DriverFacts) -> bool {
    let explicit = matches!(facts.driver.as_str(), "s3" | "libs3") && facts.engine == "native";
    let in_parts = |work: &WorkPlan| {
        // Only the trace knows what a replay does.
        work.model.replay().is_some()
            || work.mix.iter().any(|entry| {
                matches!(
                    entry.class,
                    OpClass::MultipartPut | OpClass::MultipartCopy | OpClass::MultipartAbort
                )
            })
    };
    !explicit || plan.phases.iter().flat_map(|p| &p.works).any(in_parts)
}

/// Deletes a bucket if it is empty. Returns whether it existed. Lists it first, since some servers delete a bucket with
/// everything in it.
///
/// # Errors
/// `Conflict` if it is not empty, else as the store says.
pub(crate) async fn delete_bucket(
    session: &mut AnySession,
    bucket: &str,
    timeout_ns: u64,
) -> Result<bool, OpError> {
    let outcome = match retry!(timeout_ns, session.list_keys(bucket, "", None)) {
        Ok(page) => match page.keys.first() {
            Some(key) => Err(OpError::new(
                ErrorKind::Conflict,
                format!("it holds objects that do not belong to this run, such as `{key}`"),
            )),
            None => retry!(timeout_ns, session.delete_bucket(bucket)),
        },
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        other => other.map(|()| true),
    }
}
