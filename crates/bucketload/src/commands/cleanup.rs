//! `bucketload cleanup`: deletes what earlier runs left in a target.
//!
//! A run's objects lie below `PREFIX/bucketload-RUNID/` and carry the run's marker. Without
//! `--yes-delete-foreign` only such places are emptied.

use std::collections::BTreeSet;

use bucketload_core::driver::{Admin, Driver, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_run::{now_ns, read_marker};
use tokio::task::LocalSet;

use crate::cli::manage::CleanupArgs;
use crate::connection::{target_of, with_driver};
use crate::exit::{Exit, Failure};
use crate::services;
use crate::target::Target;

/// Lists, and deletes unless it is a dry run.
pub(crate) fn execute(args: &CleanupArgs) -> Result<Exit, Failure> {
    let target = target_of(&args.target, None)?;
    let (service, root, prefix) = match &target {
        Target::Service {
            api,
            server,
            prefix,
            ..
        } => {
            let service = services::open(*api, server.as_deref(), &args.target, None)?;
            (service, format!("{}://", api.scheme()), prefix.as_str())
        }
        Target::Files(path) => {
            let service = services::posix::service(path, &args.target)?;
            (service, format!("file://{}/", path.display()), "")
        }
        _ => {
            return Err(Failure::usage(
                "cleanup: only a service or a file system outlives a run; name one, such as \
                 --target s3://BUCKET/PREFIX or file:///DIRECTORY",
            ));
        }
    };
    let bucket = target.bucket();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::aborted(e.to_string()))?;
    let base = if prefix.is_empty() {
        String::new()
    } else {
        format!("{prefix}/")
    };
    let place = Place {
        url: format!("{root}{bucket}/"),
        bucket,
        base: &base,
    };
    let cleaned = with_driver!(service.driver, driver => {
        LocalSet::new().block_on(&runtime, clean(&*driver, &place, args))
    });
    cleaned
        .map(|()| Exit::Ok)
        .map_err(|e| Failure::target(format!("cleanup of {}{base}: {e}", place.url)))
}

/// Where to clean.
struct Place<'a> {
    /// URL of the bucket, with a slash at its end.
    url: String,
    bucket: &'a str,
    /// Prefix of everything that is looked at: empty, or with a slash at its end.
    base: &'a str,
}

async fn clean<D: Driver>(
    driver: &D,
    place: &Place<'_>,
    args: &CleanupArgs,
) -> Result<(), OpError> {
    let Place { url, bucket, base } = place;
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
        let deleted = empty(&mut session, bucket, &place, args.dry_run).await?;
        let word = if args.dry_run {
            "would be deleted"
        } else {
            "deleted"
        };
        println!("{url}{place}: {deleted} objects {word}");
    }
    Ok(())
}

/// The places below `base` that carry a run's marker.
async fn marked_places<A: Admin>(
    session: &mut A,
    bucket: &str,
    base: &str,
) -> Result<Vec<String>, OpError> {
    let start = format!("{base}bucketload-");
    let (mut names, mut after) = (BTreeSet::new(), None);
    loop {
        let page = session.list_keys(bucket, &start, after.as_deref()).await?;
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

/// Deletes everything below `prefix`, the marker last, and aborts unfinished uploads there.
async fn empty<A: Admin>(
    session: &mut A,
    bucket: &str,
    prefix: &str,
    dry: bool,
) -> Result<u64, OpError> {
    let marker = format!("{prefix}{}", bucketload_run::MARKER);
    let (mut deleted, mut after) = (0, None);
    loop {
        let page = session.list_keys(bucket, prefix, after.as_deref()).await?;
        let keys: Vec<String> = page.keys.into_iter().filter(|key| *key != marker).collect();
        deleted += keys.len() as u64;
        if !dry && !keys.is_empty() {
            session.delete_keys(bucket, &keys).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if !dry {
        match session.abort_uploads(bucket, prefix).await {
            Err(error) if error.kind != ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        session.delete_keys(bucket, &[marker]).await?;
    }
    Ok(deleted)
}
