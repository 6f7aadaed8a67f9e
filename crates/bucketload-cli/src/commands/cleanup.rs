//! `bucketload cleanup`: deletes what earlier runs left in a target.
//!
//! A run's objects lie below `PREFIX/bucketload-RUNID/` and carry the run's marker, which also names the
//! buckets that its workload made itself. Without `--yes-delete-foreign` only such places are emptied. A target
//! that is such a place itself stands for that run alone.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_run::{Marker, now_ns, prefix_in_own_buckets, read_marker};
use tokio::task::LocalSet;

use crate::cli::manage::CleanupArgs;
use crate::connection::target_of;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::target::{OWN_BUCKET, Target};

/// Attempts of each listing and deletion.
const ATTEMPTS: u32 = 5;

/// Evaluates a call until it succeeds, fails for good or has been tried often enough, as the clean-up of a run
/// does: some servers fail at a deletion that empties a folder, and know nothing of it a moment later.
macro_rules! persist {
    ($call:expr) => {{
        let mut attempt = 1;
        loop {
            match $call.await {
                Err(error) if error.kind.is_retryable() && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(50 << attempt)).await;
                    attempt += 1;
                }
                result => break result,
            }
        }
    }};
}

/// Lists, and deletes unless it is a dry run.
pub(crate) fn execute(args: &CleanupArgs) -> Result<Exit, Failure> {
    let target = target_of(&args.target, None)?;
    let (root, prefix, all) = match &target {
        Target::Service { api, prefix, .. } => (
            format!("{}://", api.scheme()),
            prefix.as_str(),
            target.clone(),
        ),
        Target::Files(path) => {
            let (root, run) = of_one_run(path).unwrap_or((path, ""));
            let all = Target::Files(root.to_owned());
            (format!("file://{}/", root.display()), run, all)
        }
        _ => return Err(nothing()),
    };
    let bucket = target.bucket();
    let Some(service) = drivers::ask(&all, &args.target.settings, None, |driver, request| {
        (driver.check_cleanup)(request, bucket)?;
        (driver.open)(request)
    })?
    else {
        return Err(nothing());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_aborted()?;
    let base = if prefix.is_empty() {
        String::new()
    } else {
        format!("{prefix}/")
    };
    let place = Place {
        root: &root,
        url: format!("{root}{bucket}/"),
        bucket,
        base: &base,
    };
    let found = Cell::new(false);
    let cleaned = LocalSet::new().block_on(&runtime, clean(&service.driver, &place, args, &found));
    let failed = |e: OpError| format!("cleanup of {}{base}: {e}", place.url);
    match cleaned {
        Ok(()) => Ok(Exit::Ok),
        Err(e) if found.get() => Err(Failure::leftovers(format!(
            "{}; what is left there still carries its run's mark: remove the cause and clean up once more",
            failed(e)
        ))),
        Err(e) => Err(Failure::target(failed(e))),
    }
}

fn nothing() -> Failure {
    Failure::usage(
        "cleanup: only a service or a file system outlives a run; name one, such as \
         --target s3://BUCKET/PREFIX or file:///DIRECTORY",
    )
}

/// Root and directory of the run whose place `path` is: `ROOT/bucketload/bucketload-RUNID`.
fn of_one_run(path: &Path) -> Option<(&Path, &str)> {
    let name = path.file_name()?.to_str()?;
    let bucket = path.parent()?;
    let is_run = name.starts_with("bucketload-")
        && bucket.file_name()? == OWN_BUCKET
        && path.join(bucketload_run::MARKER).is_file();
    is_run.then_some((bucket.parent()?, name))
}

/// Where to clean.
struct Place<'a> {
    /// What stands before the name of a bucket in a URL.
    root: &'a str,
    /// URL of the bucket, with a slash at its end.
    url: String,
    bucket: &'a str,
    /// Prefix of everything that is looked at: empty, or with a slash at its end.
    base: &'a str,
}

async fn clean(
    driver: &AnyDriver,
    place: &Place<'_>,
    args: &CleanupArgs,
    found: &Cell<bool>,
) -> Result<(), OpError> {
    let Place {
        root,
        url,
        bucket,
        base,
    } = place;
    let worker = WorkerId {
        thread: 0,
        worker: 0,
    };
    let mut session = driver.open(worker, &mut Probe::new(now_ns)).await?;
    let places = if args.yes_delete_foreign {
        vec![(*base).to_owned()]
    } else {
        marked_places(&mut session, bucket, base).await?
    };
    if places.is_empty() {
        println!("no run left anything below {url}{base}");
    }
    for place in places {
        found.set(true);
        let mut made = false;
        if !args.yes_delete_foreign {
            let marker = read_marker(&mut session, bucket, &place).await?;
            made = marker.as_ref().is_some_and(|marker| marker.created_bucket);
            for (name, proven) in marker.iter().flat_map(Marker::bucket_names) {
                remove_bucket(&mut session, (root, &name), &place, proven, args.dry_run).await?;
            }
        }
        let deleted = empty(&mut session, bucket, &place, args.dry_run).await?;
        let word = if args.dry_run {
            "would be deleted"
        } else {
            "deleted"
        };
        println!("{url}{place}: {deleted} objects {word}");
        if made && !args.dry_run {
            give_back(&mut session, (root, bucket)).await?;
        }
    }
    Ok(())
}

/// Deletes the bucket of the target, which a run created, if it is empty.
async fn give_back(session: &mut AnySession, (root, bucket): (&str, &str)) -> Result<(), OpError> {
    // There are servers that delete a bucket with what is in it.
    let page = persist!(session.list_keys(bucket, "", None))?;
    let deleted = match page.keys.is_empty() {
        true => session.delete_bucket(bucket).await,
        false => Err(OpError::new(ErrorKind::Conflict, "not empty")),
    };
    match deleted {
        Ok(()) => println!("{root}{bucket}: the bucket, which the run had created, deleted"),
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) if error.kind == ErrorKind::Conflict => {
            println!("{root}{bucket}: the bucket holds other objects and was left");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The places below `base` that carry a run's marker, or `base` if it is such a place itself.
async fn marked_places(
    session: &mut AnySession,
    bucket: &str,
    base: &str,
) -> Result<Vec<String>, OpError> {
    if !base.is_empty() && read_marker(session, bucket, base).await?.is_some() {
        return Ok(vec![base.to_owned()]);
    }
    let start = format!("{base}bucketload-");
    let (mut names, mut after) = (BTreeSet::new(), None);
    loop {
        let page = persist!(session.list_keys(bucket, &start, after.as_deref()))?;
        tell(page.note.as_deref());
        names.extend(page.keys.iter().filter_map(|key| {
            let name = key[base.len()..].split_once('/')?.0;
            Some(format!("{base}{name}/"))
        }));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut places = Vec::new();
    for name in names {
        if read_marker(session, bucket, &name).await?.is_some() {
            places.push(name);
        }
    }
    Ok(places)
}

/// Says something beside what is deleted.
fn tell(note: Option<&str>) {
    if let Some(note) = note {
        eprintln!("bucketload: {note}");
    }
}

/// Empties and deletes a bucket that the run of `prefix` made itself, if it still exists. Only objects
/// below the run's prefix are deleted; the bucket is the run's when its name proves it or such objects
/// lie in it.
async fn remove_bucket(
    session: &mut AnySession,
    (root, bucket): (&str, &str),
    prefix: &str,
    proven: bool,
    dry: bool,
) -> Result<(), OpError> {
    let inside = prefix_in_own_buckets(prefix);
    let deleted = match empty(session, bucket, &inside, dry).await {
        Ok(deleted) => deleted,
        // It was never made, or is gone already.
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !proven && deleted == 0 {
        println!("{root}{bucket}: left alone: nothing proves that the run of {prefix} made it");
        return Ok(());
    }
    if dry {
        println!("{root}{bucket}: {deleted} objects and the bucket would be deleted");
        return Ok(());
    }
    match session.delete_bucket(bucket).await {
        Ok(()) => println!("{root}{bucket}: {deleted} objects and the bucket deleted"),
        Err(error) if error.kind == ErrorKind::Conflict => println!(
            "{root}{bucket}: {deleted} objects deleted; the bucket holds others and was left"
        ),
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Deletes everything below `prefix`, the marker last, and aborts unfinished uploads there.
async fn empty(
    session: &mut AnySession,
    bucket: &str,
    prefix: &str,
    dry: bool,
) -> Result<u64, OpError> {
    let marker = format!("{prefix}{}", bucketload_run::MARKER);
    let (mut deleted, mut after) = (0, None);
    loop {
        let page = persist!(session.list_keys(bucket, prefix, after.as_deref()))?;
        tell(page.note.as_deref());
        let keys: Vec<String> = page.keys.into_iter().filter(|key| *key != marker).collect();
        deleted += keys.len() as u64;
        if !dry && !keys.is_empty() {
            persist!(session.delete_keys(bucket, &keys))?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if !dry {
        match session.abort_uploads(bucket, prefix).await {
            // Some servers fail at it when there are none.
            Err(error) if error.kind != ErrorKind::Unsupported => tell(Some(&format!(
                "unfinished multipart uploads in bucket `{bucket}` could not be looked for or aborted: {error}"
            ))),
            _ => {}
        }
        let marker = [marker];
        persist!(session.delete_keys(bucket, &marker))?;
    }
    Ok(deleted)
}
