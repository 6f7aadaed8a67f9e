//! Ownership: a run marks what it creates and touches nothing else.
//!
//! The marker is a small object `<prefix>.bucketload-run.json` that names the run. Clean-up deletes
//! objects only under a prefix that carries this run's marker.

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
    /// The run that owns what lies under the prefix.
    pub run_id: String,
    /// Name of its workload.
    pub workload: String,
    /// Whether the run created the bucket.
    pub created_bucket: bool,
    /// Buckets that the workload makes itself: none of them existed when this was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketsPlan>,
}

impl Marker {
    /// The names of the buckets that the run may have made, and whether the name alone proves it
    /// (it carries the run's identifier).
    pub fn bucket_names(&self) -> impl Iterator<Item = (String, bool)> {
        self.buckets.iter().flat_map(|plan| {
            let stem = plan.stem(&self.run_id);
            let proves = !plan.exact && !self.run_id.is_empty();
            // A file from elsewhere states what it likes.
            (0..plan.count.min(MOST_BUCKETS)).map(move |number| {
                let mut name = String::new();
                plan.render(&stem, number, &mut name);
                (name, proves)
            })
        })
    }
}

/// What the run may delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Whether this run created the bucket.
    pub(crate) created_bucket: bool,
    /// Whether the prefix held other objects before: then nothing under it is deleted.
    pub(crate) foreign: bool,
}

pub(crate) fn marker_key(prefix: &str) -> String {
    format!("{prefix}{MARKER}")
}

/// Prefix of a run's objects in buckets that it makes itself; `prefix` is that of the run. They hold
/// nothing else, and a prefix without directories leaves nothing behind on a file system once the objects
/// are deleted.
#[must_use]
pub fn prefix_in_workload_buckets(prefix: &str) -> String {
    match prefix.trim_end_matches('/').rsplit('/').next() {
        None | Some("") => String::new(),
        Some(last) => format!("{last}-"),
    }
}

/// The key set as its names are in buckets of its own: without directories.
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

/// Bounds a call of the control plane by the plan's timeout.
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

/// Puts a failed step of the preflight into words.
fn failed<'a>(
    options: &'a RunOptions,
    step: &'static str,
) -> impl FnOnce(OpError) -> RunError + use<'a> {
    move |error| match error.kind {
        ErrorKind::Connect | ErrorKind::Tls | ErrorKind::Timeout => RunError::Unreachable(error),
        _ => RunError::Bucket {
            bucket: options.bucket.clone(),
            step,
            error,
        },
    }
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
        Err(error) if error.kind == ErrorKind::NotFound => Err(RunError::NoBucket {
            bucket: options.bucket.clone(),
        }),
        result => result.map_err(failed(options, "looking it up")),
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
        timed(plan.timeout_ns, session.ensure_bucket(bucket))
            .await
            .map_err(failed("creating it"))?
    } else {
        find_bucket(&mut session, plan, options).await?;
        false
    };
    let claimed = mark(&mut session, plan, options, created_bucket).await;
    if claimed.is_err() && created_bucket {
        give_back(&mut session, plan, options).await;
    }
    claimed
}

/// Deletes the bucket that this run has just created and cannot use, as nothing would tell later whose it
/// is; not if somebody has put something into it meanwhile. What becomes of this matters less than the
/// refusal that it follows.
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

/// Looks whose the prefix is and writes the run's mark below it.
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
            // Without a mark nothing would prove later which buckets are the run's.
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

/// Refuses to go on when a bucket exists that the workload would make: it is somebody else's.
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
                // A bucket that may not be looked at exists as well.
                Ok(()) | Err(_) => return Err(RunError::BucketExists { bucket: name }),
            }
        }
    }
    Ok(())
}

/// Checks that the objects of the earlier run that the options name are there and that run's.
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

/// The ownership marker under a prefix; `None` when there is none or it is not one of ours.
///
/// # Errors
/// As the store says, except that an absent marker is no error.
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
