//! Ownership: a run marks its prefix and touches nothing else.
//!
//! The marker is a small object, `<prefix>.bucketload-run.json`, that names the run. The clean-up deletes objects only
//! under a prefix that carries this run's marker.

use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::plan::buckets::MOST_BUCKETS;
use bucketload_core::plan::{BucketsPlan, KeysetPlan, Plan};
use bucketload_core::record::Probe;
use serde::{Deserialize, Serialize};

use crate::buckets::WorkloadBuckets;
use crate::clock::now_ns;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::session::open_within;

/// Name of the marker below the run's prefix.
pub const MARKER: &str = ".bucketload-run.json";

/// Content of the ownership marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The run that owns the objects under the prefix.
    pub run_id: String,
    /// Name of its workload.
    pub workload: String,
    /// Whether the run created the bucket.
    pub created_bucket: bool,
    /// Buckets that the workload makes itself. None of them existed when the marker was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketsPlan>,
    /// Whether the run locks objects, so that the clean-up has to lift locks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locks: bool,
}

impl Marker {
    /// The names of the buckets that the run may have made, and whether the name alone proves it because it carries the
    /// run's identifier.
    pub fn bucket_names(&self) -> impl Iterator<Item = (String, bool)> {
        self.buckets.iter().flat_map(|plan| {
            let stem = plan.stem(&self.run_id);
            let proves = !plan.exact && !self.run_id.is_empty();
            // Bounded, since a marker from elsewhere may state any count.
            (0..plan.count.min(MOST_BUCKETS)).map(move |number| {
                let mut name = String::new();
                plan.render(&stem, number, &mut name);
                (name, proves)
            })
        })
    }
}

/// A run's claim to its prefix, which decides what it may delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Whether this run created the bucket.
    pub(crate) created_bucket: bool,
    /// Whether the prefix held other objects before. Then nothing under it is deleted.
    pub(crate) foreign: bool,
}

pub(crate) fn marker_key(prefix: &str) -> String {
    format!("{prefix}{MARKER}")
}

/// Prefix of a run's objects in buckets that the workload makes; `prefix` is the run's own. It has no directories, so
/// on a file system nothing stays behind when the objects are deleted.
#[must_use]
pub fn prefix_in_workload_buckets(prefix: &str) -> String {
    match prefix.trim_end_matches('/').rsplit('/').next() {
        None | Some("") => String::new(),
        Some(last) => format!("{last}-"),
    }
}

/// The key set as it is named in buckets that the workload makes: without directories.
pub(crate) fn in_workload_buckets(set: &KeysetPlan) -> KeysetPlan {
    KeysetPlan {
        prefix: set.prefix.replace('/', "-"),
        ..set.clone()
    }
}

/// Opens a session of the control plane.
pub(crate) async fn open_control(driver: &AnyDriver, plan: &Plan) -> Result<AnySession, OpError> {
    let worker = WorkerId {
        thread: u16::MAX,
        worker: u32::MAX,
    };
    open_within(driver, worker, &mut Probe::new(now_ns), plan.timeout_ns).await
}

/// Limits a call of the control plane to the plan's timeout.
pub(crate) async fn timed<T>(
    timeout_ns: u64,
    call: impl Future<Output = Result<T, OpError>>,
) -> Result<T, OpError> {
    match tokio::time::timeout(Duration::from_nanos(timeout_ns), call).await {
        Ok(result) => result,
        Err(_) => Err(OpError::new(
            ErrorKind::Timeout,
            format!("no complete answer within {} ms", timeout_ns / 1_000_000),
        )),
    }
}

/// Turns the failure of `step` on the run's bucket into an error of the run.
fn failed<'a>(
    options: &'a RunOptions,
    step: &'static str,
) -> impl FnOnce(OpError) -> RunError + use<'a> {
    move |error| RunError::of_bucket(&options.bucket, step, error)
}

/// Checks that the target is reachable and the bucket usable, without writing anything.
pub(crate) async fn preflight(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
) -> Result<(), RunError> {
    let mut session = open_control(driver, plan)
        .await
        .map_err(RunError::Unreachable)?;
    find_bucket(&mut session, plan, options).await
}

async fn find_bucket(
    session: &mut AnySession,
    plan: &Plan,
    options: &RunOptions,
) -> Result<(), RunError> {
    match timed(plan.timeout_ns, session.head_bucket(&options.bucket)).await {
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Err(RunError::NoBucket {
                bucket: options.bucket.clone(),
            });
        }
        result => result.map_err(failed(options, "looking it up"))?,
    }
    check_needs(session, plan, options).await
}

/// Checks that the bucket offers what the plan needs of it.
async fn check_needs(
    session: &mut AnySession,
    plan: &Plan,
    options: &RunOptions,
) -> Result<(), RunError> {
    let needs = plan.bucket_needs();
    match needs.any() {
        true => timed(plan.timeout_ns, session.check_needs(&options.bucket, needs))
            .await
            .map_err(failed(options, "checking what the workload needs of it")),
        false => Ok(()),
    }
}

/// Checks that the target is reachable and usable and marks the prefix as this run's.
pub(crate) async fn claim(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
) -> Result<Claim, RunError> {
    let bucket = &options.bucket;
    let failed = |step| failed(options, step);
    let mut session = open_control(driver, plan)
        .await
        .map_err(RunError::Unreachable)?;
    let created_bucket = if options.create_bucket {
        let made = session.ensure_bucket_with(bucket, plan.bucket_needs());
        timed(plan.timeout_ns, made)
            .await
            .map_err(failed("creating it"))?
    } else {
        find_bucket(&mut session, plan, options).await?;
        false
    };
    let claimed = match check_needs(&mut session, plan, options).await {
        Ok(()) => mark(&mut session, plan, options, created_bucket).await,
        Err(error) => Err(error),
    };
    if claimed.is_err() && created_bucket {
        give_back(&mut session, plan, options).await;
    }
    claimed
}

/// Deletes a bucket that this run has just created but cannot use: without a marker nobody would know later whose it
/// is. Leaves the bucket if somebody has put something into it. Errors are ignored: the caller already returns the
/// error that led here.
async fn give_back(session: &mut AnySession, plan: &Plan, options: &RunOptions) {
    let (bucket, limit) = (&options.bucket, plan.timeout_ns);
    let marker = timed(limit, read_marker(session, bucket, &options.prefix)).await;
    if matches!(marker, Ok(Some(marker)) if marker.run_id == options.run_id) {
        let key = [marker_key(&options.prefix)];
        let _ = timed(limit, session.delete_keys(bucket, &key)).await;
    }
    let left = timed(limit, session.list_keys(bucket, "", None)).await;
    if left.is_ok_and(|page| page.keys.is_empty()) {
        let _ = timed(limit, session.delete_bucket(bucket)).await;
    }
}

/// Checks who owns the prefix and writes the run's marker below it.
async fn mark(
    session: &mut AnySession,
    plan: &Plan,
    options: &RunOptions,
    created_bucket: bool,
) -> Result<Claim, RunError> {
    let bucket = &options.bucket;
    let failed = |step| failed(options, step);
    let marker = marker_key(&options.prefix);
    let page = timed(
        plan.timeout_ns,
        session.list_keys(bucket, &options.prefix, None),
    )
    .await
    .map_err(failed("listing the prefix"))?;
    let owner = match page.keys.contains(&marker) {
        true => timed(
            plan.timeout_ns,
            read_marker(session, bucket, &options.prefix),
        )
        .await
        .map_err(failed("reading the ownership marker"))?,
        false => None,
    };
    let ours = owner.as_ref().is_some_and(|m| m.run_id == options.run_id);
    let foreign = !ours && !page.keys.is_empty();
    if foreign && !options.allow_foreign {
        return Err(RunError::Foreign {
            bucket: bucket.clone(),
            prefix: options.prefix.clone(),
            found: describe(&page.keys, owner.as_ref()),
        });
    }
    let workload_buckets = WorkloadBuckets::of(plan, &options.run_id);
    if let Some(workload_buckets) = &workload_buckets {
        if foreign {
            // Without a marker nothing would prove later which buckets belong to the run.
            return Err(RunError::Foreign {
                bucket: bucket.clone(),
                prefix: options.prefix.clone(),
                found: describe(&page.keys, owner.as_ref()),
            });
        }
        if !ours {
            check_absent(session, plan.timeout_ns, workload_buckets).await?;
        }
    }
    if !foreign {
        let content = Marker {
            run_id: options.run_id.clone(),
            workload: plan.workload.clone(),
            created_bucket: created_bucket || owner.is_some_and(|m| m.created_bucket),
            buckets: workload_buckets
                .iter()
                .flat_map(WorkloadBuckets::sets)
                .map(|set| set.plan.clone())
                .collect(),
            locks: plan.bucket_needs().lock,
        };
        let body = serde_json::to_vec_pretty(&content).expect("strings and a flag are valid JSON");
        timed(plan.timeout_ns, session.put_small(bucket, &marker, &body))
            .await
            .map_err(failed("writing the ownership marker"))?;
        let read = timed(plan.timeout_ns, session.get_small(bucket, &marker))
            .await
            .map_err(failed("reading the ownership marker back"))?;
        if read != body {
            let error = OpError::new(
                ErrorKind::Corrupt,
                "the ownership marker reads differently from what was written",
            );
            return Err(failed("reading the ownership marker back")(error));
        }
    }
    Ok(Claim {
        created_bucket,
        foreign,
    })
}

/// Fails if a bucket that the workload would make exists already: it is somebody else's.
async fn check_absent(
    session: &mut AnySession,
    timeout_ns: u64,
    buckets: &WorkloadBuckets,
) -> Result<(), RunError> {
    for set in buckets.sets() {
        for number in 0..set.plan.count {
            let name = set.name(number);
            match timed(timeout_ns, session.head_bucket(&name)).await {
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) if error.kind != ErrorKind::Auth => {
                    return Err(RunError::Bucket {
                        bucket: name,
                        step: "checking that it does not exist yet",
                        error,
                    });
                }
                // A bucket to which access is denied exists.
                Ok(()) | Err(_) => return Err(RunError::BucketExists { bucket: name }),
            }
        }
    }
    Ok(())
}

/// Checks that the prefix of the earlier run that the options name carries that run's marker.
pub(crate) async fn check_data(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
) -> Result<(), RunError> {
    let Some(data) = &options.data else {
        return Ok(());
    };
    let mut session = open_control(driver, plan)
        .await
        .map_err(RunError::Unreachable)?;
    let marker = timed(
        plan.timeout_ns,
        read_marker(&mut session, &options.bucket, &data.prefix),
    )
    .await
    .map_err(failed(options, "reading the earlier run's marker"))?;
    match marker {
        Some(marker) if marker.run_id == data.run_id => Ok(()),
        _ => Err(RunError::Options(format!(
            "`{}/{}` does not hold the objects of run {}: name the target that it wrote to, and \
             a run that kept its objects",
            options.bucket, data.prefix, data.run_id
        ))),
    }
}

/// The ownership marker under a prefix; `None` if there is none or it is not one of ours.
///
/// # Errors
/// As the store says; a missing marker is no error.
pub async fn read_marker(
    session: &mut AnySession,
    bucket: &str,
    prefix: &str,
) -> Result<Option<Marker>, OpError> {
    match session.get_small(bucket, &marker_key(prefix)).await {
        Ok(body) => Ok(serde_json::from_slice(&body).ok()),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn describe(keys: &[String], owner: Option<&Marker>) -> String {
    match owner {
        Some(marker) => format!("the objects of run {}", marker.run_id),
        None => match keys {
            [only] => format!("an object (`{only}`)"),
            _ => format!("other objects (such as `{}`)", keys[0]),
        },
    }
}
