//! Listings over a [`Walk`]: for operations of the workload, and for the control plane.

use bucketload_core::driver::{Admin, ErrorKind, KeyPage, OpError, OpResult, Probe, Request};

use super::path;
use super::prune::Tree;
use super::walk::{Found, Lister, Walk};

/// Keys of a page of the control plane.
const PAGE: usize = 1000;

/// Counts the keys under `request.key`; with the delimiter `/`, the entries of one directory. The cluster
/// determines the size of pages; the request's `count` times `pages` limits the number of entries.
///
/// # Errors
/// `Unsupported` for other delimiters; otherwise the cluster's error.
pub(crate) async fn count<L: Lister>(
    lister: &mut L,
    request: &Request<'_>,
    probe: &mut Probe,
) -> OpResult<u64> {
    let op = &request.op;
    if !matches!(request.delimiter, "" | "/") {
        return Err(OpError::new(
            ErrorKind::Unsupported,
            "HDFS groups keys by directory: the delimiter must be `/`",
        ));
    }
    path::check(request.bucket, "key")?;
    let most = match (op.count, u64::from(op.pages)) {
        (0, _) | (_, 0) => u64::MAX,
        (count, pages) => count.saturating_mul(pages),
    };
    let flat = !request.delimiter.is_empty();
    let mut walk = Walk::new(request.bucket, request.key, "", flat);
    let mut items = 0;
    while path::prefix_is_possible(request.key) {
        if items == most {
            if let Some(watch) = request.watch {
                watch.cut_short();
            }
            break;
        }
        match walk.next(lister, probe).await? {
            None => break,
            Some(Found::Key(key)) => {
                if let Some(watch) = request.watch {
                    watch.listed(&key);
                }
            }
            Some(Found::Group(_)) => {}
        }
        items += 1;
    }
    Ok(items)
}

/// The control plane's last listing.
#[derive(Default)]
pub(crate) struct Listed<C> {
    pub(super) bucket: String,
    pub(super) prefix: String,
    /// The walk, if the listing is unfinished.
    walk: Option<Box<Walk<C>>>,
}

/// A page of the keys of `bucket` that begin with `prefix` and come after `after`. The session keeps the
/// walk for the next page.
///
/// # Errors
/// `NotFound` when the bucket does not exist; otherwise the cluster's error.
pub(crate) async fn page<S: Tree + Admin>(
    session: &mut S,
    bucket: &str,
    prefix: &str,
    after: Option<&str>,
) -> OpResult<KeyPage> {
    let mut page = KeyPage::default();
    let shown = after.unwrap_or_default();
    let listed = session.listed();
    bucket.clone_into(&mut listed.bucket);
    prefix.clone_into(&mut listed.prefix);
    let mut walk = match listed.walk.take() {
        Some(walk) if after.is_some() && walk.continues(bucket, prefix, shown) => walk,
        _ => Box::new(Walk::new(bucket, prefix, shown, false)),
    };
    let possible = path::prefix_is_possible(prefix);
    while possible && page.keys.len() < PAGE {
        match walk.next(session, &mut Probe::untimed()).await? {
            Some(Found::Key(key) | Found::Group(key)) => page.keys.push(key),
            None => break,
        }
    }
    if page.keys.len() == PAGE {
        page.next = page.keys.last().cloned();
        session.listed().walk = Some(walk);
    }
    if page.keys.is_empty() && after.is_none() {
        session.head_bucket(bucket).await?;
    }
    Ok(page)
}
