//! `bucketload cleanup`: deletes objects that earlier runs left in a target.
//!
//! A run's objects are below `PREFIX/bucketload-RUNID/`. This prefix carries the run's marker, which also names the
//! buckets that the run's workload created. Without `--yes-delete-foreign`, only such prefixes are emptied. A target
//! that is such a prefix itself selects that run alone.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_run::{Marker, now_ns, prefix_in_workload_buckets, read_marker};
use tokio::task::LocalSet;

use crate::advice::{remedy, with_remedy};
use crate::cli::manage::CleanupArgs;
use crate::connection::target_of;
use crate::drill::journal;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::target::{OWN_BUCKET, Target};
use crate::{setup, signals};

/// Attempts per listing or deletion.
const ATTEMPTS: u32 = 5;

/// Retries a call until it succeeds, fails permanently or runs out of attempts, as the clean-up of a run does. Some
/// servers fail a deletion that empties a folder, but succeed a moment later.
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

/// Lists the objects, and deletes them unless it is a dry run.
pub(crate) fn execute(args: &CleanupArgs) -> Result<Exit, Failure> {
    if !args.dry_run {
        // A store that a killed drill left broken could not be cleaned up.
        journal::settle_all(Path::new(setup::RUNS))?;
    }
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
    let runtime = signals::runtime().or_aborted()?;
    let base = if prefix.is_empty() {
        String::new()
    } else {
        format!("{prefix}/")
    };
    let scope = CleanupScope {
        root: &root,
        url: format!("{root}{bucket}/"),
        bucket,
        base: &base,
    };
    let found = Cell::new(false);
    let cleaned = LocalSet::new().block_on(&runtime, clean(&service.driver, &scope, args, &found));
    let failed = |e: OpError| {
        let gone = (e.kind == ErrorKind::NotFound && !found.get()).then_some(
            "a run that created the bucket has deleted it, and then nothing is left; otherwise check the name",
        );
        let help = remedy(&e).or(gone);
        with_remedy(format!("cleanup of {}{base}: {e}", scope.url), help)
    };
    match cleaned {
        Ok(()) => Ok(Exit::Ok),
        Err(e) if found.get() => Err(Failure::leftovers(format!(
            "{}\n  the remaining objects still carry their run's marker: remove the cause, then repeat the command",
            failed(e)
        ))),
        Err(e) => Err(Failure::target(failed(e))),
    }
}

fn nothing() -> Failure {
    Failure::usage(
        "cleanup: only services and file systems keep objects after a run; name one, such as \
         --target s3://BUCKET/PREFIX or file:///DIRECTORY",
    )
}

/// Root and name of the run whose directory `path` is: `ROOT/bucketload/bucketload-RUNID`.
fn of_one_run(path: &Path) -> Option<(&Path, &str)> {
    let name = path.file_name()?.to_str()?;
    let bucket = path.parent()?;
    let is_run = name.starts_with("bucketload-")
        && bucket.file_name()? == OWN_BUCKET
        && path.join(bucketload_run::MARKER).is_file();
    is_run.then_some((bucket.parent()?, name))
}

/// Where to delete.
struct CleanupScope<'a> {
    /// The part of a URL before the bucket's name.
    root: &'a str,
    /// URL of the bucket, with a trailing slash.
    url: String,
    bucket: &'a str,
    /// Prefix of all keys to consider: empty, or with a trailing slash.
    base: &'a str,
}

async fn clean(
    driver: &AnyDriver,
    scope: &CleanupScope<'_>,
    args: &CleanupArgs,
    found: &Cell<bool>,
) -> Result<(), OpError> {
    let CleanupScope {
        root,
        url,
        bucket,
        base,
    } = scope;
    let worker = WorkerId {
        thread: 0,
        worker: 0,
    };
    let mut session = driver.open(worker, &mut Probe::new(now_ns)).await?;
    let prefixes = if args.yes_delete_foreign {
        vec![(*base).to_owned()]
    } else {
        marked_prefixes(&mut session, bucket, base).await?
    };
    if prefixes.is_empty() {
        println!("no run left objects below {url}{base}");
    }
    for prefix in prefixes {
        found.set(true);
        let (mut made, mut locks) = (false, false);
        if !args.yes_delete_foreign {
            let marker = read_marker(&mut session, bucket, &prefix).await?;
            made = marker.as_ref().is_some_and(|marker| marker.created_bucket);
            locks = marker.as_ref().is_some_and(|marker| marker.locks);
            for (name, proven) in marker.iter().flat_map(Marker::bucket_names) {
                remove_bucket(&mut session, (root, &name), &prefix, proven, args.dry_run).await?;
            }
        }
        let deleted = empty(&mut session, bucket, (&prefix, locks), args.dry_run).await?;
        let word = if args.dry_run {
            "would be deleted"
        } else {
            "deleted"
        };
        println!("{url}{prefix}: {deleted} objects {word}");
        if made && !args.dry_run {
            delete_created_bucket(&mut session, (root, bucket)).await?;
        }
    }
    Ok(())
}

/// Deletes the target's bucket, which a run created, if the bucket is empty.
async fn delete_created_bucket(
    session: &mut AnySession,
    (root, bucket): (&str, &str),
) -> Result<(), OpError> {
    // Some servers delete a bucket together with its objects.
    let page = persist!(session.list_keys(bucket, "", None))?;
    let deleted = match page.keys.is_empty() {
        true => session.delete_bucket(bucket).await,
        false => Err(OpError::new(ErrorKind::Conflict, "not empty")),
    };
    match deleted {
        Ok(()) => println!("{root}{bucket}: deleted the bucket, which the run had created"),
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) if error.kind == ErrorKind::Conflict => {
            println!("{root}{bucket}: kept the bucket, which holds other objects");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The prefixes below `base` that carry a run's marker, or `base` if it carries one itself.
async fn marked_prefixes(
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
        print_note(page.note.as_deref());
        names.extend(page.keys.iter().filter_map(|key| {
            let name = key[base.len()..].split_once('/')?.0;
            Some(format!("{base}{name}/"))
        }));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut prefixes = Vec::new();
    for name in names {
        if read_marker(session, bucket, &name).await?.is_some() {
            prefixes.push(name);
        }
    }
    Ok(prefixes)
}

fn print_note(note: Option<&str>) {
    if let Some(note) = note {
        eprintln!("bucketload: {note}");
    }
}

/// Empties and deletes a bucket that the run of `prefix` created, if the bucket still exists. Deletes only objects
/// below the run's prefix. The bucket counts as the run's if its name proves it, or if it holds such objects.
async fn remove_bucket(
    session: &mut AnySession,
    (root, bucket): (&str, &str),
    prefix: &str,
    proven: bool,
    dry: bool,
) -> Result<(), OpError> {
    let inside = prefix_in_workload_buckets(prefix);
    let deleted = match empty(session, bucket, (&inside, false), dry).await {
        Ok(deleted) => deleted,
        // The bucket was never created, or was deleted already.
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !proven && deleted == 0 {
        println!(
            "{root}{bucket}: kept the bucket, because nothing proves that the run of {prefix} created it"
        );
        return Ok(());
    }
    if dry {
        println!("{root}{bucket}: {deleted} objects and the bucket would be deleted");
        return Ok(());
    }
    match session.delete_bucket(bucket).await {
        Ok(()) => println!("{root}{bucket}: {deleted} objects and the bucket deleted"),
        Err(error) if error.kind == ErrorKind::Conflict => println!(
            "{root}{bucket}: {deleted} objects deleted; kept the bucket, which holds other objects"
        ),
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Deletes everything below `prefix`, the marker last, and aborts unfinished uploads there. Lifts the locks of objects if
/// the run made any.
async fn empty(
    session: &mut AnySession,
    bucket: &str,
    (prefix, locks): (&str, bool),
    dry: bool,
) -> Result<u64, OpError> {
    let marker = format!("{prefix}{}", bucketload_run::MARKER);
    let (mut deleted, mut after) = (0, None);
    loop {
        let page = persist!(session.list_keys(bucket, prefix, after.as_deref()))?;
        print_note(page.note.as_deref());
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
            // Some servers fail if there are no uploads.
            Err(error) if error.kind != ErrorKind::Unsupported => print_note(Some(&format!(
                "cannot list or abort unfinished multipart uploads in bucket `{bucket}`: {error}"
            ))),
            _ => {}
        }
        let marker = [marker];
        persist!(session.delete_keys(bucket, &marker))?;
        remove_versions(session, bucket, (prefix, locks)).await?;
    }
    Ok(deleted)
}

/// Removes the versions and delete markers below `prefix`, if the bucket keeps any.
async fn remove_versions(
    session: &mut AnySession,
    bucket: &str,
    (prefix, locks): (&str, bool),
) -> Result<(), OpError> {
    let (mut removed, mut after) = (0, None);
    loop {
        let page = match persist!(session.list_versions(bucket, prefix, after.as_ref())) {
            Ok(page) => page,
            // The server knows no versions.
            Err(error) if matches!(error.kind, ErrorKind::Unsupported | ErrorKind::NotFound) => {
                break;
            }
            Err(error) => {
                print_note(Some(&format!(
                    "whether bucket `{bucket}` keeps old versions could not be seen: {error}"
                )));
                break;
            }
        };
        let mut versions = page.versions;
        versions.retain(|version| version.key.starts_with(prefix));
        if !versions.is_empty() {
            match locks {
                true => persist!(session.delete_locked_versions(bucket, &versions))?,
                false => persist!(session.delete_versions(bucket, &versions))?,
            }
            removed += versions.len();
        }
        if page.next.is_none() || page.next == after {
            break;
        }
        after = page.next;
    }
    if removed > 0 {
        print_note(Some(&format!(
            "bucket `{bucket}` keeps versions: removed {removed} old versions and delete markers"
        )));
    }
    Ok(())
}
