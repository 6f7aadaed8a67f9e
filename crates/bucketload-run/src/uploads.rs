//! The parts of a clean-up beside objects: unfinished multipart uploads, and buckets.

use bucketload_core::driver::{AnySession, DriverFacts};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{Plan, WorkPlan};

use crate::cleanup::{CleanupReport, retry};
use crate::options::RunOptions;

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

/// The same below another prefix, in another bucket. That uploads cannot be listed ends no clean-up: some
/// servers know no such listing, others fail at it when there are none.
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

/// Whether the run can have begun a multipart upload. What the native clients of S3 write, they write in one
/// request unless the operation says otherwise. Other engines decide by themselves; other drivers also remove
/// here what an interrupted write has left.
pub(crate) fn may_leave_uploads(plan: &Plan, facts: &DriverFacts) -> bool {
    let explicit = matches!(facts.driver.as_str(), "s3" | "libs3") && facts.engine == "native";
    let in_parts = |work: &WorkPlan| {
        // What a replay does is known only to the trace.
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

/// Deletes a bucket if it is empty; returns whether it was there. Looks into it first: there are servers that delete a bucket with all that others have put into it.
///
/// # Errors
/// `Conflict` when it holds something, else as the store says.
pub(crate) async fn delete_bucket(
    session: &mut AnySession,
    bucket: &str,
    timeout_ns: u64,
) -> Result<bool, OpError> {
    let outcome = match retry!(timeout_ns, session.list_keys(bucket, "", None)) {
        Ok(page) => match page.keys.first() {
            Some(key) => Err(OpError::new(
                ErrorKind::Conflict,
                format!("it holds what is not this run's, such as `{key}`"),
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
