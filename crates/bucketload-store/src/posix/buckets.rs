//! Buckets: directories in the root with a valid bucket name.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{self, AtFlags, StatxFlags};
use rustix::io::Errno;

use super::beneath;
use super::entries::{self, Kind};
use super::tree::Tree;
use crate::error::{Result, StoreError};
use crate::names::check_bucket_name;
use crate::types::BucketInfo;

fn failed(context: &'static str) -> impl Fn(Errno) -> StoreError {
    move |error| match error {
        error if beneath::is_absent(error) => StoreError::NoSuchBucket,
        error => StoreError::system(context, error),
    }
}

/// Fails unless the bucket exists.
pub(super) fn check(tree: &Tree, bucket: &str) -> Result<()> {
    let stat = beneath::stat_entry(tree.session.root.fd(), bucket.as_bytes())
        .map_err(failed("looking for a bucket"))?;
    match fs::FileType::from_raw_mode(stat.st_mode) {
        fs::FileType::Directory => Ok(()),
        _ => Err(StoreError::NoSuchBucket),
    }
}

/// Creation time of a bucket's directory, or its modification time if the file system does not record
/// creation times.
fn created(tree: &Tree, bucket: &str) -> Result<SystemTime> {
    let statx = fs::statx(
        tree.session.root.fd(),
        bucket,
        AtFlags::SYMLINK_NOFOLLOW,
        StatxFlags::BTIME | StatxFlags::MTIME,
    )
    .map_err(failed("reading the status of a bucket"))?;
    let time = if statx.stx_mask & StatxFlags::BTIME.bits() == 0 {
        statx.stx_mtime
    } else {
        statx.stx_btime
    };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(UNIX_EPOCH + Duration::new(seconds, time.tv_nsec))
}

pub(super) fn info(tree: &Tree, bucket: &str) -> Result<BucketInfo> {
    check(tree, bucket)?;
    Ok(BucketInfo {
        name: bucket.to_owned(),
        created: created(tree, bucket)?,
    })
}

/// All buckets, sorted by name.
pub(super) fn list(tree: &Tree) -> Result<Vec<BucketInfo>> {
    let failed = StoreError::during("listing the buckets");
    let root = beneath::open_entry(tree.session.root.fd(), b".").map_err(failed)?;
    let mut names = Vec::new();
    entries::for_each(&root, |name, kind| {
        if let (Ok(name), Kind::Directory) = (std::str::from_utf8(name), kind)
            && check_bucket_name(name).is_ok()
        {
            names.push(name.to_owned());
        }
        true
    })
    .map_err(failed)?;
    names.sort_unstable();
    let mut buckets = Vec::with_capacity(names.len());
    for name in names {
        match info(tree, &name) {
            Ok(info) => buckets.push(info),
            // Deleted meanwhile.
            Err(StoreError::NoSuchBucket) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buckets)
}

pub(super) fn create(tree: &Tree, bucket: &str) -> Result<()> {
    match beneath::create_directory(tree.session.root.fd(), bucket.as_bytes()) {
        Ok(()) => tree.sync_if_wanted(tree.session.root.fd()),
        Err(Errno::EXIST) => Err(StoreError::BucketAlreadyOwnedByYou),
        Err(error) => Err(StoreError::system("creating a bucket", error)),
    }
}

/// Deletes a bucket without objects. Empty directories do not count. Files that are not objects do,
/// because the store must not delete them.
pub(super) fn delete(tree: &Tree, bucket: &str) -> Result<()> {
    check(tree, bucket)?;
    let root = tree.session.root.fd();
    for _ in 0..100 {
        match fs::unlinkat(root, bucket, AtFlags::REMOVEDIR) {
            Ok(()) => {
                tree.forget(bucket.as_bytes());
                // If this fails, the next opening removes the uploads.
                let _ = beneath::remove_tree(tree.session.uploads.as_fd(), bucket.as_bytes());
                return tree.sync_if_wanted(root);
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                if !remove_empty(tree, bucket.as_bytes())? {
                    return Err(StoreError::BucketNotEmpty);
                }
            }
            Err(error) => return Err(failed("deleting a bucket")(error)),
        }
    }
    // Other writers create directories as fast as this loop removes them.
    Err(StoreError::BucketNotEmpty)
}

/// Removes the empty directories below `path`. Stops at the first file and returns `false`.
fn remove_empty(tree: &Tree, path: &[u8]) -> Result<bool> {
    let fd = match tree.session.root.open_directory(path) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(true),
        Err(error) => return Err(failed("deleting a bucket")(error)),
    };
    let mut below = Vec::new();
    let mut only_directories = true;
    entries::for_each(&fd, |name, kind| {
        only_directories = kind == Kind::Directory;
        below.push(name.to_vec());
        only_directories
    })
    .map_err(failed("deleting a bucket"))?;
    if !only_directories {
        return Ok(false);
    }
    for name in below {
        if !remove_empty(tree, &[path, b"/", &name].concat())? {
            return Ok(false);
        }
        match fs::unlinkat(&fd, &name[..], AtFlags::REMOVEDIR) {
            // If it was filled again meanwhile, the caller tries again.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            Err(error) => return Err(failed("deleting a bucket")(error)),
        }
    }
    Ok(true)
}

/// Removes the uploads of buckets that do not exist, left over from a crash during a bucket's delete.
pub(super) fn sweep_uploads(tree: &Tree) -> Result<()> {
    let failed = StoreError::during("reading the uploads");
    let top = beneath::open_entry(&tree.session.uploads, b".").map_err(failed)?;
    for entry in entries::read_all(&top).map_err(failed)? {
        let gone = match std::str::from_utf8(&entry.name) {
            Ok(bucket) => matches!(check(tree, bucket), Err(StoreError::NoSuchBucket)),
            Err(_) => true,
        };
        if gone {
            beneath::remove_tree(tree.session.uploads.as_fd(), &entry.name)
                .map_err(StoreError::during("removing uploads"))?;
        }
    }
    Ok(())
}
